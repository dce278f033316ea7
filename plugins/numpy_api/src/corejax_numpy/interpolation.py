"""One-dimensional linear interpolation."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import dtypes, remembered
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, array_arguments, like, promote_dtypes
from corejax_numpy.elementwise import remainder, where
from corejax_numpy.searching import searchsorted


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Interpolate linearly between the points `(xp, fp)`, and evaluate at `x`.

    Args:
        x: the points of evaluation, an array of any shape.
        xp: the coordinates of the points, an increasing vector (in any order with a `period`).
        fp: the values at these points.
        left: the result below the first point; by default the first value, and "extrapolate" continues the line.
        right: the result above the last point; by default the last value, and "extrapolate" continues the line.
        period: the period of the function, for which `left` and `right` are ignored.

    Raises:
        ValueError: `xp` and `fp` are not vectors of one size, or are empty; coordinates are complex; or `left` or
            `right` is another string.
    """
    x, xp, fp = array_arguments("interp", x, xp, fp)
    lax.check_dtype_promotion("interp", (x, xp, fp))
    x, xp = lax.promote_dtypes(x, xp, inexact=True, name="interp")
    (fp,) = promote_dtypes("interp", fp, inexact=True)
    if xp.ndim != 1 or xp.shape != fp.shape or not xp.shape[0]:
        raise ValueError(
            f"interp: points are vectors of one size, 1 or more, got {xp.aval.str_short()} and {fp.aval.str_short()}"
        )
    if dtypes.is_complex(x.dtype):
        raise ValueError(f"interp: coordinates are real, got {x.aval.str_short()}")
    for name, side in (("left", left), ("right", right)):
        if isinstance(side, str) and side != "extrapolate":
            raise ValueError(f"interp: {name} is a number or 'extrapolate', got {side!r}")
    if period is not None:
        x, xp, fp = _within_one_period(x, xp, fp, period)
    index = searchsorted(xp, x, side="right")
    return _evaluate_lines(x, xp, fp, index) if period is not None else _between(x, xp, fp, index, left, right)


@remembered
def _between(x: Any, xp: Any, fp: Any, index: Any, left: Any, right: Any) -> Any:
    out = _evaluate_lines(x, xp, fp, index)
    for is_outside, side, at in ((lax.lt, left, 0), (lax.gt, right, -1)):
        if not isinstance(side, str):
            value = lax.index_in_dim(fp, at, 0, keepdims=False) if side is None else side
            out = where(is_outside(x, lax.index_in_dim(xp, at, 0, keepdims=False)), value, out)
    return out


def _within_one_period(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    period = array_argument("interp", period, 5)
    if period.ndim:
        raise ValueError(f"interp: the period is a scalar, got {period.aval.str_short()}")
    period = lax.abs(lax.convert_element_type(period, x.dtype))
    xp, fp = lax.sort_key_val(remainder(xp, period), fp)
    before = lax.sub(lax.slice_in_dim(xp, -1, None), period)
    after = lax.add(lax.slice_in_dim(xp, 0, 1), period)
    values = [lax.slice_in_dim(fp, -1, None), fp, lax.slice_in_dim(fp, 0, 1)]
    return remainder(x, period), lax.concatenate([before, xp, after], 0), lax.concatenate(values, 0)


def _evaluate_lines(x: Any, xp: Any, fp: Any, index: Any) -> Any:
    """Evaluate the line through the two points around `x`; if these (nearly) coincide, return the first value."""
    if xp.shape[0] == 1:
        return lax.broadcast_to(lax.reshape(fp, ()), x.shape)
    index = lax.clamp(1, index, xp.shape[0] - 1)
    before = lax.sub(index, like(index, 1))
    if type(xp.shape[0]) is not int:  # at size 1, the only point is on both sides
        before = lax.max(before, like(before, 0))

    def at(points: Any, index: Any) -> Any:
        return points.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)

    start, value = at(xp, before), at(fp, before)
    width, rise = lax.sub(at(xp, index), start), lax.sub(at(fp, index), value)
    tiny = float(np.spacing(float(dtypes.finfo(xp.dtype).eps)))
    flat = lax.le(lax.abs(width), like(width, tiny))
    slope = lax.div(lax.sub(x, start), lax.select(flat, like(width, 1), width))
    return where(flat, value, value + slope * rise)
