"""Differences of neighbours, and what is made of them: gradients, integrals, phases without jumps."""

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
from corejax_numpy.manipulation import moveaxis, ravel
from corejax_numpy.reductions import sum


def _side(x: Any, axis: int, start: int | None, stop: int | None) -> Any:
    return lax.slice_in_dim(x, start, stop, axis=axis)


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis, `n` times; of booleans, whether they differ.

    Args:
        a: an array of one axis or more.
        n: how often.
        axis: the axis, shorter by `n` in the result.
        prepend: what to put before the elements first: an array, or a scalar.
        append: what to put behind them.

    Raises:
        ValueError: the array has no axis, or not that one; `n` is negative.
    """
    x = array_argument("diff", a)
    times = static_int("diff", n, "n")
    if times == 0:
        return x
    if times < 0:
        raise ValueError(f"diff: differences are taken 0 times or more, got n={n}")
    if not x.ndim:
        raise ValueError(f"diff takes an array of at least one dimension, got {x.aval.str_short()}")
    axis = canonical_axis(axis, x.ndim, name="diff")
    parts = [_beside(x, axis, prepend), x, _beside(x, axis, append)]
    if prepend is not None or append is not None:
        x = concatenate([part for part in parts if part is not None], axis)
    for _ in range(min(times, x.shape[axis])):  # then nothing is left
        x = _differences(x, axis)
    return x


def _beside(x: Any, axis: int, values: Any) -> Any:
    if values is None:
        return None
    values = array_argument("diff", values)
    return values if values.ndim else lax.broadcast_to(values, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))


def _differences(x: Any, axis: int) -> Any:
    size = x.shape[axis]
    after, before = _side(x, axis, min(1, size), None), _side(x, axis, 0, max(size - 1, 0))
    return lax.ne(after, before) if dtypes.is_bool(x.dtype) else lax.sub(after, before)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbours in the flattened array, between two other arrays if they are given.

    Args:
        ary: the array.
        to_end: what to put behind the differences.
        to_begin: what to put before them.

    Raises:
        TypeError: the array is of booleans.
    """
    x = ravel(array_argument("ediff1d", ary))
    if dtypes.is_bool(x.dtype):
        raise TypeError(f"ediff1d is of numbers, not of booleans; got {x.aval.str_short()}")
    parts = [_differences(x, 0)]
    if to_begin is not None:
        parts.insert(0, lax.convert_element_type(ravel(array_argument("ediff1d", to_begin, 2)), x.dtype))
    if to_end is not None:
        parts.append(lax.convert_element_type(ravel(array_argument("ediff1d", to_end, 1)), x.dtype))
    return lax.concatenate(parts, 0) if len(parts) > 1 else parts[0]


def gradient(f: Any, *varargs: Any, axis: int | Sequence[int] | None = None, edge_order: int | None = None) -> Any:
    """Slopes along axes: central differences inside, one-sided ones at the edges.

    Args:
        f: values on a grid.
        varargs: distances of the grid's points, one for all axes or one for each: a number, or the vector of
            coordinates, which need not be evenly apart. 1 by default.
        axis: the axis or axes; None is all of them.
        edge_order: None or 1.

    Returns:
        An array of the shape of `f`, or a list of them if there are several axes.

    Raises:
        ValueError: an axis has fewer than 2 points, or does not exist; the distances do not fit.
        TypeError: there are neither one nor as many distances as axes.
        NotImplementedError: another `edge_order`.
    """
    if edge_order not in (None, 1):
        raise NotImplementedError(f"gradient: differences at the edges are of order 1, got edge_order={edge_order!r}")
    x, *spacing = promote_dtypes("gradient", array_argument("gradient", f), *varargs, inexact=True)
    axes = canonical_axes(axis, x.ndim, name="gradient")
    if not axes:
        return []
    if any(x.shape[d] < 2 for d in axes):
        raise ValueError(f"gradient: axes have 2 points or more, got {x.aval.str_short()} along axes {axes}")
    if not spacing:
        spacing = [like(x, 1)]
    if len(spacing) not in (1, len(axes)):
        raise TypeError(f"gradient: one distance or {len(axes)}, one for each axis, got {len(spacing)}")
    spacing = spacing * len(axes) if len(spacing) == 1 else spacing
    slopes = [_slopes(x, h, d) for d, h in zip(axes, spacing, strict=True)]
    return slopes[0] if len(slopes) == 1 else slopes


def _slopes(x: Any, h: Any, axis: int) -> Any:
    if h.ndim > 1 or (h.ndim and h.shape[0] != x.shape[axis]):
        raise ValueError(
            f"gradient: distances along axis {axis} of {x.aval.str_short()} are a number, or {x.shape[axis]} "
            f"coordinates; got {h.aval.str_short()}"
        )
    steps = _differences(x, axis)
    first, last = _side(steps, axis, 0, 1), _side(steps, axis, -1, None)
    if not h.ndim:
        inner = lax.sub(_side(x, axis, 2, None), _side(x, axis, 0, x.shape[axis] - 2))
        inner = lax.div(lax.mul(inner, like(inner, 0.5)), h)
        return lax.concatenate([lax.div(first, h), inner, lax.div(last, h)], axis)
    widths = lax.broadcast_in_dim(_differences(h, 0), steps.shape, (axis,))
    slopes = lax.div(steps, widths)
    # The second-order difference on an uneven grid: the slopes on both sides, each weighted by the other's width.
    left, right = _side(slopes, axis, 0, -1), _side(slopes, axis, 1, None)
    before, after = _side(widths, axis, 0, -1), _side(widths, axis, 1, None)
    inner = lax.div(lax.add(lax.mul(left, after), lax.mul(right, before)), lax.add(before, after))
    return lax.concatenate([_side(slopes, axis, 0, 1), inner, _side(slopes, axis, -1, None)], axis)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral along an axis by the trapezoidal rule.

    Args:
        y: values.
        x: where they are: a vector, or an array that broadcasts with `y`; by default they are `dx` apart.
        dx: distance of neighbours: a number, or an array that broadcasts with the sums of neighbours along `axis`.
        axis: the axis.

    Raises:
        ValueError: there is no such axis, or `x` does not fit.
    """
    (y,) = promote_dtypes("trapezoid", array_argument("trapezoid", y), inexact=True)
    if x is None:
        y, dx = promote_dtypes("trapezoid", y, dx)
        axis = canonical_axis(axis, y.ndim, name="trapezoid")
        if dx.ndim:  # as it broadcasts before the axis is moved
            dx = lax.expand_dims(dx, range(y.ndim - dx.ndim))
            dx = moveaxis(dx, axis - y.ndim, -1)
        y = moveaxis(y, axis, -1)
    else:
        y, x = promote_dtypes("trapezoid", y, x)
        if not x.ndim:
            raise ValueError(f"trapezoid: `x` has an axis of places, got {x.aval.str_short()}; a distance is `dx`")
        y = moveaxis(y, canonical_axis(axis, y.ndim, name="trapezoid"), -1)
        if x.ndim > 1:  # which may have more axes than y
            x = moveaxis(x, canonical_axis(axis, x.ndim, name="trapezoid"), -1)
        dx = _differences(x, x.ndim - 1)
    last = y.ndim - 1
    size = y.shape[last]
    sums = lax.add(_side(y, last, min(1, size), None), _side(y, last, 0, max(size - 1, 0)))
    half = lax.mul(dx, like(dx, 0.5))  # halved before they are added up, for small dtypes overflow soon
    return sum(lax.mul(*lax.broadcast_operands(sums, half, name="trapezoid")), -1)


def unwrap(p: Any, discont: Any = None, axis: int = -1, period: Any = 2 * math.pi) -> Any:
    """Angles without jumps: whole periods added where neighbours differ by more than half of one.

    Args:
        p: angles.
        discont: how large a jump has to be; at least, and by default, half a period.
        axis: the axis.
        period: the period, integers stay integers if it is one.

    Raises:
        ValueError: there is no such axis.
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
    # A jump of half a period keeps its sign. There is none for integers if the period is odd.
    at_boundary = lax.bitwise_and(lax.eq(wrapped, lax.neg(half)), lax.gt(steps, like(steps, 0)))
    if whole:
        at_boundary = lax.bitwise_and(at_boundary, lax.eq(remainder(period, two), like(period, 0)))
    wrapped = lax.select(at_boundary, lax.broadcast_to(half, wrapped.shape), wrapped)
    limit = half if discont is None else discont
    corrections = lax.select(absolute(steps) < limit, like(steps, 0), lax.sub(wrapped, steps))
    rest = lax.add(_side(x, axis, 1, None), cumsum(corrections, axis))
    return lax.concatenate([_side(x, axis, 0, 1), rest], axis)
