"""Transformations from program to program, and primitives that call a program."""

# These fill slots and register derivations; no other module of the kernel imports them.
from corejax.interpreters import transposition as _transposition
from corejax.programs import host_programs as _host_programs
from corejax.programs import looping as _looping
