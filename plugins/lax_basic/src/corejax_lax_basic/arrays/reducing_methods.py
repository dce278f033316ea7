"""Reductions as methods of arrays and tracers, with NumPy's parameters (see `methods`)."""

from __future__ import annotations

import builtins
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from corejax.extend import SymbolicDim, as_array, dtypes, remembered
from corejax_lax_basic._base.arguments import ddof_of, refuse_out
from corejax_lax_basic._base.axes import method_axes, method_axis
from corejax_lax_basic._base.scalars import make_scalar
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.elementwise import complex_numbers
from corejax_lax_basic.elementwise.arithmetic import add_p, div_p, max_p, min_p, mul_p, sub_p
from corejax_lax_basic.elementwise.comparison import ne_p
from corejax_lax_basic.elementwise.select import select_n_p
from corejax_lax_basic.elementwise.unary import sqrt_p
from corejax_lax_basic.reductions import cumulative
from corejax_lax_basic.reductions import reduce as reductions
from corejax_lax_basic.reductions.named import elements_along, reduce_over_names, split_axes
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim, broadcast_to, expand_dims
from corejax_lax_basic.shape.rearranging import reshape

Axis = int | str | tuple[int | str, ...] | None  # a string is the name of a mapped axis


def _reduced(x: Any, primitive: Any, axis: Axis, keepdims: bool, name: str) -> Any:
    names: tuple[str, ...] = ()
    if axis is not None and type(axis) is not int:
        axis, names = split_axes(axis)
    axes = tuple(sorted(method_axes(axis, x.aval.ndim, f"{name}: axis")))
    reduced = primitive.bind(x, axes=axes)
    if names:
        reduced = reduce_over_names(name, primitive.name, reduced, names)
    return expand_dims(reduced, axes) if keepdims and axes else reduced


def _strong(x: Any) -> Any:
    return convert_element_type(x, x.aval.dtype) if x.aval.weak_type else x


def _as_bool(x: Any) -> Any:
    return x if dtypes.is_bool(x.aval.dtype) else ne_p.bind(x, make_scalar(0, x.aval.dtype))


def _mask(x: Any, where: Any, name: str) -> Any:
    """Which elements count, as an array of the shape of `x`."""
    mask = as_array(where)
    if not dtypes.is_bool(mask.aval.dtype):
        raise ValueError(f"{name}: `where` is a boolean array, got {mask.aval.str_short()}")
    try:
        return broadcast_to(mask, x.aval.shape)
    except ValueError:
        raise ValueError(
            f"{name}: `where` is {mask.aval.str_short()}, which does not broadcast to {x.aval.str_short()}"
        ) from None


def _masked(x: Any, where: Any, otherwise: Any, name: str) -> Any:
    """Elements that do not count replaced by a scalar of the same dtype that makes no difference."""
    if where is None:
        return x
    return select_n_p.bind(_mask(x, where, name), broadcast_to(otherwise, x.aval.shape), x)


# -- sums and products -------------------------------------------------------------------------------------------


def _accumulated(x: Any, dtype: Any, promote: bool = True) -> Any:
    """An array in the dtype that sums of it have: small integers and booleans are summed as default integers."""
    d = x.aval.dtype
    if dtype is not None:
        return convert_element_type(x, dtype)
    if dtypes.is_bool(d):
        return convert_element_type(x, dtypes.default_int_dtype())
    if dtypes.is_integer(d) and promote:
        default = dtypes.default_uint_dtype() if dtypes.is_unsigned(d) else dtypes.default_int_dtype()
        return convert_element_type(x, default) if dtypes.iinfo(d).bits < dtypes.iinfo(default).bits else _strong(x)
    return _strong(x)


def _total(
    x: Any, fold: Any, combine: Any, neutral: int, axis: Axis, keepdims: bool, initial: Any, where: Any, name: str
) -> Any:
    if where is not None:
        x = _masked(x, where, make_scalar(neutral, x.aval.dtype), name)
    total = _reduced(x, fold, axis, keepdims, name)
    return total if initial is None else combine.bind(total, _initial(initial, x, name))


def _initial(initial: Any, x: Any, name: str) -> Any:
    value = convert_element_type(as_array(initial), x.aval.dtype)
    if value.aval.ndim:
        raise ValueError(f"{name}: `initial` is a scalar, got {value.aval.str_short()}")
    return value


def sum(
    self: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Any:
    """Sum over axes; None is all of them."""
    refuse_out("sum", out)
    x = _accumulated(self, dtype, promote_integers)
    if dtypes.is_bool(x.aval.dtype):  # asked for: whether any is true
        found = any_(x, axis, keepdims=keepdims, where=where)
        return found if initial is None else found | _initial(initial, x, "sum")
    return _total(x, reductions.reduce_sum_p, add_p, 0, axis, keepdims, initial, where, "sum")


def prod(
    self: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Any:
    """Product over axes; None is all of them."""
    refuse_out("prod", out)
    x = _accumulated(self, dtype, promote_integers)
    if dtypes.is_bool(x.aval.dtype):  # asked for: whether all are true
        found = all_(x, axis, keepdims=keepdims, where=where)
        return found if initial is None else found & _initial(initial, x, "prod")
    return _total(x, reductions.reduce_prod_p, mul_p, 1, axis, keepdims, initial, where, "prod")


# -- extremes and truth ------------------------------------------------------------------------------------------


def _extreme(
    x: Any, fold: Any, combine: Any, axis: Axis, keepdims: bool, initial: Any, where: Any, name: str, out: None
) -> Any:
    refuse_out(name, out)
    x = _strong(x)
    if initial is None:
        if where is not None:
            raise ValueError(f"{name}: with `where` give `initial`, the result where no element counts")
        axes = method_axes(split_axes(axis)[0], x.aval.ndim, f"{name}: axis")
        if builtins.any(x.aval.shape[a] == 0 for a in axes):
            raise ValueError(
                f"{name}: {x.aval.str_short()} has no elements along the reduced axes {axes}; give `initial`"
            )
        return _reduced(x, fold, axis, keepdims, name)
    least = _initial(initial, x, name)
    return combine.bind(_reduced(_masked(x, where, least, name), fold, axis, keepdims, name), least)


def max(
    self: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Largest element over axes.

    Raises:
        ValueError: there are no elements, or there is a mask, and no `initial`.
    """
    return _extreme(self, reductions.reduce_max_p, max_p, axis, keepdims, initial, where, "max", out)


def min(
    self: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Smallest element over axes.

    Raises:
        ValueError: there are no elements, or there is a mask, and no `initial`.
    """
    return _extreme(self, reductions.reduce_min_p, min_p, axis, keepdims, initial, where, "min", out)


def any_(self: Any, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Any:
    """Whether any element over axes is true (not zero)."""
    refuse_out("any", out)
    x = _as_bool(self)
    if where is not None:
        x = x & _mask(x, where, "any")
    return _reduced(x, reductions.reduce_or_p, axis, keepdims, "any")


def all_(self: Any, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Any:
    """Whether all elements over axes are true (not zero)."""
    refuse_out("all", out)
    x = _as_bool(self)
    if where is not None:
        x = x | ~_mask(x, where, "all")
    return _reduced(x, reductions.reduce_and_p, axis, keepdims, "all")


def _arg_extreme(x: Any, primitive: Any, axis: int | None, keepdims: bool | None, name: str, out: None) -> Any:
    refuse_out(name, out)
    ndim = x.aval.ndim
    flat = reshape(x, (x.aval.size,)) if axis is None else x
    index = 0 if axis is None else method_axis(axis, ndim, f"{name}: axis")
    if flat.aval.shape[index] == 0:
        raise ValueError(f"{name}: {x.aval.str_short()} has no elements along axis {axis}")
    found = primitive.bind(flat, axes=(index,), index_dtype=dtypes.default_int_dtype())
    if not keepdims:
        return found
    return expand_dims(found, tuple(range(ndim)) if axis is None else index)


def argmax(self: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
    """Index of the first largest element along an axis, or in the flattened array."""
    return _arg_extreme(self, reductions.argmax_p, axis, keepdims, "argmax", out)


def argmin(self: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
    """Index of the first smallest element along an axis, or in the flattened array."""
    return _arg_extreme(self, reductions.argmin_p, axis, keepdims, "argmin", out)


# -- moments -----------------------------------------------------------------------------------------------------


def _count(x: Any, axis: Axis, keepdims: bool, where: Any, dtype: Any, name: str, less: float = 0) -> Any:
    """How many elements count in each mean, less some, as a scalar or an array of a dtype; NaN where none is left."""
    if where is None:
        axis, names = split_axes(axis)
        count = elements_along(name, x.aval.shape, method_axes(axis, x.aval.ndim, f"{name}: axis"), names)
        number = builtins.max(count - less, 0)
        if isinstance(number, SymbolicDim):
            return make_scalar(number, dtype)
        return make_scalar(float(number) if number or not less else math.nan, dtype)
    counted = convert_element_type(_mask(x, where, name), dtype)
    count = _reduced(counted, reductions.reduce_sum_p, axis, keepdims, name)
    if not less:
        return count
    left = count - less
    return select_n_p.bind(left > 0, broadcast_to(make_scalar(math.nan, dtype), left.aval.shape), left)


def _spread_back(reduced: Any, shape: tuple[int, ...], axis: Axis) -> Any:
    """The result of reducing over axes repeated over them; a scalar stays one, since it mixes with any shape."""
    if not reduced.aval.shape:
        return reduced
    gone = method_axes(split_axes(axis)[0], len(shape), "var: axis")
    return broadcast_in_dim(reduced, shape, tuple(d for d in range(len(shape)) if d not in gone))


def _wide(d: Any) -> Any:
    """Narrow floating types are summed in float32, and rounded once."""
    return np.dtype(np.float32) if dtypes.is_float(d) and d.itemsize < 4 else d


def mean(
    self: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Any:
    """Mean over axes; None is all of them. Integers and booleans have a floating mean; that of no elements is NaN."""
    refuse_out("mean", out)
    d = dtypes.inexact_dtype_of(self.aval.dtype) if dtype is None else dtypes.canonicalize_dtype(dtype)
    wide = _wide(dtypes.inexact_dtype_of(d))
    x = self if self.aval.dtype == wide else convert_element_type(self, wide)
    total = _total(x, reductions.reduce_sum_p, add_p, 0, axis, keepdims, None, where, "mean")
    quotient = div_p.bind(total, _count(x, axis, keepdims, where, wide, "mean"))
    return quotient if wide == d else convert_element_type(quotient, d)


def var(
    self: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    correction: float | None = None,
) -> Any:
    """Variance over axes: the mean squared distance from the mean, with divisor `count - ddof` (or `- correction`).

    Raises:
        ValueError: `ddof` and `correction` are both given; or the dtype is real, and the array is not.
    """
    refuse_out("var", out)
    return _variance(self, axis, dtype, ddof_of("var", ddof, correction), keepdims, where, "var")


def _variance(self: Any, axis: Axis, dtype: Any, less: float, keepdims: bool, where: Any, name: str) -> Any:
    if dtype is not None and dtypes.is_complex(self.aval.dtype) and not dtypes.is_complex(dtypes.dtype(dtype)):
        raise ValueError(
            f"{name}: the dtype of the computation on {self.aval.str_short()} is complex too, got "
            f"{dtypes.dtype(dtype).name}; convert the result instead"
        )
    d = dtypes.inexact_dtype_of(self.aval.dtype) if dtype is None else dtypes.canonicalize_dtype(dtype)
    wide = _wide(dtypes.promote_types(dtypes.inexact_dtype_of(self.aval.dtype), dtypes.inexact_dtype_of(d)))
    x = self if self.aval.dtype == wide else convert_element_type(self, wide)
    axes, names = split_axes(axis)
    axis = (*method_axes(axes, x.aval.ndim, f"{name}: axis"), *names)
    where = None if where is None else _mask(x, where, name)
    centred = sub_p.bind(x, _spread_back(mean(x, axis, where=where), x.aval.shape, axis))
    if dtypes.is_complex(wide):
        squares = complex_numbers.real(centred) ** 2 + complex_numbers.imag(centred) ** 2
    else:
        squares = mul_p.bind(centred, centred)
    real = squares.aval.dtype
    total = _total(squares, reductions.reduce_sum_p, add_p, 0, axis, keepdims, None, where, name)
    free = _count(x, axis, keepdims, where, real, name, less)
    quotient = div_p.bind(total, free)
    narrow = dtypes.real_dtype_of(d) if dtype is None else d
    return quotient if narrow == real else convert_element_type(quotient, narrow)


def std(
    self: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    correction: float | None = None,
) -> Any:
    """Standard deviation over axes: the square root of `var`."""
    refuse_out("std", out)
    if dtype is not None and not dtypes.is_inexact(dtypes.dtype(dtype)):
        raise ValueError(f"std: the dtype is floating or complex, got {dtypes.dtype(dtype).name}")
    return sqrt_p.bind(_variance(self, axis, dtype, ddof_of("std", ddof, correction), keepdims, where, "std"))


# -- running sums ------------------------------------------------------------------------------------------------


def _running(x: Any, primitive: Any, axis: int | None, dtype: Any, out: None) -> Any:
    refuse_out(primitive.name, out)
    if axis is None or not x.aval.ndim:
        x = reshape(x, (x.aval.size,))
    axis = method_axis(0 if axis is None else axis, x.aval.ndim, f"{primitive.name}: axis")
    d = x.aval.dtype if dtype is None else dtypes.dtype(dtype)
    if dtype is not None and dtypes.is_bool(d):  # counted, and then whether there were any, or none that were zero
        counted = convert_element_type(_as_bool(x), dtypes.default_int_dtype())
        return _as_bool(primitive.bind(counted, axis=axis, reverse=False))
    if dtype is not None or dtypes.is_bool(d):
        x = convert_element_type(x, dtypes.default_int_dtype() if dtype is None else dtype)
    return primitive.bind(_strong(x), axis=axis, reverse=False)


def cumsum(self: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """Sums of the elements so far along an axis, or in the flattened array."""
    return _running(self, cumulative.cumsum_p, axis, dtype, out)


def cumprod(self: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """Products of the elements so far along an axis, or in the flattened array."""
    return _running(self, cumulative.cumprod_p, axis, dtype, out)


METHODS: Mapping[str, Any] = {
    **{f.__name__: f for f in (sum, prod, max, min, argmax, argmin, cumsum, cumprod)},
    **{f.__name__: remembered(f) for f in (mean, var, std)},
    "any": any_,
    "all": all_,
}
