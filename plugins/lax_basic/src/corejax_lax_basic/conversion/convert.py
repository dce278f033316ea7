"""convert_element_type: values in another dtype; stop_gradient: the same values with derivative zero.

    convert_element_type : a[*s] -> b[*s]

Conversion is StableHLO's `convert` on XLA. Floats become integers by truncation; they saturate, and NaN becomes 0.
Integers wrap around. A complex number becomes real by its real part. Everything but zero becomes True, NaN included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from corejax.extend import (
    Array,
    Primitive,
    ShapedArray,
    as_array,
    defvectorized,
    defzero,
    dtypes,
    get_aval,
    impl_rules,
    is_array_like,
    jvp_rules,
    transpose_rules,
    tree,
)
from corejax.extend.speed import HostCode
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS
from corejax_lax_basic._base.requested_dtypes import requested_dtype
from corejax_lax_basic._speed import SMALL_CONVERSION

if TYPE_CHECKING:
    from corejax_lax_basic._base.prepared import Avals

__all__ = ["convert_element_type", "convert_element_type_p", "in_dtype", "stop_gradient", "stop_gradient_p"]


_NUMPYS = frozenset("biufc")  # kinds of dtypes
_FLOATS = frozenset(map(np.dtype, (dtypes.bfloat16, np.float16, np.float32, np.float64)))


def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    """Convert the elements of an array to another dtype; an array of that dtype is returned unchanged.

    Args:
        operand: array of any dtype and shape.
        new_dtype: a dtype, its name, or a scalar type; Python's scalar types have the default width.

    Returns:
        Array of the same shape, strongly typed.

    Raises:
        TypeError: `new_dtype` does not name a supported dtype, or `operand` is not an array.
        ValueError: `new_dtype` is None.
    """
    if new_dtype is None:
        raise ValueError("convert_element_type: dtype must be specified, got None")
    return in_dtype(operand, requested_dtype(new_dtype))


def in_dtype(operand: Any, dtype: np.dtype[Any]) -> Any:
    """Convert elements to a dtype, as `convert_element_type`, but to 64 bits also under `config.x64_compat`.

    Rules use it for the dtypes that they compute in, and for the dtype of an existing array.
    """
    aval = get_aval(operand)
    if aval.dtype == dtype and not aval.weak_type:
        return as_array(operand)
    return convert_element_type_p.bind(operand, new_dtype=dtype, weak_type=False)


def as_weak_as(x: Any, *others: Any) -> Any:
    """Return `x` weakly typed if all the others are: for the result of a rule that replaces a primitive."""
    if get_aval(x).weak_type or not all(get_aval(other).weak_type for other in others):
        return x
    return convert_element_type_p.bind(x, new_dtype=get_aval(x).dtype, weak_type=True)


def convert(x: np.ndarray[Any, Any], *, new_dtype: np.dtype[Any], weak_type: bool = False) -> np.ndarray[Any, Any]:
    """Convert the elements of a NumPy array to another dtype, as StableHLO's `convert`."""
    if x.dtype in NARROW_FLOATS and new_dtype not in NARROW_FLOATS:
        x = x.astype(np.float32)  # exact, and float32 has a zero, which some formats lack
    if dtypes.is_bool(new_dtype):
        return np.asarray(x != np.zeros((), x.dtype))
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(new_dtype):
        x = x.real
    if dtypes.is_integer(new_dtype) and dtypes.is_float(x.dtype):
        return _saturated(x, new_dtype)
    try:
        return x.astype(new_dtype)
    except TypeError:  # ml_dtypes lacks a conversion for some pairs: convert by way of a wider type, which is exact
        return x.astype(np.float32 if dtypes.is_float(x.dtype) else np.int32).astype(new_dtype)


def _prepared(avals: Avals, *, new_dtype: np.dtype[Any], weak_type: bool = False) -> Any:
    [x] = avals
    if x.size <= SMALL_CONVERSION and {x.dtype, new_dtype} <= _FLOATS:
        return HostCode("{out} = {0}.astype({dtype})", dtype=new_dtype)
    if not _NUMPYS.issuperset((x.dtype.kind, new_dtype.kind)):
        return None
    if dtypes.is_bool(new_dtype):
        return (
            HostCode("{out} = {differs}({0}, {zero})", differs=np.not_equal, zero=np.zeros((), x.dtype))
            if x.shape
            else None
        )
    if dtypes.is_integer(new_dtype) and dtypes.is_inexact(x.dtype):
        return (lambda x: _saturated(x, new_dtype)) if dtypes.is_float(x.dtype) else None
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(new_dtype):
        return HostCode("{out} = {0}.real.astype({dtype})", dtype=new_dtype)
    return HostCode("{out} = {0}.astype({dtype})", dtype=new_dtype)


def _saturated(x: np.ndarray[Any, Any], new_dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    info = dtypes.iinfo(new_dtype)
    low, high = float(info.min), float(int(info.max) + 1)  # both exact, unlike info.max itself
    if x.dtype.kind == "f" and new_dtype.kind in "iu" and x.size and _all_inside(x, low, high):
        return x.astype(new_dtype)
    wide = np.trunc(x.astype(np.float64))
    inside = (wide >= low) & (wide < high)
    carrier = np.uint64 if new_dtype == np.uint64 else np.int64
    out = np.where(inside, wide, 0.0).astype(carrier)
    out = np.where(wide >= high, carrier(int(info.max)), np.where(wide < low, carrier(int(info.min)), out))
    return out.astype(new_dtype)


def _all_inside(x: np.ndarray[Any, Any], low: float, high: float) -> bool:
    """Return whether all elements of a nonempty array are inside of the interval, so that none is NaN."""
    if x.size > SMALL_CONVERSION:
        return bool(x.min() >= low and x.max() < high)
    least, end = x.dtype.type(low), x.dtype.type(high)  # float16 may overflow: all finite numbers are inside then
    inside = (x < end) & (x > least if np.isinf(least) else x >= least)
    return bool(np.count_nonzero(inside) == x.size)


@takes("convert_element_type", 1)
def _abstract_eval(x: ShapedArray, *, new_dtype: np.dtype[Any], weak_type: bool) -> ShapedArray:
    return ShapedArray(x.shape, new_dtype, weak_type)


convert_element_type_p = Primitive(
    "convert_element_type",
    abstract_eval=_abstract_eval,
    linear_in=(0,),
    tags=("elementwise", "cheap", "exact"),
    doc="Convert values to another dtype.",
)


def _takes_long(avals: Avals, *, new_dtype: np.dtype[Any], weak_type: bool) -> bool:
    """Return whether NumPy converts element by element: to or from narrow floats, except for widened bfloat16."""
    [x] = avals
    widened = x.dtype is dtypes.bfloat16 and new_dtype.kind == "f" and new_dtype.itemsize > 2
    return not widened and (x.dtype in NARROW_FLOATS or new_dtype in NARROW_FLOATS)


impl_rules.register(convert_element_type_p, convert, prepared=_prepared, large=_takes_long)
defvectorized(convert_element_type_p)


def _jvp(primals: Any, tangents: Any, *, new_dtype: np.dtype[Any], weak_type: bool) -> tuple[Any, Any]:
    out = convert_element_type_p.bind(*primals, new_dtype=new_dtype, weak_type=weak_type)
    (tangent,) = tangents
    if tangent is None or not dtypes.is_inexact(new_dtype):
        return out, None
    return out, in_dtype(tangent, new_dtype)


def _transpose(ct: Any, x: Any, *, new_dtype: np.dtype[Any], weak_type: bool) -> list[Any]:
    return [in_dtype(ct, x.aval.dtype)]


jvp_rules.register(convert_element_type_p, _jvp, symbolic_zeros=True)
transpose_rules.register(convert_element_type_p, _transpose)


# -- stop_gradient -----------------------------------------------------------------------------------------


T = TypeVar("T")


@overload
def stop_gradient(x: complex) -> Array: ...
@overload
def stop_gradient(x: T) -> T: ...
def stop_gradient(x: Any) -> Any:
    """Return `x` with a derivative of zero; a pytree of arrays is processed leaf by leaf.

    Integers and booleans, which have no derivative, and leaves that are not arrays are returned unchanged.
    """

    def stop(leaf: Any) -> Any:
        if is_array_like(leaf) and dtypes.is_inexact(get_aval(leaf).dtype):
            return stop_gradient_p.bind(leaf)
        return leaf

    return stop(x) if hasattr(x, "aval") else tree.tree_map(stop, x)


def _identity(x: Any) -> Any:
    return x


stop_gradient_p = Primitive(
    "stop_gradient",
    abstract_eval=takes("stop_gradient", 1)(_identity),
    tags=("elementwise", "structural", "cheap", "value_types"),
    doc="Return the operand, with derivative zero.",
)
impl_rules.register(
    stop_gradient_p, _identity, prepared=lambda avals: HostCode("{out} = {0}") if avals[0].shape else None
)
defzero(stop_gradient_p)
defvectorized(stop_gradient_p)
