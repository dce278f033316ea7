"""Arrays filled with a value, or like another array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import Array, as_array, get_aval
from corejax.extend.devices import is_spread
from corejax.extend.types import shaped_abstractify
from corejax_lax_basic._base.axes import canonical_shape
from corejax_lax_basic._base.placing import place
from corejax_lax_basic._base.requested_dtypes import requested_dtype
from corejax_lax_basic._base.scalars import PYTHON_SCALARS, fill_scalar
from corejax_lax_basic.conversion.convert import convert_element_type, in_dtype
from corejax_lax_basic.conversion.identity import beside
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim_p

__all__ = ["full", "full_like", "zeros_like_array"]


def full(shape: Sequence[int], fill_value: Any, dtype: Any = None, *, sharding: Any = None) -> Any:
    """Return an array filled with one value.

    Args:
        shape: shape of the array.
        fill_value: a scalar.
        dtype: dtype of the result; by default the fill value's (then a Python scalar gives a weakly typed array).
        sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: the fill value is not a scalar, or the shape is not made of concrete integers.
    """
    if sharding is not None:
        return place("full", full(shape, fill_value, dtype), sharding)
    shape = canonical_shape(shape)
    aval = get_aval(fill_value) if dtype is None or type(fill_value) not in PYTHON_SCALARS else None
    if aval is not None and aval.ndim:
        raise TypeError(f"full: the fill value must be a scalar, got {aval.str_short()}")
    if dtype is None:
        value = as_array(fill_value)
    elif aval is None:
        value = fill_scalar(fill_value, requested_dtype(dtype))
    else:
        value = convert_element_type(fill_value, dtype)
    return value if not shape else broadcast_in_dim_p.bind(value, shape=shape, broadcast_dimensions=())


def full_like(
    x: Any, fill_value: Any, dtype: Any = None, shape: Sequence[int] | None = None, sharding: Any = None
) -> Any:
    """Return an array as `full`, with the shape, dtype, weak type and sharding of `x` by default.

    `x` may be a `ShapeDtypeStruct`.
    """
    aval = shaped_abstractify(x)
    if shape is None and aval.explicit_sharding is not None and sharding is None:
        return aval.explicit_sharding.place(full_like(x, fill_value, dtype, aval.shape))
    if shape is None and sharding is None and type(x) is Array and is_spread(x):
        sharding = x.sharding
    if sharding is not None:
        return place("full_like", full_like(x, fill_value, dtype, aval.shape if shape is None else shape), sharding)
    shape = aval.shape if shape is None else canonical_shape(shape)
    if dtype is not None:
        return beside(full(shape, fill_value, dtype), x)
    is_number = type(fill_value) in PYTHON_SCALARS
    value = fill_scalar(fill_value, aval.dtype, aval.weak_type) if is_number else in_dtype(fill_value, aval.dtype)
    return beside(full(shape, value), x)


def zeros_like_array(x: Any) -> Any:
    """Return zeros of the shape and dtype of `x`."""
    return full_like(x, 0)
