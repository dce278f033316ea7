"""StableHLO translation by cyclic reduction, with 2 log2(length) operations on whole arrays.

Two consecutive steps combine into one, h[t] = (a[t] a[t - 1]) h[t - 2] + (a[t] x[t - 1] + x[t]). The entries at odd
positions therefore satisfy a recurrence of half the length, and the entries at even positions follow from them in one
step (Blelloch 1990).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import ShapedArray, xla_translations
from corejax_linear_recurrence.recurrence import recurrence_p


@xla_translations.register(recurrence_p)
def recurrence_translation(ctx: Any, in_avals: Sequence[ShapedArray], in_vals: Sequence[Any], *, reverse: bool) -> Any:
    """Translate the recurrence; narrow floats compute in float32, as in the impl rule."""
    aval = in_avals[0]
    wide = aval if aval.dtype.char in "fdFD" else aval.update(dtype=np.dtype(np.float32))
    a, x = (_reversed(ctx, ctx.convert(v, wide.dtype), reverse) for v in in_vals)
    return _reversed(ctx, ctx.convert(_solved(ctx, a, x), aval.dtype), reverse)


def _solved(ctx: Any, a: Any, x: Any) -> Any:
    size = x.aval.shape[-1]
    if size < 2:
        return x
    a_even, x_even, a_odd, x_odd = (_every_other(ctx, v, start) for start in (0, 1) for v in (a, x))
    before = [_upto(ctx, v, size // 2) for v in (a_even, x_even)]  # the even position before each odd one
    product = ctx.op("multiply", a_odd, before[0], out=a_odd.aval)
    odd = _solved(ctx, product, _step(ctx, a_odd, before[1], x_odd))
    # The even positions after an odd one. The first position has no predecessor, so that its factor, which may be NaN,
    # is not used.
    rest = (size - 1) // 2
    later = _step(ctx, _from_second(ctx, a_even), _upto(ctx, odd, rest), _from_second(ctx, x_even))
    even = ctx.op("add", _pad(ctx, _upto(ctx, x_even, 1), 0, rest, 0), _pad(ctx, later, 1, 0, 0), out=x_even.aval)
    spread = [_pad(ctx, even, 0, 1 - size % 2, 1), _pad(ctx, odd, 1, size % 2, 1)]
    return ctx.op("add", *spread, out=x.aval)


def _step(ctx: Any, a: Any, h: Any, x: Any) -> Any:
    return ctx.op("add", ctx.op("multiply", a, h, out=x.aval), x, out=x.aval)


def _every_other(ctx: Any, v: Any, start: int) -> Any:
    return _slice(ctx, v, start, v.aval.shape[-1], 2)


def _upto(ctx: Any, v: Any, stop: int) -> Any:
    return _slice(ctx, v, 0, stop, 1)


def _from_second(ctx: Any, v: Any) -> Any:
    return _slice(ctx, v, 1, v.aval.shape[-1], 1)


def _slice(ctx: Any, v: Any, start: int, stop: int, stride: int) -> Any:
    """Return `v[..., start:stop:stride]`."""
    *leading, _ = v.aval.shape
    return ctx.slice(v, [*(0 for _ in leading), start], [*leading, stop], [*(1 for _ in leading), stride])


def _pad(ctx: Any, v: Any, low: int, high: int, interior: int) -> Any:
    """Insert zeros before, after and between the entries of the last axis."""
    return ctx.pad(v, [*((0, 0, 0) for _ in v.aval.shape[1:]), (low, high, interior)])


def _reversed(ctx: Any, v: Any, reverse: bool) -> Any:
    return ctx.op("reverse", v, out=v.aval, attrs=f"dimensions = {ctx.i64([v.aval.ndim - 1])}") if reverse else v
