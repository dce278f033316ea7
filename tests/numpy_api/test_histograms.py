"""Counting: values as NumPy's, types as jax's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from tests.numpy_api.oracle import (
    check_against_jax,
    check_compiled_together,
    check_gradients,
    check_mapped,
    check_types,
)

X = np.array([1.53, 0.21, 3, 2.24, 0.21, 2.92, -4, 1.01], np.float32)
Y = np.array([0, 1, 2, 3, 4, 5, 6, 7.5], np.float32)
W = np.linspace(0.5, 2, 8, dtype=np.float32)
I = np.array([0, 3, 1, 3, 3, 7], np.int32)

COUNTS = [
    lambda xp, x: xp.bincount(x),
    lambda xp, x: xp.bincount(x, minlength=11),
    lambda xp, x: xp.bincount(x, x * 0.5, 3),
]
HISTOGRAMS = [
    lambda xp, x: xp.histogram(x),
    lambda xp, x: xp.histogram(x, 4, (-1, 3)),
    lambda xp, x: xp.histogram(x, bins=np.array([-1.0, 0, 2, 2.5]), weights=W),
    lambda xp, x: xp.histogram(x, 5, None, weights=W, density=True),
    lambda xp, x: xp.histogram(x, 3, range=(7, 7)),
    lambda xp, x: xp.histogram(x.reshape(2, -1), 3),
    lambda xp, x: [xp.histogram_bin_edges(x, 3)],
    lambda xp, x: [xp.histogram_bin_edges(x, 3, (0, 4))],
    lambda xp, x: xp.histogram2d(x, Y),
    lambda xp, x: xp.histogram2d(x, Y, [2, 3], [[0, 3], [1, 5]], weights=W),
    lambda xp, x: xp.histogram2d(x, Y, bins=np.array([0.0, 1, 3, 5]), density=True),
    lambda xp, x: xp.histogram2d(x, Y, [2, np.array([0.0, 1, 3, 5])]),
    lambda xp, x: xp.histogram2d(x, Y, (np.array([0.0, 2, 5]), xp.asarray([0.0, 1, 3, 5]))),
    lambda xp, x: [h := xp.histogramdd(xp.stack([x, Y, x], 1), (2, 3, 2), density=True), h[0], *h[1]][1:],
    lambda xp, x: [h := xp.histogramdd(xp.stack([x, Y], 1), 2, [None, (0, 5)], weights=W), h[0], *h[1]][1:],
]


def check_by_numpy(f: Any, x: Any) -> None:
    """Values by NumPy, from numbers 64 bits wide: jax compares edges with numbers in float32 too."""
    for ours, expected in zip(_list(f(jnp, x)), _list(f(np, x)), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


def _list(out: Any) -> list[Any]:
    return list(out) if isinstance(out, list | tuple) else [out]


def test_values_and_types() -> None:
    for f in COUNTS:
        check_by_numpy(f, I)
    for f in HISTOGRAMS:
        check_by_numpy(f, X)
    for f in HISTOGRAMS:
        check_types(f, np.arange(8, dtype=np.int32) % 5)


def test_counts_of_a_known_length() -> None:
    for options in ({"length": 5}, {"length": 3, "weights": I}, {"length": 2, "minlength": 6}):
        check_against_jax(lambda xp, x: xp.bincount(x, **options), I)  # noqa: B023
    assert jnp.bincount(np.array([-3, 1]), length=3).tolist() == [1, 1, 0]
    for dtype in ("uint8", "uint32", "int8"):
        assert jnp.bincount(np.zeros(0, dtype)).shape == (0,)
        assert jnp.bincount(np.array([0, 2, 2], dtype)).tolist() == [1, 0, 2]
    assert jnp.bincount(np.array([-3, -1])).shape == (0,)
    assert jnp.bincount(np.array([True, False, True])).tolist() == [1, 2]


def test_edges_that_are_integers_are_exact() -> None:
    counts, edges = jnp.histogram(np.array([0, 2, -1]), 3)
    assert counts.tolist() == [1, 1, 1] and edges.tolist() == [-1, 0, 1, 2]
    x = np.arange(-20, 21)
    for bins in range(1, 41):
        for dtype in ("int32", "float32", "float64"):
            expected = np.histogram(x.astype(dtype), bins)
            found = jnp.histogram(x.astype(dtype), bins)
            whole = expected[1] == np.round(expected[1])
            np.testing.assert_array_equal(np.asarray(found[1])[whole], expected[1][whole])
    assert corejax.jit(lambda x: jnp.bincount(x, length=4))(I).tolist() == [1, 1, 0, 3]
    for last, bins in ((3, 3), (5, 5), (7, 7), (9, 3), (11, 11)):
        x = np.arange(last + 1) - 2
        counts, edges = corejax.jit(lambda x: jnp.histogram(x, bins))(x)  # noqa: B023
        assert counts.tolist() == np.histogram(x, bins)[0].tolist() and np.all(edges == np.round(edges))


def test_compiled_and_derivatives() -> None:
    check_compiled_together(HISTOGRAMS[3::3], X, rtol=1e-5)
    check_mapped(HISTOGRAMS[:4], X, rtol=1e-5)
    check_gradients([lambda xp, w: xp.histogram(X, 4, weights=w, density=True)[0]], W)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: jnp.bincount(X), TypeError, r"bincount counts integers, got f32\[8\]"),
        (lambda: jnp.bincount(I[None]), ValueError, "bincount takes a vector"),
        (lambda: jnp.bincount(I, W), ValueError, r"weights of shape \(8,\)"),
        (lambda: jnp.bincount(I, minlength=-1), ValueError, "minlength"),
        (lambda: corejax.jit(jnp.bincount)(I), TypeError, "concrete"),
        (lambda: jnp.histogram(X, "auto"), NotImplementedError, "'auto'"),
        (lambda: jnp.histogram(X, []), ValueError, r"histogram: bins are .* got shape \(0,\)"),
        (lambda: jnp.histogram(X, 0), ValueError, "histogram: bins must be at least 1, got 0"),
        (lambda: jnp.histogram(X, 3, (2, 1)), ValueError, r"from the lower to the higher edge, got \(2, 1\)"),
        (lambda: jnp.histogram(X, 3, (1, 2, 3)), ValueError, "pair"),
        (lambda: jnp.histogram(X, 3, (0, np.inf)), ValueError, r"range is finite, .*got \(0, inf\)"),
        (lambda: jnp.histogram(X, 3, (np.nan, 1)), ValueError, r"range is finite, .*got \(nan, 1\)"),
        (lambda: jnp.histogram(X, weights=I), ValueError, r"histogram: weights of shape \(6,\)"),
        (lambda: jnp.histogramdd(X), ValueError, r"a sample is a matrix .* got f32\[8\]"),
        (lambda: jnp.histogramdd(X[:, None], (2, 3)), ValueError, "bins has one entry for each of the 1"),
        (lambda: jnp.histogram2d(X, Y[1:]), ValueError, "vectors of one size"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()


def test_edges_have_derivatives_where_they_are_integers() -> None:
    x = np.array([1, 2, 3, 0], np.float32)
    weights = np.array([1, 2, 4, 8], np.float32)
    for wrap in (lambda f: f, corejax.jit):
        found = wrap(corejax.grad(lambda x: jnp.histogram(x, 3)[1] @ weights))(x)
        np.testing.assert_allclose(found, [0, 0, 0 + 2 / 3 + 8 / 3 + 8, 1 + 4 / 3 + 4 / 3], rtol=1e-6)
