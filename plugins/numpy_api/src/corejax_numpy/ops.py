"""`corejax.ops`: sums, products and extrema of the segments of an array."""

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

_DOC = """{what} of the segments of an array.

    Args:
        data: the array; segments are of its first axis, or of as many as `segment_ids` has. A number, or an array with
            one part, counts for every id.
        segment_ids: integers, the segment of each of its parts; none is dropped if all are at least 0 and less than
            `num_segments`, and they need not be sorted.
        num_segments: how many segments; by default one more than the largest id, which then has to be known.
        indices_are_sorted: promises that ids increase.
        unique_indices: promises that no id is there twice.
        bucket_size: parts of so many are combined on their own first, which loses less accuracy.
        mode: what becomes of ids out of bounds: `"drop"` (None too), or `"clip"`, which takes the nearest.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Returns:
        An array with `num_segments` in place of the first axis; {empty} for segments without parts.

    Raises:
        TypeError: the ids are not integers.
        ValueError: `num_segments` is negative, or the ids do not fit the array.
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
        part = _part(name, x, ids)
        count = _number(name, ids, num_segments)
        options = {
            "indices_are_sorted": indices_are_sorted,
            "unique_indices": unique_indices,
            "mode": "drop" if mode is None else mode,
            "wrap_negative_indices": False,
        }
        rest = (count, *part)
        if bucket_size is None:
            out = lax.full(rest, neutral(x.dtype), x.dtype)
            return getattr(out.at[ids], method)(x, **options)
        size = static_int(name, bucket_size, "bucket_size")
        buckets = -(-ids.size // size)
        out = lax.full((buckets, *rest), neutral(x.dtype), x.dtype)
        bucket = (np.arange(ids.size) // size).reshape(ids.shape)
        out = getattr(out.at[bucket, ids], method)(x, **options)
        return lax.convert_element_type(reducer(out, axis=0), x.dtype)

    return remembered(lax.named(segments, name, _DOC.format(what=what, empty=empty)))


def _part(name: str, x: Any, ids: Any) -> tuple[Any, ...]:
    """The shape of what one id is for.

    Raises:
        ValueError: the array has neither a part for each id nor one for all.
    """
    if x.ndim and ids.shape == x.shape[: ids.ndim]:
        return tuple(x.shape[ids.ndim :])
    if x.ndim and x.shape[0] != 1:
        raise ValueError(f"{name}: segment_ids {ids.aval.str_short()} do not fit data {x.aval.str_short()}")
    return tuple(x.shape[1:])


def _number(name: str, ids: Any, given: Any) -> int:
    if given is None:
        largest = lax.reduce_max(ids, tuple(range(ids.ndim))) if ids.size else -1
        given = int(concrete(name, largest, "give num_segments, which is one more than the largest id else")) + 1
    count = static_int(name, given, "num_segments")
    if count < 0:
        raise ValueError(f"{name}: num_segments is not negative, got {count}")
    return count


segment_sum = _segments("segment_sum", "add", lambda _: 0, _sum, "Sums", "0")
segment_prod = _segments("segment_prod", "multiply", lambda _: 1, _prod, "Products", "1")
segment_max = _segments("segment_max", "max", _least, _max, "Maxima", "the least value of the dtype")
segment_min = _segments("segment_min", "min", _greatest, _min, "Minima", "the greatest value of the dtype")


def __dir__() -> list[str]:
    return __all__
