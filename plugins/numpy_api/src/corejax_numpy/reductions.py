"""Reductions over axes, with NumPy's arguments: `axis` (None, one, several), `keepdims`, `dtype`, `where`.

Axes may include names of mapped axes (`vmap(axis_name="i")`), over which collectives reduce.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Array, dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import (
    Axis,
    array_argument,
    canonical_axes,
    canonical_axis,
    canonical_dtype,
    like,
    number_argument,
    refuse_out,
    strong,
    to_bool,
)
from corejax_numpy.named_axes import elements_along, reduce_over_names, split_axes

Fold = Callable[..., Any]


def _reduce(name: str, fold: Fold, x: Any, axis: Axis, keepdims: bool) -> Any:
    """Apply a reduction primitive over positional axes, and collectives over named ones."""
    names: tuple[str, ...] = ()
    if type(axis) is int and 0 <= axis < x.ndim:
        axes: tuple[int, ...] = (axis,)
    elif axis is None:
        axes = tuple(range(x.ndim))
    else:
        axis, names = split_axes(axis)
        axes = tuple(sorted(canonical_axes(axis, x.ndim, name=name)))
    out = fold(x, axes) if axes else number_argument(name, x)
    if names:
        out = reduce_over_names(name, fold.__name__, out, names)
    return lax.expand_dims(out, axes) if keepdims and axes else out


def count_along(name: str, shape: tuple[int, ...], axis: Axis) -> Any:
    """Return the number of elements that are reduced to one."""
    axes, names = split_axes(axis)
    return elements_along(name, shape, canonical_axes(axes, len(shape), name=name), names)


def mask_argument(name: str, where: Any, x: Any) -> Any:
    """Return an argument `where` as a boolean array of the shape of `x`; None stays None.

    Raises:
        ValueError: the mask is not boolean, or does not broadcast to the shape.
    """
    if where is None:
        return None
    mask = array_argument(name, where)
    if not dtypes.is_bool(mask.dtype):
        raise ValueError(f"{name}: `where` is a boolean array, got {mask.aval.str_short()}")
    if mask.shape == x.shape:
        return mask
    try:
        return lax.broadcast_to(mask, x.shape)
    except ValueError:
        raise ValueError(
            f"{name}: `where` has shape {mask.shape}, which does not broadcast to the array's, {x.shape}"
        ) from None


def _masked(name: str, x: Any, where: Any, otherwise: Any) -> Any:
    """Replace the elements that the mask excludes by the neutral element `otherwise`."""
    if where is None:
        return x
    if lax.is_python_scalar(otherwise):
        otherwise = like(x, otherwise)
    return lax.select(mask_argument(name, where, x), x, otherwise)


def _initial(name: str, initial: Any, dtype: Any) -> Any:
    """Return an argument `initial` as a scalar of a dtype.

    Raises:
        ValueError: `initial` is not a scalar.
    """
    if lax.is_python_scalar(initial):
        return lax.convert_element_type(initial, dtype)
    value = lax.convert_element_type(array_argument(name, initial), dtype)
    if value.ndim:
        raise ValueError(f"{name}: `initial` is a scalar, got {value.aval.str_short()}")
    return value


def spread_back(reduced: Any, shape: tuple[int, ...], axis: Axis) -> Any:
    """Broadcast the result of a reduction back over the reduced axes; a scalar stays one, as it fits any shape."""
    if not reduced.shape:
        return reduced
    reduced_axes = canonical_axes(split_axes(axis)[0], len(shape))
    return lax.broadcast_in_dim(reduced, shape, tuple(d for d in range(len(shape)) if d not in reduced_axes))


# -- sums and products -------------------------------------------------------------------------------------------


def sum_dtype(dtype: Any) -> Any:
    """Return the dtype of a sum: booleans and narrow integers are summed as default integers."""
    if dtypes.is_bool(dtype):
        return dtypes.default_int_dtype()
    if not dtypes.is_integer(dtype):
        return dtype
    default = dtypes.default_uint_dtype() if dtypes.is_unsigned(dtype) else dtypes.default_int_dtype()
    return default if dtypes.iinfo(dtype).bits < dtypes.iinfo(default).bits else dtype


def _reduce_truth_values(name: str, combine: Any, x: Any, axis: Axis, keepdims: bool, initial: Any, where: Any) -> Any:
    """Reduce truth values: the sum of booleans is `any`, their product is `all`."""
    fold, combine = (lax.reduce_or, lax.bitwise_or) if combine is lax.add else (lax.reduce_and, lax.bitwise_and)
    total = _reduce(name, fold, _masked(name, to_bool(x), where, fold is lax.reduce_and), axis, keepdims)
    return total if initial is None else combine(total, _initial(name, initial, total.dtype))


_SUM = """Sum the elements over axes.

    Args:
        a: the array.
        axis: the axis or axes to sum over; None, the default, sums over all. A string names a mapped axis, as for
            `lax.psum`.
        dtype: dtype of the result; by default the array's dtype, or the default integer dtype for booleans and narrower
            integers.
        out: not supported; must be None.
        keepdims: whether the reduced axes stay in the result, with size 1.
        initial: a scalar to start from; 0 by default.
        where: a boolean array that broadcasts to the shape of `a`; elements where it is False are skipped.
        promote_integers: whether narrow integers are summed in the default integer dtype; True by default.

    Raises:
        ValueError: an axis does not exist, or is given twice; the mask is not boolean or does not broadcast.
        NotImplementedError: `out` is given.
    """


def _accumulation(name: str, fold: Fold, combine: Any, neutral: int, doc: str) -> Fold:
    def function(
        a: Any,
        axis: Axis = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
        promote_integers: bool = True,
    ) -> Any:
        refuse_out(name, out)
        x = array_argument(name, a)
        if dtype is not None or x.aval.weak_type or not dtypes.is_inexact(x.aval.dtype):
            keep = not promote_integers and not dtypes.is_bool(x.dtype)
            wanted = canonical_dtype(dtype) or (x.dtype if keep else sum_dtype(x.dtype))
            if dtypes.is_bool(wanted):
                return _reduce_truth_values(name, combine, x, axis, keepdims, initial, where)
            x = lax.convert_element_type(x, wanted)
        total = _reduce(name, fold, _masked(name, x, where, neutral), axis, keepdims)
        return total if initial is None else combine(total, _initial(name, initial, x.dtype))

    lax.named(function, name, doc)
    return function


sum = _accumulation("sum", lax.reduce_sum, lax.add, 0, _SUM)
prod = _accumulation("prod", lax.reduce_prod, lax.mul, 1, "Multiply the elements over axes; arguments as for `sum`.")


def count_nonzero(a: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """Count the elements that differ from zero, over axes."""
    x = lax.convert_element_type(to_bool(array_argument("count_nonzero", a)), dtypes.default_int_dtype())
    return _reduce("count_nonzero", lax.reduce_sum, x, axis, keepdims)


# -- extremes ----------------------------------------------------------------------------------------------------


def _extreme(
    name: str, fold: Fold, combine: Any, a: Any, axis: Axis, out: None, keepdims: bool, initial: Any, where: Any
) -> Any:
    refuse_out(name, out)
    x = strong(array_argument(name, a))
    if initial is None:
        if where is not None:
            raise ValueError(f"{name}: with `where` give `initial`, the result if the mask excludes all elements")
        if 0 in x.shape:
            axes = canonical_axes(split_axes(axis)[0], x.ndim, name=name)
            if 0 in [x.shape[d] for d in axes]:
                raise ValueError(
                    f"{name}: {x.aval.str_short()} has no elements along the reduced axes {axes}; give `initial`"
                )
        return _reduce(name, fold, x, axis, keepdims)
    initial = _initial(name, initial, x.dtype)
    return combine(_reduce(name, fold, _masked(name, x, where, initial), axis, keepdims), initial)


_MAX = """Return the largest element over axes; NaN if any element is NaN.

    Args:
        a: the array.
        axis: the axis or axes to reduce; None, the default, reduces all.
        out: not supported; must be None.
        keepdims: whether the reduced axes stay in the result, with size 1.
        initial: a scalar that is compared with the elements; required if there are none, or with `where`.
        where: a boolean array that broadcasts to the shape of `a`; elements where it is False are skipped.

    Raises:
        ValueError: `initial` is missing, and there are no elements or a mask; or an axis does not exist.
        NotImplementedError: `out` is given.
    """


def _extreme_element(name: str, fold: Fold, combine: Any, of_two: str, doc: str) -> Fold:
    def function(
        a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Any:
        if isinstance(axis, Array | np.ndarray) and axis.ndim:
            raise TypeError(f"{name}: the second argument is the axis; for two arrays use corejax.numpy.{of_two}(x, y)")
        return _extreme(name, fold, combine, a, axis, out, keepdims, initial, where)

    lax.named(function, name, doc)
    return function


max = _extreme_element("max", lax.reduce_max, lax.max, "maximum", _MAX)
_MIN = "Return the smallest element over axes; NaN if any element is NaN. Arguments as for `max`."
min = _extreme_element("min", lax.reduce_min, lax.min, "minimum", _MIN)


def minmax(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> tuple[Any, Any]:
    """Return the smallest and the largest element over axes; arguments as for `max`.

    `initial` is one scalar, or a tuple of two: one for the smallest and one for the largest element.
    """
    lowest, highest = initial if isinstance(initial, tuple) else (initial, initial)
    refuse_out("minmax", out)
    return min(a, axis, None, keepdims, lowest, where), max(a, axis, None, keepdims, highest, where)


def ptp(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False) -> Any:
    """Return the difference between the largest and the smallest element over axes; arguments as for `max`."""
    refuse_out("ptp", out)
    x = array_argument("ptp", a)
    if dtypes.is_bool(x.dtype):
        raise TypeError(f"ptp: booleans have no differences, got {x.aval.str_short()}")
    return lax.sub(
        _extreme("ptp", lax.reduce_max, lax.max, x, axis, None, keepdims, None, None),
        _extreme("ptp", lax.reduce_min, lax.min, x, axis, None, keepdims, None, None),
    )


def index_of(name: str, find: Any, a: Any, axis: int | None, out: None, keepdims: bool | None) -> Any:
    """Find the index of an extreme along an axis with `find`, which is `lax.argmax` or `lax.argmin`."""
    refuse_out(name, out)
    x = array_argument(name, a)
    ndim = x.ndim
    if axis is None:
        x, place = lax.reshape(x, (x.size,)), 0
    else:
        place = canonical_axis(axis, ndim, name=name)
    if x.shape[place] == 0:
        raise ValueError(
            f"attempt to get {name} of an empty sequence: {x.aval.str_short()} has no elements along axis {place}"
        )
    index = find(x, place, dtypes.default_int_dtype())
    if not keepdims:
        return index
    return lax.expand_dims(index, tuple(range(ndim)) if axis is None else (place,))


def argmax(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
    """Return the index of the largest element along an axis; the first, if several are equal, and that of a NaN.

    Args:
        a: the array.
        axis: the axis to search; None, the default, searches the flattened array.
        out: not supported; must be None.
        keepdims: whether the axis stays in the result, with size 1.

    Raises:
        ValueError: there are no elements, or the axis does not exist.
        NotImplementedError: `out` is given.
    """
    return index_of("argmax", lax.argmax, a, axis, out, keepdims)


def argmin(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
    """Return the index of the smallest element along an axis; arguments as for `argmax`."""
    return index_of("argmin", lax.argmin, a, axis, out, keepdims)


# -- truth -------------------------------------------------------------------------------------------------------


def all(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Any:
    """Test whether all elements over axes differ from zero; True if there are no elements. Arguments as for `sum`."""
    refuse_out("all", out)
    x = to_bool(array_argument("all", a))
    return _reduce("all", lax.reduce_and, _masked("all", x, where, True), axis, keepdims)


def any(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Any:
    """Test whether any element over axes differs from zero; False if there are no elements. Arguments as for `sum`."""
    refuse_out("any", out)
    x = to_bool(array_argument("any", a))
    return _reduce("any", lax.reduce_or, _masked("any", x, where, False), axis, keepdims)
