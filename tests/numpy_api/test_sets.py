"""Set functions: against NumPy where values are known, against jax where the size is given."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corejax
import corejax.numpy as jnp

X = np.array([[3, 1, 2, 1], [3, 5, 2, 2]], np.int32)
Y = np.array([2, 9, 3, 3, 7], np.int32)
F = np.array([0.5, np.nan, -0.0, 2.0, np.nan, 0.0, -1.0], np.float32)
ROWS = np.array([[1, 0], [0, 1], [1, 0], [0, 0], [0, 1]], np.float32)

KNOWN = [
    (lambda m, x: m.unique(x), X),
    (lambda m, x: m.unique(x, return_index=True, return_inverse=True, return_counts=True), X),
    (lambda m, x: m.unique(x, return_counts=True), F),
    (lambda m, x: m.unique(x, equal_nan=False, return_inverse=True), F),
    (lambda m, x: m.unique(x, axis=0, return_index=True, return_counts=True), ROWS),
    (lambda m, x: m.unique(x, axis=1), X),
    (lambda m, x: m.unique(x), X > 2),
    (lambda m, x: m.unique(x), X[:0]),
    (lambda m, x: m.unique(x * (1 - 1j)), F[[0, 2, 3]]),
    (lambda m, x: m.union1d(x, m.asarray(Y)), X),
    (lambda m, x: m.intersect1d(x, m.asarray(Y), return_indices=True), X),
    (lambda m, x: m.setdiff1d(x, m.asarray(Y)), X),
    (lambda m, x: m.setdiff1d(x, m.asarray(Y), assume_unique=True), X),
    (lambda m, x: m.setxor1d(x, m.asarray(Y)), X),
    (lambda m, x: m.isin(x, m.asarray(Y)), X),
    (lambda m, x: m.isin(x, m.asarray(Y), invert=True), X),
    (lambda m, x: m.isin(x, x), F),
]


def _flat(out: Any) -> list[Any]:
    return list(out) if isinstance(out, tuple | list) else [out]


@pytest.mark.parametrize(("f", "x"), KNOWN)
def test_known_values_are_numpys(f: Any, x: Any) -> None:
    jax = pytest.importorskip("jax")
    outs = [_flat(f(np, x)), _flat(f(jnp, jnp.asarray(x))), _flat(f(jax.numpy, jax.numpy.asarray(x)))]
    for wanted, ours, theirs in zip(*outs, strict=True):
        np.testing.assert_array_equal(ours, wanted)
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)


SIZED = [
    lambda m, x, y, n: m.unique(x, True, True, True, size=n),
    lambda m, x, y, n: m.unique(x, True, True, True, size=n, fill_value=-7),
    lambda m, x, y, n: m.unique(m.reshape(x, (-1, 2)), True, True, True, axis=0, size=n, fill_value=-7),
    lambda m, x, y, n: m.unique(m.reshape(x, (-1, 2)), axis=0, size=n, fill_value=np.array([-7, 9], np.int8)),
    lambda m, x, y, n: m.unique(m.reshape(x, (2, -1)), axis=1, size=n, fill_value=np.array([-7, 9], np.int8)),
    lambda m, x, y, n: m.union1d(x, y, size=n),
    lambda m, x, y, n: m.setdiff1d(x, y, size=n),
    lambda m, x, y, n: m.setdiff1d(y, x, size=n, fill_value=4),
    lambda m, x, y, n: m.setxor1d(x, y, size=n),
    lambda m, x, y, n: m.setxor1d(x, y, size=n, fill_value=-3),
    lambda m, x, y, n: m.intersect1d(x, y, return_indices=True, size=n),
    lambda m, x, y, n: m.intersect1d(x, y, size=n, fill_value=-3),
    lambda m, x, y, n: m.intersect1d(x[:1, :3], y[:3], True, True, size=n),
    lambda m, x, y, n: tuple(m.unique_all(x, size=n, fill_value=0)),
]


def test_a_given_size_is_jaxs() -> None:
    jax = pytest.importorskip("jax")

    def everything(m: Any, x: Any, y: Any) -> list[Any]:
        return [_flat(f(m, x, y, (12, 2)[i % 2])) for i, f in enumerate(SIZED)]

    wanted = jax.jit(lambda x, y: everything(jax.numpy, x, y))(X, Y)
    compiled = corejax.jit(lambda x, y: everything(jnp, x, y))(X, Y)
    eager = everything(jnp, jnp.asarray(X), jnp.asarray(Y))
    for i, outs in enumerate(zip(wanted, compiled, eager, strict=True)):
        for w, u, v in zip(*outs, strict=True):
            np.testing.assert_array_equal(u, w, err_msg=f"case {i}, compiled")
            np.testing.assert_array_equal(v, w, err_msg=f"case {i}, run")
            assert (u.dtype, v.dtype) == (w.dtype, w.dtype)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([0.0, -0.0, 1.0, 2.5, np.nan]), min_size=1, max_size=9), st.booleans())
def test_the_two_ways_agree(values: list[float], equal_nan: bool) -> None:
    x = np.array(values, np.float32)
    known = jnp.unique(x, True, True, True, equal_nan=equal_nan)
    sized = jnp.unique(x, True, True, True, equal_nan=equal_nan, size=known[0].size)
    for name, a, b in zip(("values", "index", "inverse", "counts"), known, sized, strict=True):
        if name == "inverse" and not equal_nan:
            a, b = (np.where(np.isnan(x), -1, v) for v in (a, b))
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b), err_msg=name)


@pytest.mark.parametrize("method", ["auto", "compare_all", "binary_search", "sort"])
def test_isin(method: str) -> None:
    table = np.arange(60, dtype=np.int32) * 3 % 50
    for f in (lambda x, t: jnp.isin(x, t, method=method), lambda x, t: jnp.isin(x, t, invert=True, method=method)):
        wanted = np.isin(X, table) == bool(f(X[:1, :1], X)[0, 0])
        np.testing.assert_array_equal(corejax.jit(f)(X, table), wanted)
        np.testing.assert_array_equal(f(X, table), wanted)
    assert not jnp.isin(np.float32(np.nan), F, method=method)


def test_narrow_types_and_batches() -> None:
    x = np.array([2, 1, 2, 0.5], ml_dtypes.bfloat16)
    assert jnp.unique(x).dtype == x.dtype
    np.testing.assert_array_equal(jnp.unique(x).astype("float32"), [0.5, 1, 2])
    batched = corejax.vmap(lambda x: jnp.unique(x, size=3))(X)
    np.testing.assert_array_equal(batched, [[1, 2, 3], [2, 3, 5]])
    assert jnp.unique(X[:0], size=2, fill_value=5).tolist() == [5, 5]


def test_derivatives_where_values_decide_about_sizes() -> None:
    """Of the elements that are the first of their kind: the sizes are as of the values."""
    x, y = np.array([1, 2, 2, 3, 0, 0], np.float32), np.array([5, 2, 1], np.float32)
    change = np.arange(1, 7, dtype=np.float32)
    pushed = lambda f: corejax.jvp(f, (x,), (change,))
    for f, values, tangents in (
        (jnp.unique, [0, 1, 2, 3], [5, 1, 2, 4]),
        (jnp.unique_values, [0, 1, 2, 3], [5, 1, 2, 4]),
        (lambda x: jnp.unique(x, return_inverse=True)[0], [0, 1, 2, 3], [5, 1, 2, 4]),
        (lambda x: jnp.unique(x[None], axis=1), [[0, 1, 2, 3]], [[5, 1, 2, 4]]),
        (lambda x: jnp.union1d(y, x), [0, 1, 2, 3, 5], [5, 0, 0, 4, 0]),
        (lambda x: jnp.setdiff1d(x, y), [0, 3], [5, 4]),
        (lambda x: jnp.setxor1d(x, y), [0, 3, 5], [5, 4, 0]),
        (lambda x: jnp.intersect1d(x, y), [1, 2], [0, 0]),  # the second of two that are equal, as with `size`
        (lambda x: jnp.intersect1d(y, x), [1, 2], [1, 2]),
        (lambda x: jnp.trim_zeros(x), [1, 2, 2, 3], [1, 2, 3, 4]),
    ):
        found, tangent = pushed(f)
        np.testing.assert_array_equal(found, values)
        np.testing.assert_array_equal(tangent, tangents)
    with pytest.raises(corejax.errors.ConcretizationTypeError, match="size=n"):
        corejax.grad(corejax.jit(lambda x: jnp.unique(x).sum()))(x)


def test_what_depends_on_values_says_so() -> None:
    for f in (
        jnp.unique,
        lambda x: jnp.setdiff1d(x, Y),
        lambda x: jnp.intersect1d(Y, x),
        lambda x: jnp.setxor1d(x, Y),
        lambda x: jnp.union1d(x, Y),
        jnp.unique_counts,
    ):
        with pytest.raises(corejax.errors.ConcretizationTypeError, match=r"depends on values.*size=n"):
            corejax.jit(f)(X)
    with pytest.raises(ValueError, match="size is not negative, got -1"):
        jnp.unique(X, size=-1)
    with pytest.raises(ValueError, match="unique: an empty array gives 2 elements only with a fill_value"):
        jnp.unique(X[:0], size=2)
    with pytest.raises(ValueError, match="unique: axis 2 is out of bounds"):
        jnp.unique(X, axis=2)
    with pytest.raises(ValueError, match="isin: method is one of"):
        jnp.isin(X, X, method="hash")
    with pytest.raises(TypeError, match="unique takes arrays and scalars, got list"):
        jnp.unique([1, 2])


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_a_number_of_parts_along_any_axis(axis: int) -> None:
    x = np.moveaxis(np.stack([np.arange(6).reshape(2, 3), np.ones((2, 3), int), np.arange(6).reshape(2, 3)]), 0, axis)
    wanted = np.unique(x, axis=axis, return_index=True, return_inverse=True, return_counts=True)
    found = corejax.jit(
        lambda x: jnp.unique(x, True, True, True, axis=axis, size=len(wanted[1])),
    )(x)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want.reshape(got.shape))
