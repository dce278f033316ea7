"""Check that transformations and lowering cost at most in proportion to the number of equations.

The checks do not measure time, which other processes disturb. They count the lines of Python that run and the equations
that are produced.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import corejax
from corejax.extend import ClosedJaxpr, jvp_rules, stage_closed
from corejax_testing.arrays import is_inexact, replaced
from corejax_testing.calls import Call
from corejax_testing.checks.compiled import translates
from corejax_testing.checks.registry import check
from corejax_testing.outcomes import CheckFailure
from corejax_testing.parts import size_of

_FEW, _MANY = 10, 100
_SLACK, _FIXED = 1.1, 100  # allowed growth as a factor, and a number of lines or equations that do not count
_MEASURES = ("lines of Python run", "equations, or lines of text, are produced")

Work = Callable[[int], Any]


def chain(call: Call, count: int) -> Callable[..., list[Any]]:
    """Return a function of `count` applications, each of the previous result if types allow it, else independent."""
    avals_out = call.avals_out
    through = call.inexact or range(len(call.avals))  # chain through an operand that has derivatives, if any has
    links = [(r, i) for i in through for r, out in enumerate(avals_out) if call.avals[i] is out]

    def fun(*values: Any) -> list[Any]:
        xs, every = list(values), []
        for _ in range(count):
            outs = call(*xs)
            every += outs
            if links:
                xs[links[0][1]] = outs[links[0][0]]
        return outs if links else every

    return fun


def _works(call: Call) -> Iterator[tuple[str, str | None, Work]]:
    """Yield the steps to measure: a name, the rule at fault, and a function of the length that makes a program."""

    def traced(n: int) -> ClosedJaxpr:
        return stage_closed(chain(call, n), call.avals)

    def transformed(transform: Callable[[ClosedJaxpr], ClosedJaxpr], n: int) -> ClosedJaxpr:
        return transform(traced(n))

    yield "tracing", "abstract_eval", traced
    for rule, transform in call.transforms().items():
        yield rule, rule, functools.partial(transformed, transform)
    if _has_gradient(call):
        yield "vjp", "transpose", lambda n: stage_closed(_pullback(call, n), [call.avals[i] for i in call.inexact])
    if translates(call):
        yield "lowering", "xla_translation", lambda n: corejax.jit(chain(call, n)).lower(*call.values).as_text()


def _has_gradient(call: Call) -> bool:
    if not call.inexact or jvp_rules.find(call.primitive) is None:
        return False
    try:
        stage_closed(_pullback(call, 1), [call.avals[i] for i in call.inexact])
    except Exception:  # other checks report what is wrong with derivatives
        return False
    return True


def _pullback(call: Call, count: int) -> Callable[..., list[Any]]:
    fun = chain(call, count)

    def gradient(*moving: Any) -> list[Any]:
        def part(*at: Any) -> list[Any]:
            return [y for y in fun(*replaced(call.values, call.inexact, at)) if is_inexact(y.dtype)]

        outs, pull = corejax.vjp(part, *moving)
        return list(pull([np.ones(y.shape, y.dtype) for y in outs]))

    return gradient


@contextmanager
def lines() -> Iterator[list[int]]:
    """Count the lines of Python that this thread runs in a `with` block, in the only element of the yielded list."""
    counted, earlier = [0], sys.gettrace()

    def trace(frame: Any, event: str, arg: Any) -> Any:
        counted[0] += 1
        return trace

    sys.settrace(trace)
    try:
        yield counted
    finally:
        sys.settrace(earlier)


def _measured(work: Work, count: int) -> tuple[int, int]:
    """Return the number of lines that ran, and of equations (or lines of text) that were produced."""
    with lines() as counted:
        out = work(count)
    return counted[0], out.count("\n") if isinstance(out, str) else size_of(out)


@check("cost", "jvp", limit=1, shrinks=False)
def check_cost(call: Call, rng: np.random.Generator) -> None:
    """Check that tracing, jvp, vjp, vmap and lowering of ten times as many equations cost at most ten times as much."""
    for name, rule, work in _works(call):
        with corejax.config.override(remember_rules=False):
            work(_FEW)  # fills caches
            found = {n: _measured(work, n) for n in (_FEW, 2 * _FEW, _MANY - _FEW, _MANY)}
            again = _measured(work, _FEW)[0]
        for what, counts in zip(_MEASURES, zip(*found.values(), strict=True), strict=True):
            _require_linear(name, rule, what, counts)
        first = found[_FEW][0]
        if again > _SLACK * first + _FIXED:
            raise CheckFailure(f"{name} of {_FEW} equations runs {first} lines of Python, but {again} after {_MANY} "
                               "equations: it gets slower with use", rule, "does it keep a list that grows with each "
                               "equation?")  # fmt: skip


def _require_linear(name: str, rule: str | None, what: str, counts: Sequence[int]) -> None:
    """Require the cost of ten more equations to be the same for short and long programs."""
    few, more, less, many = counts
    if many - less > _SLACK * (more - few) + _FIXED:
        raise CheckFailure(
            f"{name}: {what} for {_FEW} more equations: {more - few} at {_FEW}, but {many - less} at {_MANY}", rule,
            "the work of a rule for one equation must not depend on the length of the program",
        )  # fmt: skip
