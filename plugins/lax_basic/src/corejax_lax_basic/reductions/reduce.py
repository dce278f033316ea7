"""Reductions over axes: reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or argmax argmin.

    reduce_sum : a[*s] -> a[*s without the axes]

The dtype and weak type are the operand's: integers wrap around, nothing is widened. Over no elements the result is
the operation's neutral element. Each function raises TypeError for dtypes not named, ValueError for axes that the
operand does not have or that are given twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    Primitive,
    ShapedArray,
    defjvp_with_result,
    deflinear,
    defzero,
    dtypes,
    get_aval,
    jvp_rules,
    vmap_rules,
)
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import canonical_axes, canonical_axis
from corejax_lax_basic._base.narrow_floats import through_float32
from corejax_lax_basic._base.type_rules import ANY, INTEGRAL, NUMERIC, ORDERED, Kinds, check_kind
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.elementwise.arithmetic import add, div, mul
from corejax_lax_basic.elementwise.comparison import eq
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim
from corejax_lax_basic.shape.rearranging import reshape
from corejax_lax_basic.shape.slicing import slice_in_dim

Axes = tuple[int, ...]

# -- functions ---------------------------------------------------------------------------------------------


def _over(name: str, x: Any, axes: Sequence[int]) -> Axes:
    return tuple(sorted(canonical_axes(axes, get_aval(x).ndim, f"{name}: axis")))


def reduce_sum(x: Any, axes: Sequence[int]) -> Any:
    """Sum over `axes`; integer, floating-point or complex. 16-bit floats are accumulated in float32."""
    return reduce_sum_p.bind(x, axes=_over("reduce_sum", x, axes))


def reduce_prod(x: Any, axes: Sequence[int]) -> Any:
    """Product over `axes`; integer, floating-point or complex. 16-bit floats are accumulated in float32."""
    return reduce_prod_p.bind(x, axes=_over("reduce_prod", x, axes))


def reduce_max(x: Any, axes: Sequence[int]) -> Any:
    """Maximum over `axes`, NaN if there is one; any dtype. Elements that tie share the derivative."""
    return reduce_max_p.bind(x, axes=_over("reduce_max", x, axes))


def reduce_min(x: Any, axes: Sequence[int]) -> Any:
    """Minimum over `axes`, NaN if there is one; any dtype. Elements that tie share the derivative."""
    return reduce_min_p.bind(x, axes=_over("reduce_min", x, axes))


def reduce_and(x: Any, axes: Sequence[int]) -> Any:
    """Bitwise and over `axes`, "all" for booleans; boolean or integer."""
    return reduce_and_p.bind(x, axes=_over("reduce_and", x, axes))


def reduce_or(x: Any, axes: Sequence[int]) -> Any:
    """Bitwise or over `axes`, "any" for booleans; boolean or integer."""
    return reduce_or_p.bind(x, axes=_over("reduce_or", x, axes))


def argmax(x: Any, axis: int, index_dtype: Any = None) -> Any:
    """Index of the maximum along an axis: of the first NaN if there is one, of the first of equals.

    Args:
        x: boolean, integer or floating-point array.
        axis: the axis.
        index_dtype: integer dtype of the result; by default that of a Python int.

    Raises:
        TypeError: the dtype is complex, or `index_dtype` is not an integer dtype.
        ValueError: there is no such axis, or it has no elements.
    """
    return argmax_p.bind(x, axes=_along("argmax", x, axis), index_dtype=_index_dtype(index_dtype))


def argmin(x: Any, axis: int, index_dtype: Any = None) -> Any:
    """Index of the minimum along an axis; otherwise as `argmax`."""
    return argmin_p.bind(x, axes=_along("argmin", x, axis), index_dtype=_index_dtype(index_dtype))


def _along(name: str, x: Any, axis: int) -> Axes:
    return (canonical_axis(axis, get_aval(x).ndim, f"{name}: axis"),)


def _index_dtype(given: Any) -> np.dtype[Any]:
    return dtypes.default_int_dtype() if given is None else dtypes.dtype(given)


# -- impl rules --------------------------------------------------------------------------------------------


def neutral_element(name: str, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """What the reduction of nothing gives: 0, 1, the least or greatest value, all bits set."""
    if name in ("reduce_sum", "reduce_or"):
        return np.zeros((), dtype)
    if name == "reduce_prod":
        return np.ones((), dtype)
    if name == "reduce_and":
        return np.invert(np.zeros((), dtype), dtype=dtype, casting="unsafe")
    sign = -1 if name == "reduce_max" else 1
    if dtypes.is_bool(dtype):
        return np.array(sign > 0, dtype)
    if dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        return np.array(int(info.min) if sign < 0 else int(info.max), dtype)
    return np.array(sign * np.inf, dtype)


def _folded(name: str, ufunc: np.ufunc) -> Callable[..., Any]:
    def impl(x: Any, *, axes: Axes) -> Any:
        if x.size:
            return ufunc.reduce(x, axis=axes, dtype=x.dtype)
        return ufunc.reduce(x, axis=axes, dtype=x.dtype, initial=neutral_element(name, x.dtype)[()])

    return through_float32(impl) if name in ("reduce_sum", "reduce_prod") else impl


def _indexed(find: Callable[..., Any]) -> Callable[..., Any]:
    def impl(x: Any, *, axes: Axes, index_dtype: np.dtype[Any]) -> Any:
        return np.asarray(find(x, axis=axes[0])).astype(index_dtype)

    return impl


# -- abstract-eval and vmap rules --------------------------------------------------------------------------


def _reduced_shape(name: str, x: ShapedArray, axes: Axes) -> tuple[int, ...]:
    if len(set(axes)) != len(axes) or any(not 0 <= a < x.ndim for a in axes):
        raise ValueError(f"{name}: axes {axes} are not distinct axes of {x.str_short()}, which has {x.ndim}")
    return tuple(d for i, d in enumerate(x.shape) if i not in axes)


def _reduction(name: str, accepts: Kinds) -> Callable[..., ShapedArray]:
    @takes(name, 1)
    def abstract_eval(x: ShapedArray, *, axes: Axes) -> ShapedArray:
        check_kind(name, x, accepts)
        return ShapedArray(_reduced_shape(name, x, axes), x.dtype, x.weak_type)

    return abstract_eval


def _index_reduction(name: str) -> Callable[..., ShapedArray]:
    @takes(name, 1)
    def abstract_eval(x: ShapedArray, *, axes: Axes, index_dtype: np.dtype[Any]) -> ShapedArray:
        check_kind(name, x, ORDERED)
        if not dtypes.is_integer(index_dtype):
            raise TypeError(f"{name}: index_dtype has to be an integer dtype, got {np.dtype(index_dtype).name}")
        if len(axes) != 1:
            raise ValueError(f"{name}: takes one axis, got axes {axes}")
        shape = _reduced_shape(name, x, axes)
        if x.shape[axes[0]] == 0:
            raise ValueError(f"{name}: axis {axes[0]} of {x.str_short()} has no elements to choose from")
        return ShapedArray(shape, index_dtype)

    return abstract_eval


def _defreduction(*primitives: Primitive) -> None:
    """Register the vmap rule of reductions: the axes move over to make room for the batching axis."""
    for primitive in primitives:

        def vmap(axis_size: int, vals: Any, dims: Any, *, axes: Axes, _p: Any = primitive, **params: Any) -> Any:
            (x,), (d,) = vals, dims
            moved = tuple(a + (a >= d) for a in axes)
            return _p.bind(x, axes=moved, **params), d - sum(a < d for a in moved)

        vmap.__name__ = f"{primitive.name}_vmap"
        vmap_rules.register(primitive, vmap)


def _fold(
    name: str, ufunc: np.ufunc, accepts: Kinds, function: Callable[..., Any], linear_in: tuple[int, ...] = ()
) -> dict[str, Any]:
    """Arguments of `Primitive` for a reduction by a NumPy ufunc; `function` has the documentation."""
    return {
        "name": name,
        "impl": _folded(name, ufunc),
        "abstract_eval": _reduction(name, accepts),
        "linear_in": linear_in,
        "doc": function.__doc__,
    }


# -- primitives --------------------------------------------------------------------------------------------

# fmt: off
reduce_sum_p  = Primitive(**_fold("reduce_sum",  np.add,         NUMERIC,  reduce_sum, linear_in=(0,)))
reduce_prod_p = Primitive(**_fold("reduce_prod", np.multiply,    NUMERIC,  reduce_prod))
reduce_max_p  = Primitive(**_fold("reduce_max",  np.maximum,     ANY,      reduce_max))
reduce_min_p  = Primitive(**_fold("reduce_min",  np.minimum,     ANY,      reduce_min))
reduce_and_p  = Primitive(**_fold("reduce_and",  np.bitwise_and, INTEGRAL, reduce_and))
reduce_or_p   = Primitive(**_fold("reduce_or",   np.bitwise_or,  INTEGRAL, reduce_or))
argmax_p = Primitive("argmax", impl=_indexed(np.argmax), abstract_eval=_index_reduction("argmax"), doc=argmax.__doc__)
argmin_p = Primitive("argmin", impl=_indexed(np.argmin), abstract_eval=_index_reduction("argmin"), doc=argmin.__doc__)
# fmt: on
_defreduction(reduce_sum_p, reduce_prod_p, reduce_max_p, reduce_min_p, reduce_and_p, reduce_or_p, argmax_p, argmin_p)

# -- derivatives -------------------------------------------------------------------------------------------


def _repeated(x: Any, shape: tuple[int, ...], axes: Axes) -> Any:
    """A reduction's result repeated over the axes that were reduced."""
    return broadcast_in_dim(x, shape, tuple(i for i in range(len(shape)) if i not in axes))


def _extremum_jvp(t: Any, out: Any, x: Any, *, axes: Axes) -> Any:
    """The mean of the tangents of the elements that are the extremum."""
    if not get_aval(x).size:
        return None  # the extremum of nothing is a constant
    chosen = convert_element_type(eq(x, _repeated(out, get_aval(x).shape, axes)), get_aval(t).dtype)
    return div(reduce_sum(mul(chosen, t), axes), reduce_sum(chosen, axes))


def _prod_jvp(t: Any, x: Any, *, axes: Axes) -> Any:
    """The product rule over halves, quarters, ...: exact where elements are zero, in about log2(n) steps."""
    out_shape = _reduced_shape("reduce_prod", get_aval(x), axes)
    for axis in axes:
        x, t = _prod_along(x, t, axis)
    return reshape(t, out_shape)


def _prod_along(x: Any, t: Any, axis: int) -> tuple[Any, Any]:
    """Product along an axis and its tangent; the axis stays, with size 1."""
    leftovers = []
    while (size := get_aval(x).shape[axis]) > 1:
        half = size // 2
        if size % 2:
            leftovers.append((slice_in_dim(x, size - 1, size, axis=axis), slice_in_dim(t, size - 1, size, axis=axis)))
        x, t = _product_rule(
            *(slice_in_dim(v, 0, half, axis=axis) for v in (x, t)),
            *(slice_in_dim(v, half, 2 * half, axis=axis) for v in (x, t)),
        )
    for y, s in leftovers:
        x, t = _product_rule(x, t, y, s)
    return x, t


def _product_rule(x: Any, s: Any, y: Any, t: Any) -> tuple[Any, Any]:
    return mul(x, y), add(mul(s, y), mul(x, t))


def _reduce_prod_jvp(primals: Any, tangents: Any, *, axes: Axes) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    out = reduce_prod_p.bind(x, axes=axes)
    empty = any(get_aval(x).shape[a] == 0 for a in axes)
    return out, None if t is None or empty else _prod_jvp(t, x, axes=axes)


deflinear(reduce_sum_p, lambda ct, x, *, axes: [_repeated(ct, x.aval.shape, axes)])
jvp_rules.register(reduce_prod_p, _reduce_prod_jvp, symbolic_zeros=True)
defjvp_with_result(reduce_max_p, _extremum_jvp)
defjvp_with_result(reduce_min_p, _extremum_jvp)
for _primitive in (reduce_and_p, reduce_or_p, argmax_p, argmin_p):
    defzero(_primitive)
