"""Which values are kept for the unknown half of a program, and which are computed again because that is cheap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax.extend import ClosedJaxpr, Primitive, abstract_eval_rules, partial_eval_jaxpr
from corejax.extend.programs import check_jaxpr
from tests.kernel.toys import add, mul, sin

pytestmark = pytest.mark.usefixtures("toys")
X = np.linspace(0.1, 0.9, 8, dtype=np.float32)


@pytest.fixture
def scaled(toys) -> Callable[[Any, float], Any]:
    """A cheap primitive: a multiple."""
    scaled_p = Primitive("toy.times", impl=lambda x, *, by: np.asarray(x) * np.float32(by), tags=("cheap",))
    abstract_eval_rules.register(scaled_p, lambda x, *, by: x)
    return lambda x, by: scaled_p.bind(x, by=by)


@pytest.fixture
def repeated(toys) -> Callable[[Any, int], Any]:
    """Another one: an array several times."""
    repeated_p = Primitive("toy.repeated", impl=lambda x, *, times: np.tile(x, times), tags=("cheap",))
    abstract_eval_rules.register(repeated_p, lambda x, *, times: x.update(shape=(times * x.shape[0],)))
    return lambda x, times: repeated_p.bind(x, times=times)


def halves(fun: Callable[..., Any], *args: Any, unknown: int = 1) -> tuple[ClosedJaxpr, ClosedJaxpr, list[Any]]:
    """Both halves of a program whose last arguments are unknown, tried beside the whole; and the residuals' shapes."""
    whole = cj.make_jaxpr(fun)(*args)
    unknowns = [i >= len(args) - unknown for i in range(len(args))]
    known, rest, unknowns_out, count = partial_eval_jaxpr(whole, unknowns)
    check_jaxpr(known.jaxpr)
    check_jaxpr(rest.jaxpr)
    outs = cj.eval_jaxpr(known.jaxpr, known.consts, args[: len(args) - unknown])
    first = len(outs) - count
    later = iter(cj.eval_jaxpr(rest.jaxpr, rest.consts, [*outs[first:], *args[len(args) - unknown :]]))
    now = iter(outs[:first])
    got = [next(later) if u else next(now) for u in unknowns_out]
    for a, b in zip(got, cj.eval_jaxpr(whole.jaxpr, whole.consts, args), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)
    return known, rest, [v.aval.shape for v in known.jaxpr.outvars[first:]]


def names(program: ClosedJaxpr) -> list[str]:
    return [eqn.primitive.name for eqn in program.jaxpr.eqns]


def test_what_is_made_of_a_residual_is_not_kept_beside_it(scaled):
    def f(x, y):
        s = sin(x)
        return mul(mul(s, y), scaled(scaled(s, 3.0), 2.0))

    known, rest, kept = halves(f, X, X)
    assert kept == [X.shape]
    assert names(known) == ["toy.sin"]
    assert names(rest).count("toy.times") == 2


def test_a_small_root_is_kept_for_what_is_large(repeated):
    y = np.tile(X, 5)
    known, rest, kept = halves(lambda x, y: mul(repeated(sin(x), 5), y), X, y)
    assert kept == [X.shape]
    assert names(known) == ["toy.sin"] and names(rest)[0] == "toy.repeated"


def test_one_root_is_kept_for_two_that_are_made_of_it(scaled):
    known, _, kept = halves(lambda x, y: mul(scaled(sin(x), 2.0), mul(scaled(sin(x), 3.0), y)), X, X)
    assert kept == [X.shape, X.shape]  # of two roots nothing is gained

    def f(x, y):
        s = sin(x)
        return mul(scaled(s, 2.0), mul(scaled(s, 3.0), y))

    known, _, kept = halves(f, X, X)
    assert kept == [X.shape] and names(known) == ["toy.sin"]


def test_a_value_is_kept_in_place_of_a_root_of_its_size(scaled):
    known, rest, kept = halves(lambda x, y: mul(scaled(sin(x), 2.0), y), X, X)
    assert kept == [X.shape] and names(known) == ["toy.sin", "toy.times"] and names(rest) == ["toy.mul"]


def test_arguments_are_roots_and_outputs_stay_known(scaled):
    known, rest, kept = halves(lambda x, y: (scaled(x, 2.0), mul(x, mul(scaled(x, 2.0), y))), X, X)
    assert kept == [X.shape] and known.jaxpr.outvars[1] is known.jaxpr.invars[0]
    assert "toy.times" in names(known) and "toy.times" in names(rest)


def test_a_long_chain_and_many_roots_are_kept(scaled):
    def chain(length):
        def f(x, y):
            s = t = sin(x)
            for _ in range(length):
                t = scaled(t, 1.1)
            return mul(s, mul(t, y))

        return f

    assert len(halves(chain(5), X, X)[2]) == 1
    assert len(halves(chain(20), X, X)[2]) == 2
    assert len(halves(chain(3000), X, X)[2]) == 2  # and nothing recurs


def test_what_is_not_said_to_be_cheap_is_kept():
    def f(x, y):
        s = sin(x)
        return mul(s, mul(add(s, s), y))

    _, rest, kept = halves(f, X, X)
    assert len(kept) == 2 and names(rest) == ["toy.mul", "toy.mul"]


def test_a_policy_decides_alone(scaled):
    def f(x, y):
        s = sin(x)
        return mul(s, mul(scaled(s, 2.0), y))

    whole = cj.make_jaxpr(f)(X, X)
    everything = partial_eval_jaxpr(whole, [False, True], policy=lambda primitive, *avals, **params: True)
    assert everything[3] == 2
    nothing = partial_eval_jaxpr(whole, [False, True], policy=lambda primitive, *avals, **params: False)
    assert nothing[3] == 1 and "toy.sin" in names(nothing[1])
