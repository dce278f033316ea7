"""Sizes of axes: integers, or symbols that stand for integers while a program is traced."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any


class SymbolicDim:
    """Base class of sizes that are not known while tracing; a plugin provides the subclass.

    A subclass has arithmetic, and comparisons that return what holds for every value of the size, or raise. It is
    hashable, equal only to the same expression, and not an integer: `operator.index(size)` raises. `str` gives the text
    in printed programs, `repr` the text in messages, `__corejax_array__` the value as an operand in a program.

    Attributes:
        memo: a dict that lives as long as the size's symbols; it caches the types that have such sizes.
    """

    __slots__ = ()

    memo: dict[Any, Any]

    if TYPE_CHECKING:  # subclasses define it

        def __corejax_array__(self) -> Any: ...

    def extreme(self, kind: str, other: object) -> Any:
        """Return the greater ("max") or the smaller ("min") of this size and another one, as a size."""
        raise NotImplementedError


def as_dim(size: Any) -> Any:
    """Return a size as an `int`; return a symbolic size unchanged.

    Raises:
        TypeError: `size` is neither an integer nor symbolic.
    """
    return size if isinstance(size, SymbolicDim) else operator.index(size)


def max_dim(d1: object, d2: object) -> Any:
    """Return the greater of two sizes, which may be symbolic."""
    return _extreme("max", d1, d2)


def min_dim(d1: object, d2: object) -> Any:
    """Return the smaller of two sizes, which may be symbolic."""
    return _extreme("min", d1, d2)


def _extreme(kind: str, x: Any, y: Any) -> Any:
    if isinstance(x, SymbolicDim):
        return x.extreme(kind, y)
    return y.extreme(kind, x) if isinstance(y, SymbolicDim) else (max if kind == "max" else min)(x, y)
