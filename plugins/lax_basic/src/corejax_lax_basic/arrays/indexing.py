"""`x[index]`, with the meaning that it has for NumPy's arrays."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax_lax_basic._speed import SMALL_COPY
from corejax_lax_basic.arrays._at_once import host_of, part_of
from corejax_lax_basic.arrays._basic_indexing import basic_index, complete, is_advanced
from corejax_lax_basic.arrays._indexing_by_arrays import index_by_arrays

if TYPE_CHECKING:
    from corejax_lax_basic.arrays.at import IndexedArrays

_STATIC = frozenset({int, slice, type(None), type(Ellipsis)})
_NUMPYS = frozenset("biufc")  # kinds of dtypes


def _part(host: Any, index: Any) -> Any:
    """Index a NumPy array; new axes are inserted as by the primitive, which makes small arrays row-major."""
    out = host[index]
    if index is not None and (type(index) is not tuple or None not in index):
        return out
    entries = index if type(index) is tuple else (index,)
    part = np.asarray(host[tuple(e for e in entries if e is not None)], host.dtype).reshape(out.shape)
    return part if part.flags.c_contiguous or part.size > SMALL_COPY else part.copy()


def getitem(self: Any, index: Any) -> Any:
    """Return a part of an array, as NumPy's indexing does.

    Args:
        self: the array.
        index: an integer, slice, None, Ellipsis, a scalar integer array (its value may be traced), an integer or
            boolean array, or a tuple of these.

    Returns:
        The part. Static integers out of bounds raise; integers that are data are clamped, as in JAX.

    Raises:
        IndexError: an integer is out of bounds (the message names axis and size), or there are too many entries.
        TypeError: arrays cannot be indexed by an entry.
    """
    if type(index) in _STATIC or (type(index) is tuple and _STATIC.issuperset(map(type, index))):
        host = host_of(self)
        if host is not None and host.dtype.kind in _NUMPYS:
            try:
                return part_of(self, _part(host, index))
            except (IndexError, TypeError, ValueError):  # the general path below raises with a better message
                pass
    entries = complete(self, index)
    return index_by_arrays(self, entries) if any(map(is_advanced, entries)) else basic_index(self, entries)


def at(self: Any) -> IndexedArrays:
    """Select elements to change: `x.at[index].set(values)`."""
    return _indexed_arrays()(self)


@functools.cache
def _indexed_arrays() -> type[IndexedArrays]:
    """Import the class when it is first used, because it imports all scatters, which few programs need."""
    from corejax_lax_basic.arrays.at import IndexedArrays

    return IndexedArrays


METHODS: Mapping[str, Any] = {"__getitem__": getitem, "at": property(at)}
