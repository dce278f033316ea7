"""From users' functions to programs, and from programs to programs: the ground that the other packages stand on.

`tracing.py` records a function as a program, and finds the earlier program that it equals. `rewriting.py` makes
programs of programs. `weak_types.py` and `messages.py` compare and print types.
"""
