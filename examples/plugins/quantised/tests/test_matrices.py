"""Quantised matrices against plain ones."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.quantised import QuantisedMatrix, quantise

W = jnp.asarray(np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32))
X = jnp.asarray(np.random.default_rng(1).normal(size=(2, 4)).astype(np.float32))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_rounding(dtype: str) -> None:
    w = W.astype(dtype)
    q = quantise(w)
    assert (q.shape, q.dtype) == (w.shape, w.dtype)
    step = jnp.abs(w).max(axis=0) / 127
    assert bool(jnp.all(jnp.abs(q.dequantise() - w) <= step))


def test_products_and_gradients() -> None:
    q = quantise(W)

    def loss(w: QuantisedMatrix | corejax.Array, x: corejax.Array) -> corejax.Array:
        return jnp.sum(jnp.tanh(x @ w))

    np.testing.assert_allclose(X @ q, X @ q.dequantise(), rtol=1e-5, atol=1e-6)
    of_q, of_x = corejax.jit(corejax.grad(loss, (0, 1)))(q, X)
    plain_w, plain_x = corejax.grad(loss, (0, 1))(q.dequantise(), X)
    assert isinstance(of_q, QuantisedMatrix)
    np.testing.assert_allclose(of_q.value, plain_w, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(of_x, plain_x, rtol=1e-5, atol=1e-6)


def test_training_with_rounded_weights() -> None:
    target = X @ W

    def error(w: corejax.Array) -> corejax.Array:
        return jnp.mean((X @ quantise(w) - target) ** 2)

    @corejax.jit
    def step(w: corejax.Array) -> corejax.Array:
        return w - 0.2 * corejax.grad(error)(w)

    w = jnp.ones((4, 3))
    for _ in range(200):
        w = step(w)
    assert float(error(w)) < 1e-3


def test_columns_of_zeros_and_batches() -> None:
    q = quantise(jnp.zeros((4, 3)))
    np.testing.assert_array_equal(X @ q, np.zeros((2, 3)))
    many = corejax.vmap(quantise)(jnp.stack([W, 2 * W]))
    out = corejax.vmap(lambda q: X @ q)(many)
    np.testing.assert_allclose(out[1], 2 * out[0], rtol=1e-5)


def test_errors() -> None:
    with pytest.raises(TypeError, match="takes a matrix of floating-point numbers"):
        quantise(jnp.arange(3))
    with pytest.raises(TypeError, match="operands of one dtype"):
        X.astype("float16") @ quantise(W)
