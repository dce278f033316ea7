"""Linearisation, transposition, and what reverse mode makes of them."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax.core.trace import state as trace_state
from corejax.errors import MissingRuleError
from corejax.extend import Primitive, ShapedArray, UndefPrimal, is_undef_primal, stage, transpose_rules, tree
from corejax.extend.programs import check_jaxpr
from corejax.extend.transforms import zero_cotangent
from corejax.interpreters.linearize import linearize_flat
from corejax.interpreters.transposition import backward_pass
from tests.kernel.toys import (
    add,
    call,
    cos,
    jacrev,
    moments_p,
    mul,
    neg,
    reshape,
    scale_p,
    sin,
    sincos_p,
    sum_,
    swap_p,
    transpose,
)

pytestmark = pytest.mark.usefixtures("toys")
X = np.array([0.5, 1.0, -2.0], np.float32)
Y = np.array([1.0, -1.0, 3.0], np.float32)
VEC = ShapedArray((3,), np.float32)


def test_tape():
    outs, tape = linearize_flat(lambda x, y: [mul(sin(x), y), cos(y), 3.0], [X, Y], [True, False])
    assert [e.primitive.name for e in tape.eqns] == ["toy.mul", "toy.mul"]
    assert tape.outs[1:] == [None, None] and tape.tracers[1] is None
    np.testing.assert_allclose(outs[0], np.sin(X) * Y, rtol=1e-6)
    jaxpr, residuals = tape.to_jaxpr()
    assert check_jaxpr(jaxpr) == ([VEC], [VEC]) and len(residuals) == 2
    assert tape.to_jaxpr()[0] is jaxpr
    pushed = tape.push([Y, None])
    np.testing.assert_allclose(pushed[0], np.cos(X) * Y * Y, rtol=1e-6)
    assert pushed[1:] == [None, None]
    cts = tape.pull([X, Y, None])  # a cotangent of an output with zero tangent does not matter
    np.testing.assert_allclose(cts[0], X * Y * np.cos(X), rtol=1e-6)
    assert cts[1] is None and tape.pull([None, None, None]) == [None, None]


def test_residuals_are_computed_once():
    count = []

    def impl(x):
        count.append(1)
        return np.cos(x)

    slow = Primitive("toy.slow", impl=impl, abstract_eval=lambda a: a)
    f = Primitive(
        "toy.with_slow",
        impl=np.sin,
        abstract_eval=lambda a: a,
        jvp=lambda primals, tangents: (f.bind(*primals), mul(tangents[0], slow.bind(*primals))),
    )
    _, f_lin = cj.linearize(f.bind, X)
    _, f_vjp = cj.vjp(f.bind, X)
    for _ in range(3):
        f_lin(Y)
        f_vjp(Y)
    assert len(count) == 2


def test_one_output_twice_and_pass_through():
    _out, pullback = cj.vjp(lambda x, y: (mul(x, 2.0), x, y, x), X, Y)
    ctx, cty = pullback((X, Y, X, Y))
    np.testing.assert_allclose(ctx, 2 * X + Y + Y)
    np.testing.assert_allclose(cty, X)
    s = lambda x: (lambda y: (y, y))(sin(x))
    np.testing.assert_allclose(cj.vjp(s, X)[1]((X, Y))[0], (X + Y) * np.cos(X), rtol=1e-6)


def test_none_is_a_zero_tangent_and_a_zero_cotangent():
    _, pullback = cj.vjp(lambda x, y: (sin(x), cos(y)), X, Y)
    ctx, cty = pullback((None, X))
    np.testing.assert_array_equal(ctx, np.zeros(3))
    np.testing.assert_allclose(cty, -X * np.sin(Y), rtol=1e-6)
    _, f_lin = cj.linearize(mul, X, Y)
    np.testing.assert_allclose(f_lin(None, X), X * X)
    np.testing.assert_allclose(cj.jvp(mul, (X, Y), (None, X))[1], X * X)
    (ct,) = cj.linear_transpose(lambda x: (mul(x, 2.0), neg(x)), X)((None, Y))
    np.testing.assert_allclose(ct, -Y)


def test_none_in_a_tree_is_no_leaf():
    f = lambda d: sum_(mul(d["a"], d["c"][0]))
    params = {"a": X, "b": None, "c": (Y, None)}
    assert cj.grad(f)(params)["b"] is None
    _out, tangent = cj.jvp(f, (params,), (params,))
    np.testing.assert_allclose(tangent, 2 * np.sum(X * Y))
    np.testing.assert_allclose(cj.linearize(f, params)[1](params), 2 * np.sum(X * Y))
    gradient = cj.vjp(f, params)[1](np.float32(1.0))[0]
    assert gradient["c"][1] is None
    zero = {"a": None, "b": None, "c": (Y, None)}
    np.testing.assert_allclose(cj.jvp(f, (params,), (zero,))[1], np.sum(X * Y))


def test_multiple_results():
    f = lambda x: (lambda s, c: mul(s, add(c, s)))(*sincos_p.bind(x))
    wanted = np.cos(X) * (np.cos(X) + 2 * np.sin(X)) - np.sin(X) ** 2
    np.testing.assert_allclose(cj.grad(lambda x: sum_(f(x)))(X), wanted, rtol=1e-5)
    g = lambda x, y: sum_(mul(swap_p.bind(mul(x, 2.0), y)[1], y))
    dx, dy = cj.grad(g, (0, 1))(X, Y)
    np.testing.assert_allclose(dx, 2 * Y)
    np.testing.assert_allclose(dy, 2 * X)
    # One of the results has no cotangent: the plain transpose rule gets zeros, and the other result counts.
    for k, wanted in ((0, 3.0), (1, 1.0)):
        np.testing.assert_allclose(
            cj.linear_transpose(lambda x, k=k: scale_p.bind(x, factor=3.0)[k], X)(Y)[0], wanted * Y
        )


def test_backward_pass_evaluates_what_is_not_linear():
    jaxpr, consts = stage(lambda r, x: [mul(sin(cos(r)), mul(x, 2.0)), x, r, 1.0], [VEC, VEC])
    cts = backward_pass(jaxpr, consts, [X, UndefPrimal(VEC)], [Y, Y, None, None])
    assert cts[0] is None
    np.testing.assert_allclose(cts[1], 2 * np.sin(np.cos(X)) * Y + Y, rtol=1e-6)
    assert backward_pass(jaxpr, consts, [X, UndefPrimal(VEC)], [None] * 4) == [None, None]
    with_cts_of_values = backward_pass(jaxpr, consts, [X, UndefPrimal(VEC)], [None, None, Y, np.float32(1)])
    assert with_cts_of_values == [None, None]  # cotangents of outputs that are not linear do not matter
    assert trace_state.source is None


def test_same_linear_operand_twice():
    (ct,) = cj.linear_transpose(lambda x: add(x, x), X)(Y)
    np.testing.assert_allclose(ct, 2 * Y)
    (ct,) = cj.linear_transpose(lambda x: [x, x], X)([Y, X])
    np.testing.assert_allclose(ct, X + Y)


def test_transposes_that_change_shape():
    f = lambda x: reshape(transpose(x), (3, 2))
    m = np.arange(6, dtype=np.float32).reshape(2, 3)
    (ct,) = cj.linear_transpose(f, m)(np.arange(6, dtype=np.float32).reshape(3, 2))
    np.testing.assert_array_equal(ct, np.arange(6).reshape(3, 2).T)


def test_undef_primal():
    x = UndefPrimal(VEC)
    assert is_undef_primal(x) and not is_undef_primal(X) and repr(x) == "UndefPrimal(f32[3])"
    zeros = zero_cotangent(VEC.update(weak_type=True))
    assert zeros.aval is VEC


def test_linear_transpose_of_what_is_not_linear():
    with pytest.raises(MissingRuleError, match=r"toy.sin.*no transpose rule") as info:
        cj.linear_transpose(sin, X)(X)
    assert info.value.kind == "transpose"
    with pytest.raises(TypeError, match="not linear in both"):
        cj.linear_transpose(lambda x: mul(x, x), X)(X)
    np.testing.assert_array_equal(cj.linear_transpose(lambda x: X, X)(Y)[0], np.zeros(3))  # a constant: zero


def test_rules_from_a_decomposition_transpose():
    linear = Primitive("toy.twice_and_sum", decomposition=lambda x, y: add(mul(x, 2.0), y))
    f = lambda x, y: sum_(linear.bind(sin(x), y))
    np.testing.assert_allclose(cj.grad(f)(X, Y), 2 * np.cos(X), rtol=1e-6)
    (ct, ct2) = cj.linear_transpose(linear.bind, X, Y)(X)
    np.testing.assert_allclose([ct, ct2], [2 * X, X])
    assert transpose_rules.rule_of(linear).derived == "decomposition"
    np.testing.assert_allclose(cj.grad(lambda x: moments_p.bind(x, Y, weight=2.0)[0])(X), Y)
    weighted = lambda x: sum_(moments_p.bind(x, Y, weight=2.0)[1])
    np.testing.assert_allclose(cj.grad(weighted)(X), 2 * np.cos(X), rtol=1e-6)


PROGRAMS = {
    "vmap": lambda f: cj.vmap(f)(np.eye(3, dtype=np.float32)),
    "jvp": lambda f: cj.jvp(f, (X,), (Y,)),
    "grad": lambda f: cj.grad(lambda t: sum_(mul(f(t), t)))(X),
    "vmap of grad": lambda f: cj.vmap(cj.grad(lambda t: sum_(mul(f(t), t))))(np.eye(3, dtype=np.float32)),
    "call": lambda f: call(f)(X),
    "staging": lambda f: (lambda c: cj.eval_jaxpr(c.jaxpr, c.consts, [X]))(cj.make_jaxpr(f)(X)),
    "jacobian": lambda f: jacrev(f)(X),
}


@pytest.mark.parametrize("use", PROGRAMS.values(), ids=PROGRAMS)
def test_used_later_within_other_transformations(use):
    """Linear functions and pullbacks are ordinary functions: they are traced like any other."""
    f = lambda x: mul(sin(x), x)
    slope = np.sin(X) + X * np.cos(X)
    flat = lambda out: [np.asarray(x) for x in tree.tree_leaves(out)]
    wanted = use(lambda t: mul(t, slope))
    pullback = cj.vjp(f, X)[1]
    for one in (cj.linearize(f, X)[1], lambda ct: pullback(ct)[0], lambda ct: cj.vjp(f, X)[1](ct)[0]):
        for got, want in zip(flat(use(one)), flat(wanted), strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-5)


def test_made_inside_a_transformation_and_used_there():
    def f(x):
        _y, pullback = cj.vjp(lambda x: mul(sin(x), x), x)
        return cj.vmap(lambda ct: pullback(ct)[0])(np.eye(3, dtype=np.float32))

    wanted = np.diag(np.sin(X) + X * np.cos(X))
    np.testing.assert_allclose(f(X), wanted, rtol=1e-6)
    np.testing.assert_allclose(cj.vmap(f)(X[None])[0], wanted, rtol=1e-6)
    np.testing.assert_allclose(call(f)(X), wanted, rtol=1e-6)
    second = np.diag(2 * np.cos(X) - X * np.sin(X))
    np.testing.assert_allclose(cj.jvp(f, (X,), (np.ones_like(X),))[1], second, rtol=1e-5)


def test_repr_of_a_pullback():
    def function(x):
        return x

    assert repr(cj.vjp(function, X)[1]) == "<pullback of function>"
