"""Elements along an axis at places that differ from row to row."""

from __future__ import annotations

import math
from typing import Any

from corejax.extend import get_aval
from corejax_lax_basic.indexing._batched_blocks import take_along as _take_in_batch
from corejax_lax_basic.shape.rearranging import moveaxis, reshape


def take_along(x: Any, places: Any, axis: int) -> Any:
    """`x` at `places` along an axis, linear in `x`.

    Args:
        x: the array.
        places: int32, of the shape of `x` but for `axis`; all in bounds.
        axis: the axis.
    """
    ndim = get_aval(x).ndim
    x, places = moveaxis(x, axis, ndim - 1), moveaxis(places, axis, ndim - 1)
    shape = get_aval(places).shape
    rows = math.prod(shape[:-1])
    flat = _take_in_batch(
        reshape(x, (rows, get_aval(x).shape[-1])),
        reshape(places, (rows, shape[-1])),
        1,
    )
    return moveaxis(reshape(flat, shape), ndim - 1, axis)
