"""Pullbacks and linear functions are pytrees: their leaves are the residuals, so they pass through transformations."""

from __future__ import annotations

import gc
import weakref

import numpy as np

import corejax
import corejax.numpy as jnp
from corejax import lax, tree_util

F = np.float32
X = np.array([0.3, -0.2, 0.7], F)
CT = np.array([1.0, 0.5, -0.25], F)


def f(x, y):
    return {"product": jnp.sin(x) * y, "first": x * 2.0}


def cts(scale=1.0):
    return {"product": CT * F(scale), "first": CT * CT}


def same(got, want):
    for a, b in zip(tree_util.tree_leaves(got), tree_util.tree_leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_residuals_are_the_leaves():
    _, pullback = corejax.vjp(f, X, 2 * X)
    leaves, treedef = tree_util.tree_flatten(pullback)
    assert leaves and all(isinstance(x, corejax.Array) for x in leaves)
    again = tree_util.tree_unflatten(treedef, leaves)
    assert repr(again) == repr(pullback) == "<pullback of f>"
    same(again(cts()), pullback(cts()))
    assert tree_util.tree_structure(again) == treedef == tree_util.tree_structure(pullback)
    doubled = tree_util.tree_map(lambda r: r * 2, corejax.vjp(lambda x: x * X, X)[1])
    same(doubled(CT), (2 * CT * X,))


def test_out_of_jit_and_into_it():
    out, pullback = corejax.jit(lambda x, y: corejax.vjp(f, x, y))(X, 2 * X)
    same(out, f(X, 2 * X))
    want = corejax.vjp(f, X, 2 * X)[1](cts())
    same(pullback(cts()), want)
    same(corejax.jit(lambda p, ct: p(ct))(pullback, cts()), want)
    _, f_lin = corejax.jit(lambda x, y: corejax.linearize(f, x, y))(X, 2 * X)
    same(f_lin(CT, X), corejax.jvp(f, (X, 2 * X), (CT, X))[1])
    same(corejax.jit(lambda g, *t: g(*t))(f_lin, CT, X), corejax.jvp(f, (X, 2 * X), (CT, X))[1])
    shapes = corejax.eval_shape(lambda x: corejax.vjp(lambda y: jnp.sin(y), x), X)[1]
    assert [s.shape for s in tree_util.tree_leaves(shapes)] == [(3,)]


def test_out_of_vmap_and_into_it():
    xs, ys = np.stack([X, CT, X * CT]), np.stack([CT, X, X])
    _, pullbacks = corejax.vmap(lambda x, y: corejax.vjp(f, x, y))(xs, ys)
    many = tree_util.tree_map(lambda c: np.stack([c] * 3), cts())
    want = [corejax.vjp(f, x, y)[1](cts()) for x, y in zip(xs, ys, strict=True)]
    same(corejax.vmap(lambda p, ct: p(ct))(pullbacks, many), tree_util.tree_map(lambda *a: np.stack(a), *want))


def test_residuals_of_a_custom_rule():
    @corejax.custom_vjp
    def g(x, y):
        return f(x, y)

    g.defvjp(lambda x, y: corejax.vjp(f, x, y), lambda pullback, ct: pullback(ct))

    def loss(h):
        return lambda x: sum(leaf.sum() for leaf in tree_util.tree_leaves(h(x, x * x)))

    def through_scan(h):
        return lambda x: lax.scan(lambda c, _: (h(c, x)["product"], None), x, None, length=3)[0].sum()

    for through in (loss, through_scan):
        want = corejax.grad(through(f))(X)
        for transform in (corejax.grad, lambda h: corejax.jit(corejax.grad(h)), lambda h: corejax.grad(corejax.jit(h))):
            same(transform(through(g))(X), want)
        same(corejax.grad(corejax.checkpoint(through(g)))(X), want)
        both = corejax.vmap(corejax.grad(through(g)))(np.stack([X, CT]))
        same(both, np.stack([want, corejax.grad(through(f))(CT)]))


def test_integers_and_arguments_that_do_not_matter():
    def h(x, n, unused):
        return x * n, n

    _, pullback = corejax.vjp(h, X, 3, CT)
    again = tree_util.tree_map(lambda r: r, pullback)
    for p in (pullback, again):
        x_bar, n_bar, unused_bar = p((CT, None))
        same((x_bar, unused_bar), (3 * CT, 0 * CT))
        assert n_bar.dtype == corejax.float0 and n_bar.shape == ()
    _, constant = corejax.vjp(lambda x: 1.0, X)
    same(tree_util.tree_map(lambda r: r, constant)(1.0), (0 * X,))
    _, f_lin = corejax.linearize(h, X, 3, CT)
    tangent, n_dot = tree_util.tree_map(lambda r: r, f_lin)(CT, None, CT)
    same(tangent, 3 * CT)
    assert n_dot.dtype == corejax.float0


def test_arguments_that_are_no_residuals_are_let_go():
    x = jnp.asarray(X) * 1
    gone = weakref.ref(x)
    _, pullback = corejax.vjp(lambda x: x * 2.0, x)
    _, f_lin = corejax.linearize(lambda x: x * 2.0, x)
    del x
    gc.collect()
    assert gone() is None
    same(pullback(CT), (2 * CT,))
    same(f_lin(CT), 2 * CT)


def test_aux_that_is_an_argument_comes_out_as_an_array():
    """As results do; what is no value of the function stays what it is."""
    given = object()
    for through in (lambda x: x, corejax.jit(lambda x: x), corejax.checkpoint(lambda x: x)):
        fun = lambda x, through=through: ((x * x).sum(), {"x": through(x), "other": given, "n": 3})
        auxes = [
            corejax.grad(fun, has_aux=True)(X)[1],
            corejax.vjp(fun, X, has_aux=True)[2],
            corejax.linearize(fun, X, has_aux=True)[2],
            corejax.jvp(fun, (X,), (X,), has_aux=True)[2],
        ]
        for aux in auxes:
            assert isinstance(aux["x"], corejax.Array) and aux["other"] is given and type(aux["n"]) is int
            same(aux["x"], X)


def test_transposes_of_functions_of_integers():
    both = corejax.linear_transpose(lambda x, y: (3 * x, y), 1, np.arange(2, dtype=np.int32))
    x, y = both((2, np.array([4, 5], np.int32)))
    assert (x, x.dtype) == (6, np.int32)
    np.testing.assert_array_equal(y, [4, 5])
    assert corejax.linear_transpose(lambda x: x[0], [1, 2])(3) == ([3, 0],)


def test_transposes_are_pytrees_of_what_they_close_over():
    scale = corejax.jit(lambda k: corejax.linear_transpose(lambda x: k * x, X))(jnp.asarray(F(2)))
    assert len(tree_util.tree_leaves(scale)) == 1
    same(corejax.jit(lambda f, ct: f(ct))(scale, CT), (2 * CT,))
    same(corejax.vmap(lambda k: corejax.linear_transpose(lambda x: k * x, F(1))(F(3)))(X), (3 * X,))
