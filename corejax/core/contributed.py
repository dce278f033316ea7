"""What plugins add to arrays, as type checkers see it: `corejax write-stubs` writes a stub beside this file."""


class Contributed:
    """Base of `ArrayMethods`, whose stub lists the operators and methods that installed plugins provide."""

    __slots__ = ()
