"""Copy an impl rule's result only if other code could write to its memory later.

An `Array` is immutable, so it must own its memory. A rule may return memory that its author keeps, such as a buffer
that it reuses. CPython counts references: an array without other references, or a view of one, needs no copy.
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


# The reference counts of an array that is referenced only by a local variable, by a list that is being iterated over,
# and by a view. They are measured because they differ between versions of Python.
LOCAL_REFCOUNT = _of_a_local()
_ITEM_REFCOUNT = _of_items([np.empty(0)])[0]
_BASE_REFCOUNT = _of_a_base()


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return an uninitialised array in memory aligned to 64 bytes, which NumPy does not guarantee.

    Device buffers on CPUs can alias aligned memory, so that large results need not be copied for a compiled program.
    """
    nbytes = math.prod(shape) * dtype.itemsize
    memory = np.empty(nbytes + 64, np.uint8)
    return np.ndarray(shape, dtype, memory, -memory.__array_interface__["data"][0] % 64)


def owned(outs: list[Any], operands: Sequence[object]) -> list[Any]:
    """Return the results of an impl rule, each in memory that no other code writes to; copy a result if in doubt.

    Args:
        outs: the rule's results, in a list without other references; objects that are not NumPy arrays stay unchanged.
        operands: the rule's operands, NumPy arrays in read-only memory.
    """
    has_one_reference = [getrefcount(o) <= _ITEM_REFCOUNT for o in outs]
    return [
        o if type(o) is not _ndarray or (sole and o.base is None) else in_own_memory(o, operands, sole)
        for o, sole in zip(outs, has_one_reference, strict=True)
    ]


def in_own_memory(out: np.ndarray, operands: Sequence[object], sole: bool) -> np.ndarray:
    """Return a result itself if no other code can write to its memory, else a copy of it.

    `sole` says whether `out` itself has no other reference.
    """
    if _aliases(operands, out, out.base):
        return out
    if sole and type(out.base) is _ndarray and out.base.flags.owndata and getrefcount(out.base) <= _BASE_REFCOUNT:
        return out  # a view of an array that the rule created and no longer references
    return out.copy()


def _aliases(operands: Sequence[Any], out: np.ndarray, base: Any) -> bool:
    """Whether a result is in the memory of an operand."""
    for x in operands:
        if x is out or x is base or (base is not None and x.base is base):
            return True
    root = _root(out)
    return any(root is _root(x) for x in operands)


def _root(x: object) -> Any:
    """Return the owner of an array's memory: an array, or the object that exports its buffer."""
    while type(x) is _ndarray and x.base is not None:
        x = x.base
    return x
