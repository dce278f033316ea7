"""Solve linear differential equations of second order from a singular point, by steps of Taylor series.

Computed in this way, hypergeometric functions need neither the gamma function nor special cases for parameters that
differ by whole numbers. All elements step together: a loop over steps contains a loop over terms, and each loop runs
until no element needs more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import corejax
import corejax.numpy as jnp
from corejax_lax_basic import lax
from corejax_scipy.special._formulas import number, where
from corejax_scipy.special._rows import in_float64

_EPSILON = 2.0**-54
LARGE = 2.0**512
_MOST_TERMS, _MOST_STEPS = 4000.0, 2000.0  # the maximal numbers of terms of a series, and of steps


class Equation(NamedTuple):
    """The equation to solve; `params` is a tuple of arrays of one shape.

    Attributes:
        start: the singular point, at which the solution is 1.
        first: `(params, h, n, before, last)`, returns the term after `last`, the `n`-th, of the series at the start.
        prepared: `(params, p, h)`, returns the values that `term` needs for a step from `p` to `p + h`.
        term: `(given, n, before, last)`, returns the term after `last`, the `n`-th; `given` comes from `prepared`.
        reach: `(params, p)`, returns the next step from `p`, or 0 at the end.
        least: `(params)`, returns the least number of terms of the first series.
    """

    start: float
    first: Callable[..., Any]
    prepared: Callable[..., Any]
    term: Callable[..., Any]
    reach: Callable[..., Any]
    least: Callable[..., Any]


def next_term(n: Any, factor: Any, middle: Any, before: Any, last: Any) -> Any:
    """Return the term after the `n`-th from the last two terms; both equations' recurrences have this form."""
    return (factor * before / n - middle * last) / (n + 1.0)


def longest_step(gap: Any, product: Any, size: Any) -> Any:
    """Return a step in which unwanted solutions grow by at most `exp(4)`, and the solution itself by `exp(200)`.

    The growth is estimated by the roots of the local characteristic equation, `size r**2 - gap r = product`.
    """
    square = gap * gap + 4.0 * product * size
    root, waves, zero = lax.sqrt(lax.abs(square)), square < 0.0, 0.0 * size
    against = where(waves, root + lax.max(-gap, zero), lax.max(root - gap, zero))
    along = lax.max(gap + where(waves, 0.0, root), zero)
    return 2.0 * size / (against / 4.0 + along / 200.0 + 1e-30)


def _needed(term: Any, n: Any, total: Any, slope: Any) -> Any:
    """Return whether the sum or its derivative needs the term after the `n`-th."""
    return (n + 1.0) * lax.abs(term) > _EPSILON * lax.max(lax.abs(total), lax.abs(slope))


def _more(going: Any, n: Any, total: Any, slope: Any, term: Any) -> tuple[Any, Any]:
    return where(going, total + term, total), where(going, slope + (n + 1.0) * term, slope)


def _series(term: Callable[..., Any], given: Any, value: Any, second: Any, least: Any) -> tuple[Any, Any]:
    """Return the sum of a series, given its first two terms, and `h` times the sum of its derivative.

    An element is finished when two consecutive terms are negligible, also for derivatives if those are computed.
    """

    def loop(least: Any, state: Any, advance: Any) -> Any:
        def body(whole: Any) -> Any:
            n, quiet, state = whole
            going = quiet < 1.5
            counts, state = advance(n, going, state)
            counts = (counts | (n < least)) & lax.is_finite(state[2])
            return n + 1.0, where(going, where(counts, 0.0, quiet + 1.0), quiet), state

        unfinished = lambda whole: (whole[0] < _MOST_TERMS) & jnp.any(whole[1] < 1.5)  # noqa: E731
        _, quiet, state = lax.while_loop(unfinished, body, (number(1.0), where(state[1] == state[1], 0.0, 2.0), state))
        return where(quiet < 1.5, math.nan, state[2]), state[3], state

    @corejax.custom_jvp
    def summed(given: Any, value: Any, second: Any, least: Any) -> tuple[Any, Any]:
        def advance(n: Any, going: Any, state: Any) -> Any:
            before, last, total, slope = state
            new = term(given, n, before, last)
            return _needed(new, n, total, slope), (last, new, *_more(going, n, total, slope, new))

        total, slope, _ = loop(least, (value, second, value + second, second), advance)
        return total, slope

    @summed.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (given, value, second, least), (given_dot, value_dot, second_dot, _) = primals, tangents

        def advance(n: Any, going: Any, state: Any) -> Any:
            before, last, total, slope, before_dot, last_dot, total_dot, slope_dot = state
            new, new_dot = corejax.jvp(
                lambda g, b, x: term(g, n, b, x), (given, before, last), (given_dot, before_dot, last_dot)
            )
            wide = lax.abs(total) + lax.abs(total_dot), lax.abs(slope) + lax.abs(slope_dot)
            counts = _needed(new, n, total, slope) | _needed(new_dot, n, *wide)
            dots = _more(going, n, total_dot, slope_dot, new_dot)
            return counts, (last, new, *_more(going, n, total, slope, new), last_dot, new_dot, *dots)

        begun = (value, second, value + second, second, value_dot, second_dot, value_dot + second_dot, second_dot)
        total, slope, state = loop(least, begun, advance)
        return (total, slope), state[-2:]

    return summed(given, value, second, least)


def integrated(equation: Equation, params: Any, first: Any) -> tuple[Any, Any, Any]:
    """Solve an equation, given the first step.

    Returns:
        The solution and its derivative at the end, and how often both were divided by `LARGE`. They are NaN if there
        are too many terms, and infinite if a series overflows.
    """
    one, zero = first * 0.0 + 1.0, first * 0.0
    by_first = lambda given, n, before, last: equation.first(given[0], given[1], n, before, last)  # noqa: E731
    second = equation.first(params, first, zero, zero, one)
    total, slope = _series(by_first, (params, first), one, second, equation.least(params))

    def scaled(total: Any, slope: Any, times: Any) -> Any:
        large = lax.abs(total) + lax.abs(slope) > LARGE
        scale = where(large, 1.0 / LARGE, 1.0)
        return total * scale, slope * scale, times + where(large, 1.0, 0.0)

    def reach(p: Any, total: Any) -> Any:
        return where(lax.is_finite(total), lax.stop_gradient(equation.reach(params, p)), 0.0)

    def unfinished(state: Any) -> Any:
        return (state[0] < _MOST_STEPS) & jnp.any(~lax.eq(state[2], number(0.0)))

    def body(state: Any) -> Any:
        n, p, h, total, slope, times = state
        here = ~lax.eq(h, zero)
        step = where(here, h, 1.0)
        given = equation.prepared(params, p, h)
        sum_, by_h = _series(equation.term, given, total, slope * h, zero)
        new = scaled(sum_, by_h / step, times)
        total, slope, times = (where(here, x, old) for x, old in zip(new, (total, slope, times), strict=True))
        return n + 1.0, p + h, reach(p + h, total), total, slope, times

    start = scaled(total, slope / where(lax.eq(first, zero), 1.0, first), zero)
    there = first + equation.start
    _, _, h, total, slope, times = lax.while_loop(
        unfinished, body, (number(0.0), there, reach(there, start[0]), *start)
    )
    return where(lax.eq(h, zero), total, math.nan), slope, times


def derivative_by(function: Callable[..., Any], position: int) -> Callable[..., Any]:
    """Return the derivative by one operand of `function(*xs, by=position)`, in forward mode through its loops."""

    def slope(out: Any, *xs: Any) -> Any:
        @in_float64
        def computed(*operands: Any) -> Any:
            wide = jnp.broadcast_arrays(*operands)

            def of_one(p: Any) -> Any:
                return function(*wide[:position], p, *wide[position + 1 :], by=position)

            return corejax.jvp(of_one, (wide[position],), (jnp.ones_like(wide[position]),))[1]

        return computed(*jnp.broadcast_arrays(*xs))

    return slope


def is_whole(x: Any) -> Any:
    """Return whether a parameter is 0, -1, -2, ..., so that its series ends."""
    return (x <= 0.0) & lax.eq(lax.floor(x), x)


def is_whole_difference(x: Any, y: Any) -> Any:
    """Return whether `x - y` is 0, -1, -2, ... up to rounding, so that its series ends.

    XLA may recompute operands for each use, and round products and sums once or twice. So an exact comparison could
    give different answers in two places.
    """
    near = lax.max(lax.abs(x), lax.abs(y)) * 2.0**-50
    whole = lax.round(x - y)
    return (whole <= 0.0) & (lax.abs(x - y - whole) <= near)


def polynomial(degree: Any, b: Any, c: Any, x: Any, confluent: bool) -> Any:
    """Return `F(-degree, b; c; x)`, or `M(-degree, c, x)` if confluent.

    The recurrence goes upward in the degree (DLMF 15.5.11 and 13.3.1). For very negative `c`, for which that is
    unstable, the terms are summed.
    """
    summed = (c < 0.0) & (degree <= -c)

    def unfinished(state: Any) -> Any:
        return jnp.any(state[0] < degree)

    def body(state: Any) -> Any:
        k, below, here = state  # where `summed`, the last two are a term and the sum
        if confluent:
            new = ((2.0 * k + c - x) * here - k * below) / (c + k)
            term = (k - degree) * x / ((c + k) * (k + 1.0)) * below
        else:
            new = ((2.0 * k + c - (b + k) * x) * here - k * (1.0 - x) * below) / (c + k)
            term = (k - degree) * (b + k) * x / ((c + k) * (k + 1.0)) * below
        more = k < degree
        below, new = where(summed, term, here), where(summed, here + term, new)
        return k + 1.0, where(more, below, state[1]), where(more, new, here)

    one = x * 0.0 + 1.0
    return lax.while_loop(unfinished, body, (number(0.0), one, one))[2]
