"""From users' functions to programs, and from programs to programs: the ground that the other packages stand on.

`tracing.py` records a function as a program; `_trace_cache.py` keeps the last ones, so that the same function is not
traced again. `rewriting.py` makes programs of programs. `weak_types.py` and `messages.py` compare and print types.
"""
