"""Differences of neighbours and functions built on them: gradients, integrals, phase unwrapping."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import (
    array_argument,
    canonical_axes,
    canonical_axis,
    like,
    promote_dtypes,
    static_int,
)
from corejax_numpy.cumulative import cumsum
from corejax_numpy.elementwise import absolute, remainder
from corejax_numpy.joining import concatenate
from corejax_numpy.manipulation import moveaxis, ravel, slice_along
from corejax_numpy.reductions import sum


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Compute differences of neighbours along an axis, `n` times; for booleans, whether the neighbours differ.

    Args:
        a: an array of at least one axis.
        n: how many times differences are taken, 1 by default.
        axis: the axis, by default the last; its size in the result is smaller by `n`.
        prepend: values to put before the elements first: an array or a scalar.
        append: values to put after the elements first: an array or a scalar.

    Raises:
        ValueError: the array is a scalar, the axis does not exist, or `n` is negative.
    """
    x = array_argument("diff", a)
    times = static_int("diff", n, "n")
    if times == 0:
        return x
    if times < 0:
        raise ValueError(f"diff: n must not be negative, got n={n}")
    if not x.ndim:
        raise ValueError(f"diff takes an array of at least one dimension, got {x.aval.str_short()}")
    axis = canonical_axis(axis, x.ndim, name="diff")
    parts = [_extension(x, axis, prepend), x, _extension(x, axis, append)]
    if prepend is not None or append is not None:
        x = concatenate([part for part in parts if part is not None], axis)
    for _ in range(min(times, x.shape[axis])):  # after that many steps the axis is empty
        x = _differences(x, axis)
    return x


def _extension(x: Any, axis: int, values: Any) -> Any:
    if values is None:
        return None
    values = array_argument("diff", values)
    return values if values.ndim else lax.broadcast_to(values, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))


def _differences(x: Any, axis: int) -> Any:
    size = x.shape[axis]
    after, before = slice_along(x, axis, min(1, size), None), slice_along(x, axis, 0, max(size - 1, 0))
    return lax.ne(after, before) if dtypes.is_bool(x.dtype) else lax.sub(after, before)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Compute differences of neighbours in the flattened array, optionally between two other arrays.

    Args:
        ary: the array.
        to_end: values to put after the differences.
        to_begin: values to put before the differences.

    Raises:
        TypeError: the array is boolean.
    """
    x = ravel(array_argument("ediff1d", ary))
    if dtypes.is_bool(x.dtype):
        raise TypeError(f"ediff1d takes numbers, not booleans; got {x.aval.str_short()}")
    parts = [_differences(x, 0)]
    if to_begin is not None:
        parts.insert(0, lax.convert_element_type(ravel(array_argument("ediff1d", to_begin, 2)), x.dtype))
    if to_end is not None:
        parts.append(lax.convert_element_type(ravel(array_argument("ediff1d", to_end, 1)), x.dtype))
    return lax.concatenate(parts, 0) if len(parts) > 1 else parts[0]


def gradient(f: Any, *varargs: Any, axis: int | Sequence[int] | None = None, edge_order: int | None = None) -> Any:
    """Compute the gradient: central differences in the interior, one-sided differences at the edges.

    Args:
        f: values on a grid.
        varargs: the grid spacing, one for all axes or one for each: a number, or the vector of coordinates, which need
            not be evenly spaced. 1 by default.
        axis: the axis or axes; None, the default, is all of them.
        edge_order: order of the differences at the edges; only 1 (or None) is supported.

    Returns:
        An array of the shape of `f`, or a list of such arrays if there are several axes.

    Raises:
        ValueError: an axis has fewer than 2 points, or does not exist; or the shape of a spacing does not match.
        TypeError: the number of spacings is neither 1 nor the number of axes.
        NotImplementedError: `edge_order` is neither None nor 1.
    """
    if edge_order not in (None, 1):
        raise NotImplementedError(f"gradient: only edge_order 1 is supported, got edge_order={edge_order!r}")
    x, *spacing = promote_dtypes("gradient", array_argument("gradient", f), *varargs, inexact=True)
    axes = canonical_axes(axis, x.ndim, name="gradient")
    if not axes:
        return []
    if any(x.shape[d] < 2 for d in axes):
        raise ValueError(f"gradient: axes have 2 points or more, got {x.aval.str_short()} along axes {axes}")
    if not spacing:
        spacing = [like(x, 1)]
    if len(spacing) not in (1, len(axes)):
        raise TypeError(f"gradient: one spacing, or one for each of {len(axes)} axes, got {len(spacing)}")
    spacing = spacing * len(axes) if len(spacing) == 1 else spacing
    slopes = [_slopes(x, h, d) for d, h in zip(axes, spacing, strict=True)]
    return slopes[0] if len(slopes) == 1 else slopes


def _slopes(x: Any, h: Any, axis: int) -> Any:
    if h.ndim > 1 or (h.ndim and h.shape[0] != x.shape[axis]):
        raise ValueError(
            f"gradient: the spacing along axis {axis} of {x.aval.str_short()} is a number, or {x.shape[axis]} "
            f"coordinates; got {h.aval.str_short()}"
        )
    steps = _differences(x, axis)
    first, last = slice_along(steps, axis, 0, 1), slice_along(steps, axis, -1, None)
    if not h.ndim:
        inner = lax.sub(slice_along(x, axis, 2, None), slice_along(x, axis, 0, x.shape[axis] - 2))
        inner = lax.div(lax.mul(inner, like(inner, 0.5)), h)
        return lax.concatenate([lax.div(first, h), inner, lax.div(last, h)], axis)
    widths = lax.broadcast_in_dim(_differences(h, 0), steps.shape, (axis,))
    slopes = lax.div(steps, widths)
    # The second-order difference on an uneven grid: the slopes on both sides, each weighted by the other's width.
    left, right = slice_along(slopes, axis, 0, -1), slice_along(slopes, axis, 1, None)
    before, after = slice_along(widths, axis, 0, -1), slice_along(widths, axis, 1, None)
    inner = lax.div(lax.add(lax.mul(left, after), lax.mul(right, before)), lax.add(before, after))
    return lax.concatenate([slice_along(slopes, axis, 0, 1), inner, slice_along(slopes, axis, -1, None)], axis)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integrate along an axis by the trapezoidal rule.

    Args:
        y: values of the function.
        x: the points of the values: a vector, or an array that broadcasts with `y`; by default they are `dx` apart.
        dx: the distance of neighbours, 1 by default: a number, or an array that broadcasts with the sums of neighbours
            along `axis`.
        axis: the axis to integrate along, by default the last.

    Raises:
        ValueError: the axis does not exist, or the shape of `x` does not match.
    """
    (y,) = promote_dtypes("trapezoid", array_argument("trapezoid", y), inexact=True)
    if x is None:
        y, dx = promote_dtypes("trapezoid", y, dx)
        axis = canonical_axis(axis, y.ndim, name="trapezoid")
        if dx.ndim:  # broadcast first, then move the axis
            dx = lax.expand_dims(dx, range(y.ndim - dx.ndim))
            dx = moveaxis(dx, axis - y.ndim, -1)
        y = moveaxis(y, axis, -1)
    else:
        y, x = promote_dtypes("trapezoid", y, x)
        if not x.ndim:
            raise ValueError(
                f"trapezoid: `x` must have at least one axis, got {x.aval.str_short()}; use `dx` for a distance"
            )
        y = moveaxis(y, canonical_axis(axis, y.ndim, name="trapezoid"), -1)
        if x.ndim > 1:  # `x` may have more axes than `y`
            x = moveaxis(x, canonical_axis(axis, x.ndim, name="trapezoid"), -1)
        dx = _differences(x, x.ndim - 1)
    last = y.ndim - 1
    size = y.shape[last]
    sums = lax.add(slice_along(y, last, min(1, size), None), slice_along(y, last, 0, max(size - 1, 0)))
    half = lax.mul(dx, like(dx, 0.5))  # halved before the sum, because narrow dtypes overflow soon
    return sum(lax.mul(*lax.broadcast_operands(sums, half, name="trapezoid")), -1)


def unwrap(p: Any, discont: Any = None, axis: int = -1, period: Any = 2 * math.pi) -> Any:
    """Unwrap angles: add multiples of the period where neighbours differ by more than half a period.

    Args:
        p: angles.
        discont: the smallest jump that is removed; at least, and by default, half a period.
        axis: the axis to unwrap along, by default the last.
        period: the period, 2 pi by default; integer angles with an integer period stay integers.

    Raises:
        ValueError: the axis does not exist.
        TypeError: the angles are complex.
    """
    x, period = promote_dtypes("unwrap", array_argument("unwrap", p), period)
    if dtypes.is_complex(x.dtype):
        raise TypeError(f"unwrap: angles are real numbers, got {x.aval.str_short()}")
    axis = canonical_axis(axis, x.ndim, name="unwrap")
    if not x.shape[axis]:
        return x
    whole = dtypes.is_integer(x.dtype)
    two = like(period, 2)
    half = period // two if whole else lax.div(period, two)
    steps = _differences(x, axis)
    wrapped = lax.sub(remainder(lax.add(steps, half), period), half)
    # A jump of exactly half a period keeps its sign. Integers with an odd period have no such jumps.
    at_boundary = lax.bitwise_and(lax.eq(wrapped, lax.neg(half)), lax.gt(steps, like(steps, 0)))
    if whole:
        at_boundary = lax.bitwise_and(at_boundary, lax.eq(remainder(period, two), like(period, 0)))
    wrapped = lax.select(at_boundary, lax.broadcast_to(half, wrapped.shape), wrapped)
    limit = half if discont is None else discont
    corrections = lax.select(absolute(steps) < limit, like(steps, 0), lax.sub(wrapped, steps))
    rest = lax.add(slice_along(x, axis, 1, None), cumsum(corrections, axis))
    return lax.concatenate([slice_along(x, axis, 0, 1), rest], axis)
