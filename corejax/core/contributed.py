"""The attributes that plugins add to arrays, for type checkers: `corejax write-stubs` writes a stub for this file."""


class Contributed:
    """Base of `ArrayMethods`; its stub lists the operators and methods that installed plugins provide."""

    __slots__ = ()
