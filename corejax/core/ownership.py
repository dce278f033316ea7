"""Whose memory an impl rule's result is: the eager value's own, or memory that the rule's author may write to again.

CPython counts references, so a result that nobody else holds can be told from one that its author keeps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from sys import getrefcount
from typing import Any

import numpy as np

_ndarray = np.ndarray


def _of_a_local() -> int:
    out = np.empty(0)
    return getrefcount(out)  # as the callers of `in_own_memory` do


def _of_items(outs: list[Any]) -> list[int]:
    return [getrefcount(o) for o in outs]


def _of_a_base() -> int:
    view = np.empty(1)[:]
    return getrefcount(view.base)


# What `getrefcount` gives for an array that nobody holds but a local variable; a list that is being iterated over; a
# view of it.
SOLE = _of_a_local()
_SOLE_ITEM = _of_items([np.empty(0)])[0]
_SOLE_BASE = _of_a_base()


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array in memory that buffers on CPUs can share, which is aligned to 64 bytes: NumPy's own seldom is.

    For large results: where a compiled program takes one of those, it would be copied.
    """
    nbytes = math.prod(shape) * dtype.itemsize
    memory = np.empty(nbytes + 64, np.uint8)
    return np.ndarray(shape, dtype, memory, -memory.__array_interface__["data"][0] % 64)


def owned(outs: list[Any], operands: Sequence[Any]) -> list[Any]:
    """Results of an impl rule, each in memory that nobody writes to later: copies where that is not certain.

    Args:
        outs: what the rule gave, in a list that nobody else holds; what is not a NumPy array stays as it is.
        operands: the rule's operands, NumPy arrays in memory that is read-only.
    """
    soles = [getrefcount(o) <= _SOLE_ITEM for o in outs]
    return [
        o if type(o) is not _ndarray or (sole and o.base is None) else in_own_memory(o, operands, sole)
        for o, sole in zip(outs, soles, strict=True)
    ]


def in_own_memory(out: np.ndarray[Any, Any], operands: Sequence[Any], sole: bool) -> np.ndarray[Any, Any]:
    """Return a result itself if no other code can write to its memory, else a copy of it.

    `sole` says whether `out` itself has no other reference.
    """
    if _is_of(operands, out, out.base):
        return out
    if sole and type(out.base) is _ndarray and out.base.flags.owndata and getrefcount(out.base) <= _SOLE_BASE:
        return out  # a view of what the rule made and let go
    return out.copy()


def _is_of(operands: Sequence[Any], out: np.ndarray[Any, Any], base: Any) -> bool:
    """Whether a result is in the memory of an operand."""
    for x in operands:
        if x is out or x is base or (base is not None and x.base is base):
            return True
    root = _root(out)
    return any(root is _root(x) for x in operands)


def _root(x: Any) -> Any:
    """The owner of an array's memory: an array, or what exports a buffer to it."""
    while type(x) is _ndarray and x.base is not None:
        x = x.base
    return x
