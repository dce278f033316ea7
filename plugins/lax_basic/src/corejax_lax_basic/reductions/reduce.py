"""Reductions over axes.

    reduce_sum : a[*s] -> a[*s without the axes]

Also reduce_prod, reduce_max, reduce_min, reduce_and, reduce_or, reduce_xor, argmax, argmin. The dtype and weak type are
the operand's; integers wrap around. Over no elements the result is the operation's neutral element. Each function
raises TypeError for dtypes that its docstring does not name, and ValueError for axes that the operand does not have or
that are given twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import defzero, get_aval
from corejax_lax_basic._base.derivatives import jvp_rule, linear, tangents_with_result
from corejax_lax_basic._base.type_rules import ANY, INTEGRAL, NUMERIC
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.elementwise.arithmetic import add, div, mul
from corejax_lax_basic.elementwise.comparison import eq
from corejax_lax_basic.reductions._family import (
    ADD,
    AND,
    MAXIMUM,
    MINIMUM,
    MULTIPLY,
    OR,
    XOR,
    Axes,
    index_reduction,
    reduced_shape,
    reduction,
)
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim
from corejax_lax_basic.shape.rearranging import reshape
from corejax_lax_basic.shape.slicing import slice_in_dim

__all__: list[str] = []  # rows bring their own names


def _repeated(x: Any, shape: tuple[int, ...], axes: Axes) -> Any:
    """Broadcast a reduction's result along the axes that were reduced."""
    return broadcast_in_dim(x, shape, tuple(i for i in range(len(shape)) if i not in axes))


# -- sums ----------------------------------------------------------------------------------------------------------

reduce_sum, reduce_sum_p = reduction(
    "reduce_sum", ADD, NUMERIC,
    linear(lambda ct, x, *, axes: [_repeated(ct, x.aval.shape, axes)]),
    "Sum over `axes`; integer, floating-point or complex. 16-bit floats are accumulated in float32.",
    linear_in=(0,),
)  # fmt: skip

# -- products ------------------------------------------------------------------------------------------------------


def _prod_jvp(t: Any, x: Any, *, axes: Axes) -> Any:
    """Apply the product rule to halves, quarters, ...: exact also for zeros, in about log2(n) steps."""
    out_shape = reduced_shape("reduce_prod", get_aval(x), axes)
    for axis in axes:
        x, t = _prod_along(x, t, axis)
    return reshape(t, out_shape)


def _prod_along(x: Any, t: Any, axis: int) -> tuple[Any, Any]:
    """Return the product along an axis and its tangent; the axis stays, with size 1."""
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


reduce_prod, reduce_prod_p = reduction(
    "reduce_prod", MULTIPLY, NUMERIC,
    jvp_rule(_reduce_prod_jvp),
    "Multiply over `axes`; integer, floating-point or complex. 16-bit floats are accumulated in float32.",
)  # fmt: skip

# -- extrema -------------------------------------------------------------------------------------------------------


def _extremum_jvp(t: Any, out: Any, x: Any, *, axes: Axes) -> Any:
    """Return the mean of the tangents of the elements that equal the extremum."""
    if not get_aval(x).size:
        return None  # the extremum of no elements is a constant
    chosen = convert_element_type(eq(x, _repeated(out, get_aval(x).shape, axes)), get_aval(t).dtype)
    return div(reduce_sum(mul(chosen, t), axes), reduce_sum(chosen, axes))


reduce_max, reduce_max_p = reduction(
    "reduce_max", MAXIMUM, ANY,
    tangents_with_result(_extremum_jvp),
    "Return the maximum over `axes`, NaN if any element is NaN; any dtype. Elements that tie share the derivative.",
)  # fmt: skip

reduce_min, reduce_min_p = reduction(
    "reduce_min", MINIMUM, ANY,
    tangents_with_result(_extremum_jvp),
    "Return the minimum over `axes`, NaN if any element is NaN; any dtype. Elements that tie share the derivative.",
)  # fmt: skip

argmax, argmax_p = index_reduction(
    "argmax", np.argmax, defzero,
    """Return the index of the maximum along an axis: the first of equal maxima, or the first NaN.

    Args:
        operand: boolean, integer or floating-point array.
        axis: the axis to search, counted from the front.
        index_dtype: integer dtype of the result; by default the dtype of a Python int.

    Raises:
        TypeError: the dtype is complex, or `index_dtype` is not an integer dtype.
        ValueError: the operand does not have the axis, or the axis has no elements.
    """,
)  # fmt: skip

argmin, argmin_p = index_reduction(
    "argmin", np.argmin, defzero,
    "Return the index of the minimum along an axis; otherwise as `argmax`.",
)  # fmt: skip

# -- bits ----------------------------------------------------------------------------------------------------------

reduce_and, reduce_and_p = reduction(
    "reduce_and", AND, INTEGRAL, defzero,
    'Compute the bitwise "and" over `axes`, for booleans whether all are True; boolean or integer.',
)  # fmt: skip

reduce_or, reduce_or_p = reduction(
    "reduce_or", OR, INTEGRAL, defzero,
    'Compute the bitwise "or" over `axes`, for booleans whether any is True; boolean or integer.',
)  # fmt: skip

reduce_xor, reduce_xor_p = reduction(
    "reduce_xor", XOR, INTEGRAL, defzero,
    'Compute the bitwise exclusive "or" over `axes`, for booleans whether an odd number is True; boolean or integer.',
)  # fmt: skip
