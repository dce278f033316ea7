"""Solutions of linear differential equations of second order from a singular point on, by steps of Taylor series.

Hypergeometric functions by it need neither the gamma function nor cases for differences of parameters that are whole.
One loop sums for all elements, each in a step of its own: a pass adds a term to the series of every element, and where
that has ended its next step begins. Derivatives by parameters go along in the same loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import corejax
import corejax.numpy as jnp
from corejax_lax_basic import lax
from corejax_scipy.special._formulas import number, where

_EPSILON = 2.0**-54
_TERMS = 4  # in one pass over the elements, which takes longer than their arithmetic
LARGE = 2.0**512


class Step(NamedTuple):
    """A step of each element, from `p` to `p + h`: arrays of float64.

    Attributes:
        p, h: what the series is about, and the step.
        n: the number of its last term.
        before, last: its last two terms.
        total, slope: its sum, and `h` times that of its derivative.
        quiet: how many terms at its end do not count.
        times: how often the solution was divided by `LARGE`.
        going: 1, or 0 where the end is reached.
    """

    p: Any
    h: Any
    n: Any
    before: Any
    last: Any
    total: Any
    slope: Any
    quiet: Any
    times: Any
    going: Any


class Equation(NamedTuple):
    """What is solved; each function is given the parameters, a tuple of arrays, first.

    Attributes:
        start: the singular point, where the solution is 1.
        first: `(params, h)`: the second term of the first series.
        term: `(params, step)`: the term after the last one.
        reach: `(params, p)`: the next step from there, 0 at the end.
        least: `(params)`: how many terms of the first series have to be summed.
    """

    start: float
    first: Callable[..., Any]
    term: Callable[..., Any]
    reach: Callable[..., Any]
    least: Callable[..., Any]


def _begun(p: Any, h: Any, value: Any, second: Any, times: Any) -> Step:
    one, zero = p * 0.0 + 1.0, p * 0.0
    return Step(p, h, one, value, second, value + second, second, zero, times, one)


def _counts(term: Any, n: Any, total: Any, slope: Any) -> Any:
    """Whether the sum or its derivative needs a term."""
    return (n + 1.0) * lax.abs(term) > _EPSILON * lax.max(lax.abs(total), lax.abs(slope))


def _advanced(equation: Equation, params: Any, step: Step, counts: Any) -> Step:
    """After another term, or at the beginning of the next step."""
    term, n = equation.term(params, step), step.n + 1.0
    total, slope = step.total + term, step.slope + n * term
    quiet = where(counts, 0.0, step.quiet + 1.0)
    same = step._replace(n=n, before=step.last, last=term, total=total, slope=slope, quiet=quiet)
    there = step.p + step.h
    reach = lax.stop_gradient(equation.reach(params, there))
    scale = where(lax.abs(total) + lax.abs(slope) > LARGE, 1.0 / LARGE, 1.0)
    times = step.times + where(lax.eq(scale, number(1.0)), 0.0, 1.0)
    onward = _begun(there, reach, total * scale, slope * scale * (reach / step.h), times)
    overflows = ~(lax.is_finite(total) & lax.is_finite(slope))
    value = where(overflows, total * math.inf, total)
    at_end = step._replace(total=value, slope=slope, going=step.going * 0.0)

    early = lax.eq(step.p, number(equation.start)) & (n < equation.least(params))
    ended = overflows | ((quiet > 1.5) & ~early)
    finished = overflows | lax.eq(reach, number(0.0))
    states = zip(same, onward, at_end, step, strict=True)
    chosen = [where(ended, where(finished, c, b), a) for a, b, c, _ in states]
    return Step(*[where(step.going > 0.5, x, old) for x, old in zip(chosen, step, strict=True)])


def integrated(equation: Equation, params: Any, first: Any, limit: int, along: Any = None) -> tuple[Step, Any]:
    """Solve an equation.

    Args:
        equation: it.
        params: a tuple of arrays of one shape.
        first: the first step.
        limit: the largest number of terms of all steps; where that is too few the solution is NaN.
        along: tangents of the parameters, or None.

    Returns:
        The last step, and its tangents, or None.
    """

    def begun(params: Any) -> Step:
        one = first * 0.0 + 1.0
        return _begun(one * equation.start, first, one, equation.first(params, first), one * 0.0)

    def advance(step: Step, tangent: Any) -> tuple[Step, Any]:
        if along is None:
            counts = _counts(equation.term(params, step), step.n, step.total, step.slope)
            return _advanced(equation, params, step, counts), None
        term, by = corejax.jvp(equation.term, (params, step), (along, tangent))
        total, slope = (lax.abs(x) + lax.abs(t) for x, t in ((step.total, tangent.total), (step.slope, tangent.slope)))
        counts = _counts(term, step.n, step.total, step.slope) | _counts(by, step.n, total, slope)
        return corejax.jvp(lambda p, s: _advanced(equation, p, s, counts), (params, step), (along, tangent))

    def body(state: Any) -> Any:
        count, step, tangent = state
        for _ in range(_TERMS):
            step, tangent = advance(step, tangent)
        return count + float(_TERMS), step, tangent

    def going(state: Any) -> Any:
        return (state[0] < float(limit)) & jnp.any(state[1].going > 0.5)

    state = (begun(params), None) if along is None else corejax.jvp(begun, (params,), (along,))
    _, step, tangent = lax.while_loop(going, body, (number(0.0), *state))
    return step._replace(total=where(step.going > 0.5, float("nan"), step.total)), tangent
