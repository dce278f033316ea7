"""Values passed on as they are, with a mark: `checkpoint_name`, `optimization_barrier`; and named scopes."""
