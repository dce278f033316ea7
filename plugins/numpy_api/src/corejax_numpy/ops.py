"""`corejax.ops`: sums, products and extremes of segments of an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import dtypes, remembered
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, concrete, static_int
from corejax_numpy.reductions import max as _max
from corejax_numpy.reductions import min as _min
from corejax_numpy.reductions import prod as _prod
from corejax_numpy.reductions import sum as _sum

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]

_DOC = """Compute the {what} of each segment of an array.

    Args:
        data: the array; its leading axes are those of `segment_ids`. A scalar, or an array of size 1 along the first
            axis, is used for every id.
        segment_ids: integers, the segment to which each slice of the array belongs; they need not be sorted.
        num_segments: the number of segments; by default one more than the largest id, which must then be concrete.
        indices_are_sorted: a promise that the ids are in ascending order; False by default.
        unique_indices: a promise that no id occurs twice; False by default.
        bucket_size: if given, buckets of so many slices are combined first, which reduces rounding errors.
        mode: how ids out of bounds are handled: `"drop"` (also None, the default) ignores their slices, `"clip"` takes
            the nearest id.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Returns:
        An array with an axis of size `num_segments` in place of the axes of `segment_ids`; {empty} for empty segments.

    Raises:
        TypeError: the ids are not integers.
        ValueError: `num_segments` is negative, or the shape of the ids does not match the array.
    """


def _least(dtype: Any) -> Any:
    if dtypes.is_bool(dtype):
        return False
    return int(dtypes.iinfo(dtype).min) if dtypes.is_integer(dtype) else -np.inf


def _greatest(dtype: Any) -> Any:
    if dtypes.is_bool(dtype):
        return True
    return int(dtypes.iinfo(dtype).max) if dtypes.is_integer(dtype) else np.inf


def _segments(
    name: str, method: str, neutral: Callable[[Any], Any], reducer: Callable[..., Any], what: str, empty: str
) -> Callable[..., Any]:
    def segments(
        data: Any,
        segment_ids: Any,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: Any = None,
        out_sharding: Any = None,
    ) -> Any:
        if out_sharding is not None:
            out = segments(data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode)
            return lax.place(name, out, out_sharding)
        x, ids = array_argument(name, data), array_argument(name, segment_ids, 1)
        if not dtypes.is_integer(ids.dtype):
            raise TypeError(f"{name}: segment_ids are integers, got {ids.aval.str_short()}")
        slice_shape = _slice_shape(name, x, ids)
        count = _number(name, ids, num_segments)
        options = {
            "indices_are_sorted": indices_are_sorted,
            "unique_indices": unique_indices,
            "mode": "drop" if mode is None else mode,
            "wrap_negative_indices": False,
        }
        out_shape = (count, *slice_shape)
        if bucket_size is None:
            out = lax.full(out_shape, neutral(x.dtype), x.dtype)
            return getattr(out.at[ids], method)(x, **options)
        size = static_int(name, bucket_size, "bucket_size")
        buckets = -(-ids.size // size)
        out = lax.full((buckets, *out_shape), neutral(x.dtype), x.dtype)
        bucket = (np.arange(ids.size) // size).reshape(ids.shape)
        out = getattr(out.at[bucket, ids], method)(x, **options)
        return lax.convert_element_type(reducer(out, axis=0), x.dtype)

    lax.named(segments, name, _DOC.format(what=what, empty=empty))
    return remembered(segments)


def _slice_shape(name: str, x: Any, ids: Any) -> tuple[Any, ...]:
    """Return the shape of the slices that belong to one id.

    Raises:
        ValueError: the leading axes of the array are neither those of the ids nor of size 1.
    """
    if x.ndim and ids.shape == x.shape[: ids.ndim]:
        return tuple(x.shape[ids.ndim :])
    if x.ndim and x.shape[0] != 1:
        raise ValueError(f"{name}: segment_ids {ids.aval.str_short()} do not match data {x.aval.str_short()}")
    return tuple(x.shape[1:])


def _number(name: str, ids: Any, num_segments: Any) -> int:
    if num_segments is None:
        largest = lax.reduce_max(ids, tuple(range(ids.ndim))) if ids.size else -1
        num_segments = (
            int(concrete(name, largest, "give num_segments; without it, the number is the largest id plus one")) + 1
        )
    count = static_int(name, num_segments, "num_segments")
    if count < 0:
        raise ValueError(f"{name}: num_segments is not negative, got {count}")
    return count


segment_sum = _segments("segment_sum", "add", lambda _: 0, _sum, "sum", "0")
segment_prod = _segments("segment_prod", "multiply", lambda _: 1, _prod, "product", "1")
segment_max = _segments("segment_max", "max", _least, _max, "maximum", "the smallest value of the dtype")
segment_min = _segments("segment_min", "min", _greatest, _min, "minimum", "the largest value of the dtype")


def __dir__() -> list[str]:
    return __all__
