"""Elements along an axis at places that differ from row to row."""

from __future__ import annotations

from typing import Any

from corejax.extend import get_aval
from corejax_lax_basic.indexing.dimension_numbers import GatherDimensionNumbers
from corejax_lax_basic.indexing.gather import gather
from corejax_lax_basic.shape.broadcasting import expand_dims


def take_along(x: Any, places: Any, axis: int) -> Any:
    """`x` at `places` along an axis, linear in `x`.

    Args:
        x: the array.
        places: int32, of the shape of `x` but for `axis`; all different, and in bounds.
        axis: the axis.
    """
    ndim = get_aval(x).ndim
    others = tuple(d for d in range(ndim) if d != axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    return gather(x, expand_dims(places, (ndim,)), numbers, (1,) * ndim, unique_indices=True)
