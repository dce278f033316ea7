"""Weak types of programs that must agree: comparison, common dtypes, and conversion to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import ShapedArray, Tracer, as_array, dtypes, get_aval, host_value
from corejax.extend.types import ValueType


def same_but_weak_type(a: ShapedArray, b: ShapedArray) -> bool:
    """Return whether two types have the same shape and dtype, whether weak or not; value types have to be equal."""
    return a is b or (same_class(a, b) and a.shape == b.shape and a.dtype == b.dtype)


def same_class(a: ShapedArray, b: ShapedArray) -> bool:
    """Return whether two types are both of arrays, or value types that differ in shape and dtype at most."""
    values = isinstance(a, ValueType), isinstance(b, ValueType)
    return a.update(shape=b.shape, dtype=b.dtype) is b if all(values) else not any(values)


def convert(x: Any, dtype: Any) -> Any:
    """Convert `x` to a strong dtype. A concrete scalar stays concrete, so that it becomes a literal of the program."""
    if isinstance(x, Tracer) or get_aval(x).ndim:
        from corejax_lax_basic import lax

        return lax.convert_element_type(x, dtype)
    return as_array(host_value(x).astype(dtype))


def common_dtype(avals: Sequence[ShapedArray]) -> Any:
    """Return the dtype to which weak types convert so that all types agree, or None if there is no such dtype."""
    first = avals[0]
    if any(a.shape != first.shape or not same_class(a, first) for a in avals):
        return None
    if all(a.dtype == first.dtype for a in avals):
        return first.dtype
    try:
        dtype = dtypes.result_type(*avals)
    except TypeError:
        return None
    return dtype if all(a.weak_type or a.dtype == dtype for a in avals) else None
