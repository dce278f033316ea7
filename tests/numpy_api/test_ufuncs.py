"""ufuncs and their methods, against jax's; `vectorize`, `apply_*`, `select`, `piecewise`, `fromfunction`."""

from __future__ import annotations

import copy
import inspect
import operator
import pickle
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from tests.numpy_api.oracle import assert_close, check_types, types

jax = pytest.importorskip("jax")

NAMES = ["add", "subtract", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"]
NAMES += ["logical_and", "logical_or", "logical_xor", "logaddexp", "logaddexp2"]
X = np.array([[3, 1, 2], [0, 6, 5]], np.int32)


def same(name: str, f: Any, *, of: Any = X) -> None:
    """`f(library's ufunc, library's array)` is the same here and in jax; types, and values where NumPy has them."""
    ours = f(getattr(jnp, name), jnp.asarray(of))
    theirs = jax.eval_shape(lambda x: f(getattr(jax.numpy, name), x), jax.numpy.asarray(of))
    assert types(ours) == types(theirs), name
    expected = f(getattr(np, name), of)
    assert_close(ours, expected, 1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_methods(name: str) -> None:
    theirs = getattr(jax.numpy, name)
    ours = getattr(jnp, name)
    assert isinstance(ours, jnp.ufunc)
    for attribute in ("nin", "nout", "nargs", "identity", "__name__"):
        assert getattr(ours, attribute) == getattr(theirs, attribute), attribute
    if name.endswith("_xor") and not hasattr(corejax.lax, "reduce_xor"):
        pytest.skip("needs reduce_xor")
    same(name, lambda f, x: f.reduce(x))
    if name != "subtract":  # which NumPy does not reorder
        same(name, lambda f, x: f.reduce(x, axis=None))
    same(name, lambda f, x: f.reduce(x, axis=-1, keepdims=True))
    same(name, lambda f, x: f.accumulate(x, axis=1))
    same(name, lambda f, x: f.outer(x[0], x))
    mask = X > 0
    initial = 0.0 if name.startswith("logadd") else 1
    same(name, lambda f, x: f.reduce(x, axis=1, where=mask, initial=initial))


def test_reduceat_and_at() -> None:
    x = np.arange(8, dtype=np.float32)
    for name in ("add", "subtract", "maximum", "logaddexp"):
        same(name, lambda f, x: f.reduceat(x, np.array([0, 3, 1, 5])), of=x)
        same(name, lambda f, x: f.reduceat(x, np.array([0, 2]), axis=1), of=x.reshape(2, 4))
    for name in ("add", "subtract", "multiply", "maximum"):
        expected = x.copy()
        getattr(np, name).at(expected, np.array([1, 1, 3]), np.array([5, 2, 4], np.float32))
        got = getattr(jnp, name).at(jnp.asarray(x), jnp.array([1, 1, 3]), jnp.array([5.0, 2, 4]), inplace=False)
        np.testing.assert_allclose(got, expected)
    np.testing.assert_array_equal(jnp.negative.at(jnp.arange(3), 1, inplace=False), [0, -1, 2])


def test_empty_reductions() -> None:
    empty = jnp.zeros((0, 2))
    np.testing.assert_array_equal(jnp.add.reduce(empty), [0, 0])
    np.testing.assert_array_equal(jnp.logaddexp.reduce(empty), [-np.inf, -np.inf])
    assert jnp.subtract.accumulate(empty).shape == (0, 2)
    with pytest.raises(ValueError, match="there are no elements, and the function has no identity"):
        jnp.subtract.reduce(empty)


def test_made_of_functions() -> None:
    f = jnp.frompyfunc(lambda x, y: x * y + 1, 2, 1, identity=1)
    x = jnp.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(f(x, jnp.arange(3)), x * np.arange(3) + 1)
    np.testing.assert_array_equal(f.reduce(x, axis=1), [5, 86])
    np.testing.assert_array_equal(f.accumulate(x), [[0, 1, 2], [1, 5, 11]])
    np.testing.assert_array_equal(f.outer(x[0], x[1]), np.outer([0, 1, 2], [3, 4, 5]) + 1)
    assert jnp.frompyfunc(operator.add, 2, 1) == jnp.frompyfunc(operator.add, 2, 1) != f
    two = jnp.frompyfunc(lambda x: (x, -x), 1, 2)
    assert two.nout == 2 and [v.shape for v in two(x)] == [(2, 3)] * 2
    assert pickle.loads(pickle.dumps(jnp.frompyfunc(operator.mul, 2, 1)))(3, 4) == 12


def test_objects() -> None:
    assert repr(jnp.add) == "<corejax.numpy.ufunc 'add'>"
    assert pickle.loads(pickle.dumps(jnp.add)) is jnp.add and copy.deepcopy(jnp.add) is jnp.add
    assert list(inspect.signature(jnp.add).parameters)[:2] == ["x", "y"] and jnp.add.__doc__
    with pytest.raises(AttributeError, match="is immutable"):
        jnp.add.nin = 3
    reduced = corejax.jit(lambda f, x: f.reduce(x), static_argnums=0)
    assert reduced(jnp.add, jnp.arange(3)) == 3 and reduced(jnp.multiply, jnp.arange(1, 4)) == 6
    grads = corejax.grad(lambda x: jnp.logaddexp.reduce(x))(jnp.zeros(4))
    np.testing.assert_allclose(grads, np.full(4, 0.25), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: jnp.add(x, x, out=x), NotImplementedError, "add: arrays are immutable"),
        (lambda x: jnp.add.reduce(x, out=x), NotImplementedError, "add.reduce: arrays are immutable"),
        (lambda x: jnp.add.at(x, 0, 1), NotImplementedError, r"x = add.at\(x, indices, ..., inplace=False\)"),
        (lambda x: jnp.negative.reduce(x), ValueError, "negative.reduce: only functions of two arguments"),
        (lambda x: jnp.maximum.reduce(x, where=x > 0), ValueError, "no identity, so give `initial`"),
        (lambda x: jnp.add.reduce(x, where=x), ValueError, "`where` must be a boolean array"),
        (lambda x: jnp.add.accumulate(x, axis=None), ValueError, "axis must be a single integer, got None"),
        (lambda x: jnp.subtract.reduce(x[None], axis=(0, 1)), NotImplementedError, r"got \(0, 1\)"),
        (lambda x: jnp.add.reduceat(x, jnp.ones((1, 1), int)), ValueError, r"a vector of integers, got i32\[1,1\]"),
        (lambda x: jnp.ufunc(3, 1, 1), TypeError, "func must be callable, got 3"),
    ],
)
def test_what_is_refused(call: Any, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        call(jnp.arange(3))


# -- vectorize -----------------------------------------------------------------------------------------------------


def test_vectorize() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    f = jnp.vectorize(lambda a, b: a * b + 1)
    np.testing.assert_array_equal(f(x, x[:, :1]), x * x[:, :1] + 1)
    np.testing.assert_array_equal(f(x, 2), x * 2 + 1)
    assert f(jnp.zeros((0, 3)), 1.0).shape == (0, 3) and f(x[:1, None], x[0]).shape == (1, 1, 3)
    np.testing.assert_array_equal(f(a=x, b=3), x * 3 + 1)
    matvec = jnp.vectorize(lambda m, v: m @ v, signature="(n,m),(m)->(n)")
    assert matvec(jnp.ones((4, 1, 2, 3)), jnp.ones((5, 3))).shape == (4, 5, 2)
    both = jnp.vectorize(lambda v: (v.sum(), v * 2), signature="(n)->(),(n)")
    total, twice = both(x)
    np.testing.assert_array_equal(total, x.sum(1))
    np.testing.assert_array_equal(twice, x * 2)
    np.testing.assert_array_equal(both(x[:, None])[0], x.sum(1)[:, None])


def test_vectorize_leaves_out() -> None:
    def f(n: int, x: Any, scale: Any = None, *, name: str = "") -> Any:
        assert type(n) is int and name in ("", "kept")
        return x**n if scale is None else x**n * scale

    g = jnp.vectorize(f, excluded={0, "name"})
    np.testing.assert_array_equal(g(2, jnp.arange(3), name="kept"), [0, 1, 4])
    np.testing.assert_array_equal(g(2, jnp.arange(3), None), [0, 1, 4])
    np.testing.assert_array_equal(g(2, jnp.arange(3), 2), [0, 2, 8])
    h = jnp.vectorize(lambda n, v: v[:n].sum(), excluded=(0,), signature="(m)->()")
    np.testing.assert_array_equal(h(2, jnp.ones((4, 3))), np.full(4, 2))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jnp.vectorize(abs, signature="n->n"), ValueError, "a signature has the form"),
        (lambda: jnp.vectorize(abs, excluded=(1.5,)), TypeError, "positions and names"),
        (lambda: jnp.vectorize(abs, excluded=(-1,)), ValueError, "count from 0"),
        (lambda: jnp.vectorize(abs, signature="(n)->(n)")(1.0), ValueError, "does not have enough dimensions"),
        (lambda: jnp.vectorize(abs, signature="(n)->(n)")(1, 2), TypeError, "expected 1, got 2"),
        (lambda: jnp.vectorize(abs, signature="(n)->()")(jnp.ones(3)), ValueError, r"output shape \(3,\)"),
        (
            lambda: jnp.vectorize(lambda x, y: x, signature="(n),(n)->(n)")(jnp.ones(3), jnp.ones(2)),
            ValueError,
            "inconsistent size for core dimension 'n': 2 and 3",
        ),
        (lambda: jnp.vectorize(lambda x, y: x)(jnp.ones(3), jnp.ones(2)), ValueError, "broadcast"),
    ],
)
def test_what_vectorize_refuses(call: Any, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_derivative_of_vectorized() -> None:
    f = jnp.vectorize(lambda x, v: jnp.sin(x) * v.sum(), signature="(),(n)->()")
    x, v = jnp.arange(3.0), jnp.ones((3, 2))
    got = corejax.jit(corejax.grad(lambda x: f(x, v).sum()))(x)
    np.testing.assert_allclose(got, 2 * np.cos(np.arange(3.0)), rtol=1e-6)


def test_over_axes() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for axis in (0, 1, -1):
        got = jnp.apply_along_axis(lambda row, n: row[:n] * 2, axis, x, 2)
        np.testing.assert_array_equal(got, np.apply_along_axis(lambda row, n: row[:n] * 2, axis, x, 2))
    np.testing.assert_array_equal(jnp.apply_over_axes(jnp.sum, x, (0, 2)), np.apply_over_axes(np.sum, x, (0, 2)))
    np.testing.assert_array_equal(jnp.fromfunction(lambda i, j: i * 2 + j, (2, 3)), [[0, 1, 2], [2, 3, 4]])
    assert jnp.fromfunction(lambda i: i, (3,), dtype=int).dtype == np.int32
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.apply_along_axis(jnp.sum, 3, x)
    with pytest.raises(ValueError, match=r"returns f32\[\] for f32\[2,3,4\]"):
        jnp.apply_over_axes(lambda a, axis: a.sum(), x, 0)


def test_select() -> None:
    x = np.arange(6, dtype=np.int32)
    check_types(lambda xp, x: xp.select([x < 2, x < 4], [x, x * 2.5], 7), x)
    np.testing.assert_array_equal(jnp.select([x < 2, x < 4], [x, x * 10]), [0, 1, 20, 30, 0, 0])
    assert jnp.select([True, x < 3], [1.5, x]).dtype == np.float32
    with pytest.raises(ValueError, match="2 conditions for 1 choices"):
        jnp.select([x, x], [x])
    with pytest.raises(ValueError, match="at least one"):
        jnp.select([], [])


def test_piecewise() -> None:
    x = np.linspace(-2, 2, 5, dtype=np.float32)
    parts = [lambda v: v * 2, lambda v, *a, **k: v * v, 7]
    for functions in (parts, parts[:2]):
        got = jnp.piecewise(x, [x < 0, x > 1], functions)
        np.testing.assert_array_equal(got, np.piecewise(x, [x < 0, x > 1], functions))
    np.testing.assert_array_equal(jnp.piecewise(x, x > 0, [lambda v, s, k=1: v * s + k], 3, k=2), [0, 0, 0, 5, 8])
    assert jnp.piecewise(jnp.arange(3), [jnp.arange(3) > 1], [2.7]).dtype == np.int32
    assert corejax.grad(lambda x: jnp.piecewise(x, [x > 0], [jnp.sqrt, 0.0]))(4.0) == 0.25
    with pytest.raises(ValueError, match="1 conditions go with 1 or 2 functions, got 3"):
        jnp.piecewise(x, [x > 0], [1, 2, 3])


def test_a_part_that_is_not_taken_does_not_count_in_derivatives_of_piecewise() -> None:
    x, scale = np.array([0.0, 2.0, -1.0]), 2.0
    for functions in ([lambda v, a: 0.0 * v * a, lambda v, a: a * np.float64(1) * v], None):

        def f(xp: Any, x: Any, a: Any, functions: Any = functions) -> Any:
            parts = functions or [lambda v, a: 0 * v, lambda v, a: xp.log(v), lambda v, a: xp.sqrt(-v * a)]
            return xp.piecewise(x, [x < 1, x > 1, x < 0][: len(parts)], parts, a).sum()

        for transform in (lambda lib, f: lib.grad(f, (0, 1)), lambda lib, f: lib.hessian(f)):
            wanted = transform(jax, lambda x, a: f(jax.numpy, x, a))(x, scale)
            for wrap in (lambda f: f, corejax.jit):
                got = wrap(transform(corejax, lambda x, a: f(jnp, x, a)))(x, scale)
                for a, b in zip(corejax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-6)
                    assert np.isfinite(a).all()


@pytest.mark.parametrize("axis", [(0, 1), (0, 2), (-1, 0), (), (2,), None])
def test_reductions_by_the_function_itself_go_along_several_axes(axis: Any) -> None:
    x = np.linspace(-3, 3, 24, dtype=np.float32).reshape(2, 3, 4)
    for keepdims in (False, True):
        wanted = np.logaddexp.reduce(x, axis=axis, keepdims=keepdims) if axis != () else x
        np.testing.assert_allclose(jnp.logaddexp.reduce(x, axis=axis, keepdims=keepdims), wanted, rtol=2e-6)
    f = jnp.frompyfunc(lambda a, b: 2 * a + b, 2, 1)
    if axis is not None and len(axis) != 1:
        with pytest.raises(NotImplementedError, match="without an identity the order of elements matters"):
            f.reduce(x, axis=axis)
