"""A primitive declared by a decomposition alone: every rule is derived, explicit rules win one by one."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax.errors import MissingRuleError
from corejax.extend import (
    Array,
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    impl_rules,
    jvp_rules,
    transpose_rules,
    vmap_rules,
)
from corejax.extend.transforms import trace_stack
from corejax.settings.config import config
from tests.kernel.toys import add, call, cos, hessian, jacfwd, moments_p, mul, sin, sum_

pytestmark = pytest.mark.usefixtures("toys")
X = np.array([0.5, 1.0, -2.0], np.float32)
M = np.arange(6, dtype=np.float32).reshape(2, 3)


def fresh(name, decomposition, **rules):
    return Primitive(f"toy.decomposed_{name}", decomposition=decomposition, **rules)


def body(x, *, k):
    """Something of x."""
    return mul(sin(x), add(x, k))


def test_every_rule():
    p = fresh("every", body)
    assert p.doc == "Something of x."
    f, wanted = (lambda x: p.bind(x, k=2.0)), (lambda x: body(x, k=2.0))
    assert type(f(X)) is Array
    np.testing.assert_array_equal(f(X), wanted(X))
    np.testing.assert_array_equal(f(2.0), wanted(2.0))
    assert f(2.0).aval is wanted(2.0).aval  # the weak type too
    for transform in (
        lambda f: cj.jvp(f, (X,), (X,))[1],
        lambda f: cj.vmap(f, 1)(M),
        lambda f: cj.grad(lambda x: sum_(f(x)))(X),
        lambda f: cj.vmap(cj.grad(lambda x: sum_(f(x))))(M),
        lambda f: hessian(lambda x: sum_(f(x)))(X),
        lambda f: cj.linearize(f, X)[1](X),
        lambda f: call(f)(X),
        lambda f: cj.grad(call(lambda x: sum_(f(x))))(X),
        lambda f: jacfwd(call(f))(X),
    ):
        np.testing.assert_allclose(transform(f), transform(wanted), rtol=1e-6)
    closed = cj.make_jaxpr(f)(X)
    assert [e.primitive for e in closed.eqns] == [p] and closed.out_avals == [ShapedArray((3,), np.float32)]
    for registry in (impl_rules, abstract_eval_rules, jvp_rules, vmap_rules):
        assert registry.rule_of(p).derived == "decomposition"


def test_explicit_rules_win_one_by_one():
    called = []

    def jvp(primals, tangents, *, k):
        called.append("jvp")
        return p.bind(*primals, k=k), mul(tangents[0], 100.0)

    p = fresh("own_jvp", body, jvp=jvp)
    assert jvp_rules.rule_of(p).derived is None
    np.testing.assert_allclose(cj.grad(lambda x: sum_(p.bind(x, k=2.0)))(X), [100.0] * 3)
    np.testing.assert_allclose(cj.vmap(lambda x: p.bind(x, k=2.0))(M), body(M, k=2.0), rtol=1e-6)
    assert called == ["jvp"]
    vmap_rules.register(p, lambda size, vals, dims, *, k: (called.append("vmap") or p.bind(*vals, k=k), dims[0]))
    cj.vmap(lambda x: p.bind(x, k=2.0))(M)
    assert called == ["jvp", "vmap"] and vmap_rules.rule_of(p).derived is None


def test_own_impl():
    p = fresh("own_impl", body, impl=lambda x, *, k: np.full_like(x, k))
    np.testing.assert_array_equal(p.bind(X, k=2.0), [2.0] * 3)
    assert abstract_eval_rules.get(p) and abstract_eval_rules.rule_of(p).derived == "decomposition"


def test_several_results():
    total, weighted = moments_p.bind(X, X, weight=3.0)
    np.testing.assert_allclose(total, np.sum(X * X))
    np.testing.assert_allclose(weighted, 3 * np.sin(X), rtol=1e-6)
    assert cj.eval_shape(lambda x: moments_p.bind(x, x, weight=3.0), X)[0].shape == ()
    outs = cj.vmap(lambda x: moments_p.bind(x, X, weight=3.0), out_axes=[0, 1])(M)
    assert [o.shape for o in outs] == [(2,), (3, 2)]


def test_transposed_where_linear():
    p = fresh("linear", lambda x, y, *, k: add(mul(x, k), mul(cos(y), x)))
    (ct,) = cj.linear_transpose(lambda x: p.bind(x, X, k=2.0), X)(X)
    np.testing.assert_allclose(ct, X * (2 + np.cos(X)), rtol=1e-6)
    assert transpose_rules.rule_of(p).derived == "decomposition"


def test_decompositions_of_decompositions():
    inner = fresh("inner", lambda x: mul(x, x))
    outer = fresh("outer", lambda x: add(inner.bind(sin(x)), x))
    f = lambda x: sum_(outer.bind(x))
    np.testing.assert_allclose(cj.grad(f)(X), 2 * np.sin(X) * np.cos(X) + 1, rtol=1e-5)
    np.testing.assert_allclose(cj.grad(cj.grad(lambda x: outer.bind(x)))(0.5), 2 * np.cos(1.0), rtol=1e-5)
    np.testing.assert_allclose(cj.vmap(outer.bind)(M), np.sin(M) ** 2 + M, rtol=1e-5, atol=1e-6)


def test_body_that_fails_leaves_the_stack_clean():
    p = fresh("fails", lambda x: 1 / 0)
    for use in (
        lambda: p.bind(X),
        lambda: cj.make_jaxpr(p.bind)(X),
        lambda: cj.jvp(p.bind, (X,), (X,)),
        lambda: cj.vmap(p.bind)(M),
    ):
        with pytest.raises(ZeroDivisionError):
            use()
        assert len(trace_stack()) == 1


def test_constants_of_a_body():
    table = np.array([1.0, 2.0, 3.0], np.float32)
    p = fresh("closes_over", lambda x: mul(x, table))
    np.testing.assert_allclose(cj.grad(lambda x: sum_(p.bind(x)))(X), table)
    np.testing.assert_allclose(cj.vmap(p.bind)(M), M * table)
    np.testing.assert_allclose(cj.linear_transpose(p.bind, X)(X)[0], X * table)


def test_strict_rules_refuse_derived_ones():
    p = fresh("strict", body)
    with config.override(strict_rules=True), pytest.raises(MissingRuleError, match="derived rules are refused"):
        cj.jvp(lambda x: p.bind(x, k=1.0), (X,), (X,))
    np.testing.assert_allclose(cj.jvp(lambda x: p.bind(x, k=1.0), (X,), (X,))[0], body(X, k=1.0))
