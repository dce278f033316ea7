"""Partial evaluation while tracing: what is known is computed, what is not is recorded."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax.core.trace import new_main, state
from corejax.extend import Array, ShapedArray, partial_eval_rules
from corejax.extend.programs import Literal, check_jaxpr
from corejax.interpreters.partial_eval import PartialEvalTrace, PartialEvalTracer, partial_eval_flat
from tests.kernel.toys import add, call, closed_call_p, cos, mul, print_p, printed, sin, sincos_p, sum_

pytestmark = pytest.mark.usefixtures("toys")
X = np.array([0.5, 1.0, -2.0], np.float32)
Y = np.array([1.0, -1.0, 3.0], np.float32)
VEC = ShapedArray((3,), np.float32)


def split(fun, known, avals):
    jaxpr, residuals, outs, unknowns = partial_eval_flat(fun, known, avals)
    check_jaxpr(jaxpr)
    return jaxpr, residuals, outs, unknowns


def finish(jaxpr, residuals, outs, unknowns, args):
    """All outputs, given the unknown arguments."""
    later = iter(cj.eval_jaxpr(jaxpr, residuals, args))
    return [next(later) if u else x for x, u in zip(outs, unknowns, strict=True)]


def test_known_is_computed_and_unknown_recorded():
    f = lambda x, y: [sin(x), mul(sin(x), y), cos(y), 2.0]
    jaxpr, residuals, outs, unknowns = split(f, [X, None], [None, VEC])
    assert unknowns == [False, True, True, False]
    assert [e.primitive.name for e in jaxpr.eqns] == ["toy.mul", "toy.cos"]
    assert [np.asarray(r).tolist() for r in residuals] == [np.sin(X).tolist()]
    got = finish(jaxpr, residuals, outs, unknowns, [Y])
    for a, b in zip(got, f(X, Y), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_everything_known_or_nothing():
    jaxpr, residuals, outs, unknowns = split(lambda x: [sin(x)], [X], [None])
    assert (jaxpr.eqns, residuals, unknowns) == ([], [], [False]) and type(outs[0]) is Array
    jaxpr, residuals, outs, unknowns = split(lambda x: [sin(x), x], [None], [VEC])
    assert (residuals, outs, unknowns) == ([], [None, None], [True, True])
    assert jaxpr.outvars[1] is jaxpr.invars[0]


def test_residuals_are_shared_and_scalars_are_literals():
    z = cj.Array(X)
    jaxpr, residuals, *_ = split(lambda y: [mul(add(mul(y, z), z), 2.0)], [None], [VEC])
    assert len(residuals) == 1 and residuals[0] is z
    assert type(jaxpr.eqns[-1].invars[1]) is Literal
    jaxpr, residuals, *_ = split(lambda y: [mul(y, np.array(3.0, np.float32))], [None], [VEC])
    assert residuals == []  # a copy, which nobody writes to, so a literal as well
    matrix = np.array(X)
    jaxpr, residuals, *_ = split(lambda y: [mul(add(mul(y, matrix), matrix), matrix)], [None], [VEC])
    assert len(residuals) == 1


def test_what_the_outputs_do_not_need_is_dropped_but_effects_stay():
    def f(y):
        sin(y)
        print_p.bind(cos(y))
        return [mul(y, 2.0)]

    jaxpr, *rest = split(f, [None], [VEC])
    assert [e.primitive.name for e in jaxpr.eqns] == ["toy.cos", "toy.print", "toy.mul"]
    assert printed == []
    finish(jaxpr, *rest, [Y])
    assert len(printed) == 1


def test_effects_on_known_values_happen_at_once():
    split(lambda x, y: [print_p.bind(x), y][1:], [X, None], [None, VEC])
    assert len(printed) == 1


def test_multiple_results():
    jaxpr, residuals, outs, unknowns = split(lambda y: [sincos_p.bind(y)[1]], [None], [VEC])
    np.testing.assert_allclose(finish(jaxpr, residuals, outs, unknowns, [Y])[0], np.cos(Y), rtol=1e-6)


def test_a_rule_of_its_own_splits_the_program():
    f = call(lambda x, y: (sin(x), mul(cos(x), y)))
    jaxpr, residuals, outs, unknowns = split(lambda x, y: f(x, y), [X, None], [None, VEC])
    assert unknowns == [False, True]
    (eqn,) = jaxpr.eqns
    assert eqn.primitive is closed_call_p
    assert [e.primitive.name for e in eqn.params["jaxpr"].eqns] == ["toy.mul"]
    np.testing.assert_allclose(outs[0], np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(finish(jaxpr, residuals, outs, unknowns, [Y])[1], np.cos(X) * Y, rtol=1e-6)


def test_rules_run_one_level_down():
    seen = []
    rule = partial_eval_rules.table[closed_call_p]

    def spy(trace, args, **params):
        seen.append(state.trace is trace.parent)
        return rule(trace, args, **params)

    partial_eval_rules.register(closed_call_p, spy, override=True)
    try:
        cj.grad(lambda x: sum_(call(sin)(x)))(X)
    finally:
        partial_eval_rules.unregister(closed_call_p)
    assert seen == [True] and partial_eval_rules.table[closed_call_p] is rule


def test_unknown_values_are_abstract():
    seen = []

    def f(y):
        seen.append(repr(y))
        with pytest.raises(cj.errors.TracerBoolConversionError):
            bool(sum_(y))
        return [y]

    split(f, [None], [VEC])
    assert seen == ["PartialEvalTracer(float32[3])"]


def test_two_tapes_at_once():
    """An unknown value of one trace is known to another one on top of it."""
    outer = PartialEvalTrace(state.trace)
    with new_main(outer):
        y = outer.new_arg(VEC)
        inner_outs = partial_eval_flat(lambda z: [mul(z, y), sin(y)], [None], [VEC])
        jaxpr, residuals, outs, unknowns = inner_outs
        assert unknowns == [True, False] and residuals == [y] and type(outs[1]) is PartialEvalTracer
        result = cj.eval_jaxpr(jaxpr, residuals, [X])
    jaxpr, residuals = outer.to_jaxpr([y], [*result, outs[1]])
    check_jaxpr(jaxpr)
    np.testing.assert_allclose(cj.eval_jaxpr(jaxpr, residuals, [Y])[0], X * Y)


def test_staged():
    """Under staging, the known part is recorded in the program and the unknown part on the tape."""

    def f(x, y):
        jaxpr, residuals, _outs, _ = partial_eval_flat(lambda x, y: [mul(sin(x), y)], [x, None], [None, VEC])
        return cj.eval_jaxpr(jaxpr, residuals, [y])

    closed = cj.make_jaxpr(f)(X, Y)
    assert [e.primitive.name for e in closed.eqns] == ["toy.sin", "toy.mul"]
