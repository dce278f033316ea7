"""Identity operations and scopes that mark values for later passes.

`name.py`: `checkpoint_name`, for policies of `checkpoint`. `optimization_barrier.py`: for the compiler.
`dce_sink.py`: for dead code elimination. `named_scope.py`: names of parts of a program, for profilers.
"""
