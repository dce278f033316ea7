"""Arrays like others: broadcasting to the shape or rank of another array, dtypes, shapes as values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import as_array, dtypes, get_aval
from corejax.extend.types import SymbolicDim
from corejax_lax_basic._base.axes import canonical_shape, integer
from corejax_lax_basic._base.scalars import make_scalar
from corejax_lax_basic.shape.broadcasting import broadcast, broadcast_to
from corejax_lax_basic.shape.joining import concatenate

__all__ = ["broadcast_like", "broadcast_to_rank", "dtype", "shape_as_value"]

dtype = dtypes.dtype


def broadcast_like(arr: Any, like_arr: Any) -> Any:
    """Broadcast `arr` to the shape of `like_arr` by NumPy's rules; the dtype stays that of `arr`.

    Raises:
        ValueError: `arr` does not broadcast to that shape.
    """
    return broadcast_to(arr, get_aval(like_arr).shape)


def broadcast_to_rank(x: Any, rank: int) -> Any:
    """Add leading axes of size 1 to an array, so that it has `rank` axes.

    Raises:
        ValueError: the array has more than `rank` axes.
    """
    aval, rank = get_aval(x), integer(rank, "broadcast_to_rank: rank")
    if aval.ndim > rank:
        raise ValueError(f"broadcast_to_rank: {aval.str_short()} has more than {rank} axes")
    return broadcast(x, (1,) * (rank - aval.ndim))


def shape_as_value(shape: Sequence[int]) -> Any:
    """Return a shape as a vector of integers."""
    sizes, dtype = canonical_shape(shape), dtypes.default_int_dtype()
    if any(isinstance(n, SymbolicDim) for n in sizes):
        return concatenate([broadcast_to(make_scalar(n, dtype), (1,)) for n in sizes], 0)
    return as_array(np.array(sizes, dtype))
