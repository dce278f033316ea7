"""`x[index]`, as NumPy's arrays have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import dtypes
from corejax_lax_basic._base.scalars import is_array
from corejax_lax_basic._speed import SMALL_COPY
from corejax_lax_basic.arrays._at_once import host_of, part_of
from corejax_lax_basic.arrays._basic_indexing import basic_index, complete
from corejax_lax_basic.arrays._indexing_by_arrays import index_by_arrays

if TYPE_CHECKING:
    from corejax_lax_basic.arrays.at import IndexedArrays

_STATIC = frozenset({int, slice, type(None), type(Ellipsis)})
_NUMPYS = frozenset("biufc")  # kinds of dtypes


def _part(host: Any, index: Any) -> Any:
    """What NumPy's indexing gives, new axes made as the primitive makes them: small arrays are row by row then."""
    found = host[index]
    if index is not None and (type(index) is not tuple or None not in index):
        return found
    entries = index if type(index) is tuple else (index,)
    part = np.asarray(host[tuple(e for e in entries if e is not None)], host.dtype).reshape(found.shape)
    return part if part.flags.c_contiguous or part.size > SMALL_COPY else part.copy()


def getitem(self: Any, index: Any) -> Any:
    """Part of an array, as NumPy's indexing gives it.

    Args:
        index: an integer, slice, None, Ellipsis, a scalar integer array (its value may be traced), an integer or
            boolean array, or a tuple of these.

    Returns:
        The part. Static integers out of bounds raise; integers that are data are clamped, as in JAX.

    Raises:
        IndexError: an integer is out of bounds (named with axis and size), or there are too many entries.
        TypeError: an entry is nothing that arrays are indexed by.
    """
    if type(index) in _STATIC or (type(index) is tuple and _STATIC.issuperset(map(type, index))):
        host = host_of(self)
        if host is not None and host.dtype.kind in _NUMPYS:
            try:
                return part_of(self, _part(host, index))
            except (IndexError, TypeError, ValueError):  # below there are words for it
                pass
    entries = complete(self, index)
    if any(is_array(e) and (e.aval.ndim or dtypes.is_bool(e.aval.dtype)) for e in entries):
        return index_by_arrays(self, entries)
    return basic_index(self, entries)


def at(self: Any) -> IndexedArrays:
    """Elements to be changed: `x.at[index].set(values)`."""
    from corejax_lax_basic.arrays.at import IndexedArrays  # with all scattering, which few programs need

    return IndexedArrays(self)


METHODS: Mapping[str, Any] = {"__getitem__": getitem, "at": property(at)}
