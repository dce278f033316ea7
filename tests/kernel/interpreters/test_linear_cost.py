"""Costs that have to grow in proportion to the program: counted operations, not time."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest

import corejax as cj
from corejax import plugins
from corejax.extend import jvp_jaxpr, stage_closed, transpose_jaxpr
from corejax.extend.programs import dce
from corejax.interpreters import evaluation
from corejax.interpreters.batching import BatchTrace
from corejax.interpreters.jvp import JVPTrace
from corejax.interpreters.partial_eval import PartialEvalTrace
from corejax.interpreters.staging import StagingTrace
from tests.kernel.toys import add, call, jacrev, mul, sin, sum_

pytestmark = pytest.mark.usefixtures("toys")
X = np.array([0.5, 1.0, -2.0], np.float32)
TRACES = (JVPTrace, BatchTrace, StagingTrace, PartialEvalTrace)


@contextmanager
def counted():
    """Counts calls of `process_primitive` by interpreter, and calls of Python functions in all."""
    counts: Counter[str] = Counter()
    originals = {cls: cls.process_primitive for cls in TRACES}

    def counting(cls, original):
        def process_primitive(self, primitive, args, params):
            counts[cls.__name__] += 1
            return original(self, primitive, args, params)

        return process_primitive

    def profile(frame, event, argument):
        if event in ("call", "c_call"):
            counts["calls"] += 1

    for cls, original in originals.items():
        cls.process_primitive = counting(cls, original)

    def evaluating(below):
        def process(primitive, args, params):
            counts["EvalTrace"] += 1
            return below(primitive, args, params)

        return process

    evaluation.set_layer("reports", evaluation.Layer(evaluating))
    previous = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield counts
    finally:
        sys.setprofile(previous)
        evaluation.set_layer("reports", None)
        for cls, original in originals.items():
            cls.process_primitive = original


def chain(n):
    def f(x):
        for _ in range(n):
            x = sin(mul(x, 1.5))
        return x

    return f


def fan(n):
    """Every value is used twice: n levels, 2**n paths."""

    def f(x):
        for _ in range(n):
            x = mul(add(x, x), 0.5)
        return x

    return f


def inputs(n):
    """n inputs, each used once."""
    return lambda *xs: [mul(x, 2.0) for x in xs]


USES = {
    "trace": lambda f: cj.make_jaxpr(f)(X),
    "eval": lambda f: f(X),
    "jvp": lambda f: cj.jvp(f, (X,), (X,)),
    "grad": lambda f: cj.grad(lambda x: sum_(f(x)))(X),
    "vmap": lambda f: cj.vmap(f)(X),
    "trace of grad": lambda f: cj.make_jaxpr(cj.grad(lambda x: sum_(f(x))))(X),
    "vmap of grad": lambda f: cj.vmap(cj.grad(lambda x: f(x)))(X),
    "grad of grad": lambda f: cj.grad(cj.grad(lambda x: f(x)))(0.5),
    "linearize": lambda f: cj.linearize(f, X)[1](X),
    "grad of call": lambda f: cj.grad(lambda x: sum_(call(f)(x)))(X),
    "jacrev": lambda f: jacrev(f)(X),
}


@pytest.mark.sampled
@pytest.mark.parametrize("program", [chain, fan])
@pytest.mark.parametrize("use", USES)
def test_linear_in_the_length_of_the_program(use, program):
    totals = []
    for n in (10, 100):
        f = program(n)
        USES[use](f)  # memoised types and derived rules are there
        with counted() as counts:
            USES[use](f)
        totals.append(counts)
    small, large = totals
    for key in small:
        assert large[key] <= 10.5 * small[key] + 5, (key, small, large)


def test_operations_of_each_interpreter():
    n = 20
    f = chain(n)
    with counted() as counts:
        cj.make_jaxpr(f)(X)
    assert counts["StagingTrace"] == 2 * n and counts["EvalTrace"] == 0
    with counted() as counts:
        cj.jvp(f, (X,), (X,))
    # Each operation once, its tangent rule once more (sin: cos and mul).
    assert counts["JVPTrace"] == 2 * n and counts["EvalTrace"] == 2 * n + 3 * n
    with counted() as counts:
        cj.vmap(f)(X)
    assert counts["BatchTrace"] == counts["EvalTrace"] == 2 * n


def test_equations_of_a_gradient():
    sizes = {}
    for n in (10, 100):
        f = fan(n)
        closed = cj.make_jaxpr(cj.grad(lambda x, f=f: sum_(f(x))))(X)
        sizes[n] = len(closed.eqns)
    assert sizes[100] <= 10 * sizes[10]


def test_programs_of_many_inputs():
    def total(n):
        xs = [X] * n
        closed = stage_closed(lambda *xs: inputs(n)(*xs), [cj.ShapedArray((3,), np.float32)] * n)
        with counted() as counts:
            cj.vmap(inputs(n))(*xs)
            cj.vjp(inputs(n), *xs)[1]([X] * n)
            jvp_jaxpr(closed, [True] * n)
            transpose_jaxpr(closed, [True] * n, [True] * n)
            dce(closed.jaxpr)
        return counts["calls"]

    total(5)
    assert total(100) <= 10.5 * total(10)


def test_nothing_after_the_first_output_is_kept():
    """Dead code: the tape of a vjp is as long as the program, the program made of it only as long as is needed."""

    def f(x):
        for _ in range(50):
            sin(x)
        return mul(x, 2.0)

    _, f_lin = cj.linearize(f, X)
    assert len(cj.make_jaxpr(f_lin)(X).eqns) == 1


def test_asking_a_tracer_for_an_unknown_attribute_is_cheap(monkeypatch):
    loads = []

    def costs(x):
        with counted() as counts:
            for _ in range(10):
                assert not hasattr(x, "nope") and not hasattr(x, "_nope")
        return counts["calls"]

    found = []

    def f(x):
        found.append(costs(x))
        found.append(costs(x))
        return x

    assert not hasattr(cj.Array(X), "nope")
    for use in (cj.make_jaxpr(f), cj.vmap(f), lambda x: cj.jvp(f, (x,), (x,))):
        use(X)
    assert max(found) < 300, found  # twenty questions
    load = plugins.manager().load
    monkeypatch.setattr(plugins.manager(), "load", lambda only=None: loads.append(1) or load(only))
    discovered = plugins.manager().records
    cj.make_jaxpr(lambda x: hasattr(x, "_private") or x)(X)
    assert loads == []  # private names are never a plugin's
    assert not hasattr(cj.Array(X), "nope") and len(loads) == 1
    assert plugins.manager().records is discovered


def test_a_message_costs_nothing_until_it_is_shown():
    """Lines and argument names are resolved for errors only."""
    from corejax.ir.debug_info import DebugInfo
    from corejax.messages import source_info

    refuse = lambda *args, **kwargs: pytest.fail("resolved without need")
    originals = source_info.locate_source, DebugInfo.arg_names
    source_info.locate_source = DebugInfo.arg_names = refuse
    try:
        for use in USES.values():
            use(chain(3))
    finally:
        source_info.locate_source, DebugInfo.arg_names = originals
