"""What an array is, for others to be like it: dtypes, shapes as values, ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import dtypes, get_aval
from corejax_lax_basic._base.axes import canonical_shape, integer
from corejax_lax_basic.creation.sequences import from_sequence
from corejax_lax_basic.shape.broadcasting import broadcast, broadcast_to

__all__ = ["broadcast_like", "broadcast_to_rank", "dtype", "shape_as_value"]

dtype = dtypes.dtype


def broadcast_like(arr: Any, like_arr: Any) -> Any:
    """`arr` broadcast to the shape of `like_arr` by NumPy's rules; its dtype stays.

    Raises:
        ValueError: it does not broadcast to that shape.
    """
    return broadcast_to(arr, get_aval(like_arr).shape)


def broadcast_to_rank(x: Any, rank: int) -> Any:
    """An array with leading axes of size 1, so that it has `rank` axes.

    Raises:
        ValueError: it has more.
    """
    aval, rank = get_aval(x), integer(rank, "broadcast_to_rank: rank")
    if aval.ndim > rank:
        raise ValueError(f"broadcast_to_rank: {aval.str_short()} has more than {rank} axes")
    return broadcast(x, (1,) * (rank - aval.ndim))


def shape_as_value(shape: Sequence[int]) -> Any:
    """A shape as a vector of integers."""
    return from_sequence(canonical_shape(shape), dtypes.default_int_dtype())
