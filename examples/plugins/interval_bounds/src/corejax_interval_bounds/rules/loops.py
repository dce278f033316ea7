"""Interval rule of `while`; the number of iterations may depend on an interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    Array,
    ClosedJaxpr,
    ShapedArray,
    dtypes,
    find_primitive,
    fixpoint,
    get_aval,
    inline_closed,
    stage_closed,
)
from corejax_interval_bounds.interpreter import interval_jaxpr, interval_rules, open_flags, packed, unpacked
from corejax_interval_bounds.interval import Bounds
from corejax_interval_bounds.rules.common import constant
from corejax_lax_basic import lax

while_p = find_primitive("while")

EXACT_ROUNDS = 100  # iterations on bounds before the bounds are widened


def while_interval(
    *operands: Bounds, body_jaxpr: ClosedJaxpr, body_nconsts: int, cond_jaxpr: ClosedJaxpr, cond_nconsts: int
) -> list[Bounds]:
    """Run a loop with bounds as the carry.

    If the condition does not depend on an interval, the loop runs as often as the program. If it does, the loop on
    bounds continues as long as the program may, and the result contains all carries that the program may end with.
    After `EXACT_ROUNDS` iterations, bounds that still change become infinite, so that the loop terminates. Bounds of
    integers become half of the dtype's limits, because the body may add to them.
    """
    assert while_p is not None
    first = cond_nconsts + body_nconsts
    open_in = list(open_flags(operands))

    def on_bounds(opened: list[bool]) -> Any:
        program, open_out = interval_jaxpr(body_jaxpr, [*open_in[cond_nconsts:first], *opened], opened)
        return open_out, program

    open_in[first:], body = fixpoint(on_bounds, open_in[first:])
    cond, (is_open,) = interval_jaxpr(cond_jaxpr, [*open_in[:cond_nconsts], *open_in[first:]])
    if is_open:
        open_in[first:] = [True] * len(open_in[first:])  # the number of iterations is unknown, and so is each carry
        body, _ = interval_jaxpr(body_jaxpr, open_in[cond_nconsts:], open_in[first:])
        cond, _ = interval_jaxpr(cond_jaxpr, [*open_in[:cond_nconsts], *open_in[first:]], [True])
    pieces = (slice(0, cond_nconsts), slice(cond_nconsts, first), slice(first, None))
    cond_consts, body_consts, carry = (packed(operands[piece], open_in[piece]) for piece in pieces)
    if is_open:
        _refuse_effects(cond_jaxpr, body_jaxpr)
        return unpacked(_all_ends(cond, body, cond_consts, body_consts, carry), open_in[first:])
    outs = while_p.bind(
        *cond_consts,
        *body_consts,
        *carry,
        body_jaxpr=body,
        body_nconsts=len(body_consts),
        cond_jaxpr=cond,
        cond_nconsts=len(cond_consts),
    )
    return unpacked(outs, open_in[first:])


def _refuse_effects(*programs: ClosedJaxpr) -> None:
    effects = sorted(frozenset().union(*(program.jaxpr.effects for program in programs)))
    if effects:
        raise NotImplementedError(
            f"propagate: a loop whose condition is open may run more often on bounds than the program does, and it has "
            f"effects ({', '.join(effects)}). Move the effect out of the loop."
        )


def _all_ends(
    cond: ClosedJaxpr, body: ClosedJaxpr, cond_consts: Sequence[Any], body_consts: Sequence[Any], carry: Sequence[Any]
) -> list[Any]:
    """Return bounds of all carries with which the loop may end.

    Constants and carries are flat lists of bounds, as returned by `packed`. The state of the loop is the number of
    iterations, whether further iterations change nothing, whether the loop may have ended, the bounds of the carries
    with which it may have ended, and the current carry.
    """
    assert while_p is not None
    num_cond, num_consts = len(cond_consts), len(cond_consts) + len(body_consts)

    def going(*args: Any) -> list[Any]:
        consts, (_, stable, _, *values) = args[:num_cond], args[num_cond:]
        _, possible = inline_closed(cond, [*consts, *values[len(carry) :]])
        return [lax.bitwise_and(possible, lax.bitwise_not(stable))]

    def step(*args: Any) -> list[Any]:
        consts, (count, _, ended, *values) = args[:num_consts], args[num_consts:]
        ends, now = _pairs(values[: len(carry)]), _pairs(values[len(carry) :])
        certain, _ = inline_closed(cond, [*consts[:num_cond], *_row(now)])
        ends = [_ended(end, x, ended, lax.bitwise_not(certain)) for end, x in zip(ends, now, strict=True)]
        ended = lax.bitwise_or(ended, lax.bitwise_not(certain))
        following = _pairs(inline_closed(body, [*consts[num_cond:], *_row(now)]))
        late = lax.ge(count, constant(EXACT_ROUNDS, count))
        following = [_widened(x, y, late) for x, y in zip(now, following, strict=True)]
        stable = late
        for x, y in zip(_row(now), _row(following), strict=True):
            stable = lax.bitwise_and(stable, _same(x, y))
        return [lax.add(count, constant(1, count)), stable, ended, *_row(ends), *_row(following)]

    start = [_scalar(0, np.int32), _scalar(False, np.bool_), _scalar(False, np.bool_), *carry, *carry]
    avals = [get_aval(x).strip_weak_type() for x in start]
    const_avals = [get_aval(x).strip_weak_type() for x in (*cond_consts, *body_consts)]
    _, _, ended, *values = while_p.bind(
        *cond_consts,
        *cond_consts,
        *body_consts,
        *start,
        body_jaxpr=stage_closed(step, [*const_avals, *avals]),
        body_nconsts=num_consts,
        cond_jaxpr=stage_closed(going, [*const_avals[:num_cond], *avals]),
        cond_nconsts=num_cond,
    )
    ends, now = _pairs(values[: len(carry)]), _pairs(values[len(carry) :])
    always = _scalar(True, np.bool_)
    return _row(_ended(end, x, ended, always) for end, x in zip(ends, now, strict=True))


def _pairs(values: Sequence[Any]) -> list[Bounds]:
    return [Bounds(*pair) for pair in zip(values[::2], values[1::2], strict=True)]


def _row(bounds: Any) -> list[Any]:
    return [x for pair in bounds for x in pair]


def _scalar(value: Any, dtype: Any) -> Array:
    return Array(np.asarray(value, dtype), ShapedArray((), np.dtype(dtype)))


def _ended(end: Bounds, now: Bounds, ended: Any, possible: Any) -> Bounds:
    """Return the bounds of the possible final carries, extended by the current carry if it is a `possible` end.

    If the loop cannot have `ended` before, the current carry is the only one.
    """
    lower = lax.select(ended, lax.min(end.lower, now.lower), now.lower)
    upper = lax.select(ended, lax.max(end.upper, now.upper), now.upper)
    return Bounds(lax.select(possible, lower, end.lower), lax.select(possible, upper, end.upper))


def _widened(old: Bounds, new: Bounds, late: Any) -> Bounds:
    """Return the new bounds or, if `late`, the old bounds with those that the new ones exceed made infinite."""
    dtype = get_aval(old.lower).dtype
    low: float
    high: float
    if dtypes.is_bool(dtype):
        low, high = False, True
    elif dtypes.is_float(dtype):
        low, high = -np.inf, np.inf
    else:
        low, high = dtypes.iinfo(dtype).min // 2, dtypes.iinfo(dtype).max // 2
    lower = lax.select(lax.ge(new.lower, old.lower), old.lower, lax.full_like(old.lower, low))
    upper = lax.select(lax.le(new.upper, old.upper), old.upper, lax.full_like(old.upper, high))
    if dtypes.is_float(dtype):  # unknown values stay unknown
        unknown = lax.bitwise_or(lax.ne(old.lower, old.lower), lax.ne(new.lower, new.lower))
        nan = lax.full_like(lower, np.nan)
        lower, upper = lax.select(unknown, nan, lower), lax.select(unknown, nan, upper)
    return Bounds(lax.select(late, lower, new.lower), lax.select(late, upper, new.upper))


def _same(x: Any, y: Any) -> Any:
    """Return whether two arrays are equal, with NaN equal to NaN."""
    equal = lax.bitwise_or(lax.eq(x, y), lax.bitwise_and(lax.ne(x, x), lax.ne(y, y)))
    return lax.reduce_and_p.bind(equal, axes=tuple(range(get_aval(x).ndim)))


if while_p is not None:
    interval_rules.register(while_p, while_interval)
