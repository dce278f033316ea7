"""Values passed on as they are, with a mark that something later reads.

`name.py`: `checkpoint_name`, for policies of `checkpoint`. `optimization_barrier.py`: for the compiler.
`dce_sink.py`: values that count as used. `named_scope.py`: names of parts of a program, for profilers.
"""
