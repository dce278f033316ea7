"""Partial evaluation with a policy."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax.extend import (
    ShapedArray,
    defcall,
    inline_closed,
    merge_lists,
    partial_eval_jaxpr,
    stage_closed,
)
from corejax.extend.programs import check_jaxpr, recompute_rules
from corejax_control_flow.programs.recomputation import RECOMPUTATION
from tests.kernel.toys import call, cos, mul, print_p, printed, sin

pytestmark = pytest.mark.usefixtures("toys")
F = np.float32
X = np.array([0.5, 1.0, -2.0], F)
Y = np.array([1.0, -1.0, 3.0], F)
VEC = ShapedArray((3,), F)
CONST = cj.Array(np.array([2.0, 3.0, 4.0], F))


def nothing(primitive, *avals, **params):
    return False


def only(*names):
    return lambda primitive, *avals, **params: primitive.name.removeprefix("toy.") in names


def names(closed):
    return [e.primitive.name.removeprefix("toy.") for e in closed.eqns]


def halves(fun, policy, instantiate=False):
    """Known x, unknown y; checks that the halves compose."""
    closed = stage_closed(fun, [VEC, VEC])
    known, unknown, unknowns_out, num_res = partial_eval_jaxpr(closed, [False, True], instantiate, policy)
    check_jaxpr(known)
    check_jaxpr(unknown)
    first = inline_closed(known, [X])
    count = len(first) - num_res
    second = inline_closed(unknown, [*first[count:], Y])
    got = merge_lists(unknowns_out, first[:count], second)
    for a, b in zip(got, inline_closed(closed, [X, Y]), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)
    assert partial_eval_jaxpr(closed, [False, True], instantiate, policy)[0] is known
    return known, unknown, num_res


def chain(x, y):
    a = sin(x)
    b = cos(a)
    return [b, mul(mul(b, a), y)]


@pytest.mark.parametrize(
    ("policy", "again", "num_res"),
    [
        (None, ["mul"], 1),
        (nothing, ["sin", "cos", "mul", "mul"], 1),
        (only("sin"), ["cos", "mul", "mul"], 1),
        (only("cos"), ["sin", "mul", "mul"], 2),
        (only("sin", "cos"), ["mul", "mul"], 2),
        (only("mul"), ["mul"], 1),
    ],
)
def test_policies(policy, again, num_res):
    known, unknown, count = halves(chain, policy)
    assert (names(unknown), count) == (again, num_res)
    assert names(known)[:2] == ["sin", "cos"]


def test_policies_see_avals_and_params():
    seen = []

    def policy(primitive, *avals, **params):
        seen.append((primitive.name, avals, params))
        return False

    halves(chain, policy)
    assert ("toy.sin", (VEC,), {}) in seen and ("toy.mul", (VEC, VEC), {}) in seen


def test_residuals_that_nothing_uses_are_dropped():
    def f(x, y):
        a = sin(x)
        mul(a, y)  # unknown, and of no use
        return [y, cos(x)]

    known, unknown, num_res = halves(f, None)
    assert (names(known), names(unknown), num_res) == (["cos"], [], 0)


def test_effects_happen_once():
    def f(x, y):
        print_p.bind(x)
        return [mul(sin(x), y)]

    printed.clear()
    known, unknown, _ = halves(f, nothing)
    assert known.effects == {"print"} and not unknown.effects


def test_constants_are_no_residuals():
    _, unknown, num_res = halves(lambda x, y: [mul(mul(CONST, sin(x)), y)], nothing)
    assert num_res == 1 and len(unknown.consts) == 1


def test_policies_reach_into_calls():
    def f(x, y):
        (a,) = call(lambda x: (cos(sin(x)),))(x)
        return [mul(a, y)]

    _, unknown, _ = halves(f, only("sin"))
    assert names(unknown) == ["closed_call", "mul"]
    call_p = next(e.primitive for e in unknown.eqns if e.primitive.name == "toy.closed_call")
    defcall(call_p, "jaxpr", rules=["recompute"])
    try:
        known, unknown, num_res = halves(f, only("sin"))
        (again,) = (e.params["jaxpr"] for e in unknown.eqns if e.primitive is call_p)
        (first,) = (e.params["jaxpr"] for e in known.eqns if e.primitive is call_p)
        assert (names(again), names(first)) == (["cos"], ["sin"])  # nobody needs the first cosine
        assert num_res == 1
        _, unknown, _ = halves(f, nothing)
        (again,) = (e.params["jaxpr"] for e in unknown.eqns if e.primitive is call_p)
        assert names(again) == ["sin", "cos"]
    finally:
        del recompute_rules[call_p]


def test_a_program_that_is_run_twice():
    closed = stage_closed(lambda x: [cos(sin(x)), x, sin(x), CONST], [VEC])
    policy = only("sin")
    first, again, count = RECOMPUTATION.programs(closed, policy)
    assert count == 2 and RECOMPUTATION.programs(closed, policy)[0] is first
    outs = inline_closed(first, [X])
    for a, b in zip(inline_closed(again, [*outs[4:], X]), outs[:4], strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    assert names(again) == ["cos"]
