"""Sizes of axes: integers, or symbols that stand for integers while a program is traced."""

from __future__ import annotations

import operator
from typing import Any


class SymbolicDim:
    """Base class of sizes that are not known yet, for plugins that have such.

    A subclass has arithmetic, and comparisons that hold for every size that it may stand for, or raise. It is equal to
    what is the same expression only, hashable, and no integer: `operator.index` of it raises. `str` is what programs'
    texts have in its place, `repr` is for people, `__corejax_array__` the value in a program.

    Attributes:
        memo: a dict of its symbols, for what is kept as long as they are: types.
    """

    __slots__ = ()

    memo: dict[Any, Any]

    def extreme(self, kind: str, other: Any) -> Any:
        """Return the greater ("max") or the smaller ("min") of this and another size, as a size."""
        raise NotImplementedError


def as_dim(size: Any) -> Any:
    """A size as an `int`, or as the symbol that it is.

    Raises:
        TypeError: it is neither.
    """
    return size if isinstance(size, SymbolicDim) else operator.index(size)


def max_dim(d1: Any, d2: Any) -> Any:
    """Return the greater of two sizes, of which symbols may be part."""
    return _extreme("max", d1, d2)


def min_dim(d1: Any, d2: Any) -> Any:
    """Return the smaller of two sizes, of which symbols may be part."""
    return _extreme("min", d1, d2)


def _extreme(kind: str, x: Any, y: Any) -> Any:
    if isinstance(x, SymbolicDim):
        return x.extreme(kind, y)
    return y.extreme(kind, x) if isinstance(y, SymbolicDim) else (max if kind == "max" else min)(x, y)
