"""Find steps along a direction of descent that satisfy the Wolfe conditions.

    line_search : ((x -> value), x, direction, value, gradient) -> Step

Bracketing and safeguarded interpolation (Lewis and Overton 2013; Nocedal and Wright 2006, section 3.5).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import corejax
import corejax.numpy as jnp
from corejax_lax_basic import lax

_DECREASE, _CURVATURE = 1e-4, 0.9


class Step(NamedTuple):
    """The result of a line search.

    Attributes:
        found: whether the step satisfies the conditions.
        length: the length of the step, in units of the direction; the best one if no step satisfies the conditions.
        value: the function's value after the step.
        gradient: the function's gradient after the step.
        evaluations: the number of evaluations of value and gradient.
    """

    found: Any
    length: Any
    value: Any
    gradient: Any
    evaluations: Any


class _State(NamedTuple):
    """The loop's state: an interval from `low`, with sufficient decrease, to `high`, without (or infinite)."""

    low: Any
    low_value: Any
    low_slope: Any
    high: Any
    high_value: Any
    length: Any
    best: Step


def dot(x: Any, y: Any) -> Any:
    """Return the product of two vectors, in the highest precision."""
    return jnp.vdot(x, y, precision=lax.Precision.HIGHEST)


def _next(state: _State) -> Any:
    """Return the next length to try: a safeguarded minimum of a parabola, or twice the length if `high` is infinite."""
    width = state.high - state.low
    sane = jnp.where(jnp.isfinite(width), width, 1.0)
    bend = state.high_value - state.low_value - state.low_slope * sane
    inner = jnp.where(bend > 0, -state.low_slope * sane / jnp.where(bend > 0, 2.0 * bend, 1.0), 0.5)
    inner = jnp.clip(jnp.where(jnp.isfinite(inner), inner, 0.5), 0.1, 0.9)
    return jnp.where(jnp.isfinite(width), state.low + inner * sane, 2.0 * state.length)


def line_search(
    fun: Callable[[Any], Any], x: Any, direction: Any, value: Any, gradient: Any, first: Any, maxiter: int
) -> Step:
    """Find a step along a direction.

    Args:
        fun: the function.
        x: the current point.
        direction: the direction.
        value: the function's value at `x`.
        gradient: the function's gradient at `x`.
        first: the length to try first.
        maxiter: the maximal number of lengths to try.
    """
    slope = dot(gradient, direction)
    noise = 4.0 * float(jnp.finfo(value.dtype).eps) * jnp.abs(value)

    def going(state: _State) -> Any:
        return ~state.best.found & (state.best.evaluations < maxiter)

    def step(state: _State) -> _State:
        length = state.length
        new, new_gradient = corejax.value_and_grad(fun)(x + length * direction)
        new_slope = dot(new_gradient, direction)
        # Near a minimum, values differ only by rounding errors, so the slopes decide.
        enough = (new <= value + _DECREASE * length * slope) | ((new <= value + noise) & (new_slope <= -0.8 * slope))
        flat = new_slope >= _CURVATURE * slope
        better = enough | (new < state.best.value)
        best = Step(
            enough & flat & jnp.isfinite(new),
            jnp.where(better, length, state.best.length),
            jnp.where(better, new, state.best.value),
            jnp.where(better, new_gradient, state.best.gradient),
            state.best.evaluations + 1,
        )
        narrowed = _State(
            jnp.where(enough, length, state.low),
            jnp.where(enough, new, state.low_value),
            jnp.where(enough, new_slope, state.low_slope),
            jnp.where(enough, state.high, length),
            jnp.where(enough, state.high_value, jnp.where(jnp.isfinite(new), new, jnp.finfo(new.dtype).max)),
            length,
            best,
        )
        return narrowed._replace(length=_next(narrowed))

    zero = jnp.zeros_like(value)
    none = Step(jnp.asarray(False), zero, value, gradient, jnp.asarray(0))
    start = _State(zero, value, slope, jnp.full_like(value, math.inf), value, first.astype(value.dtype), none)
    best: Step = lax.while_loop(going, step, start).best
    return best
