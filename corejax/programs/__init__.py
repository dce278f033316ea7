"""Transformations from program to program, and primitives that call a program.

Modules that no other module of the kernel imports fill slots or register derivations; they are imported here.
"""

from corejax.interpreters import transposition as _transposition
from corejax.programs import host_programs as _host_programs
from corejax.programs import looping as _looping
