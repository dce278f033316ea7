"""Compiled programs: what a call costs, and what runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import corejax
import corejax.numpy as cnp
from cases.registry import Sides, X, case


@case("jitted call on two device arrays", 1.2)
def jitted_call() -> Sides:
    ours, theirs = corejax.jit(lambda x, y: x + y), jax.jit(lambda x, y: x + y)
    a, b = ours(X, X), theirs(X, X)
    return lambda: ours(a, a), lambda: theirs(b, b)


@case("compiled matmul of 1024 x 1024", 1.05)
def matmul() -> Sides:
    ours, theirs = corejax.jit(lambda x: x @ x), jax.jit(lambda x: x @ x)
    m = np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float32) / 32
    a, b = ours(m), theirs(m)
    return lambda: ours(a).block_until_ready(), lambda: theirs(b).block_until_ready()


@case("compiled train step of a two-layer network", 1.05)
def train_step() -> Sides:
    rng = np.random.default_rng(0)
    sizes = [(64, 512), (512,), (512, 10), (10,)]
    weights = [rng.standard_normal(s).astype(np.float32) * 0.1 for s in sizes]
    images = rng.standard_normal((256, 64)).astype(np.float32)
    targets = np.eye(10, dtype=np.float32)[rng.integers(0, 10, 256)]

    def step(lib: Any, numpy: Any) -> Callable[..., Any]:
        def loss(w: Any, x: Any, y: Any) -> Any:
            hidden = numpy.tanh(x @ w[0] + w[1])
            return numpy.mean((hidden @ w[2] + w[3] - y) ** 2)

        def update(w: Any, x: Any, y: Any) -> Any:
            return [p - 0.1 * g for p, g in zip(w, lib.grad(loss)(w, x, y), strict=True)]

        return lib.jit(update)  # type: ignore[no-any-return]

    ours, theirs = step(corejax, cnp), step(jax, jnp)
    a, b = ours(weights, images, targets), theirs(weights, images, targets)
    ca, cb = corejax.device_put((images, targets)), jax.device_put((images, targets))
    return (
        lambda: corejax.block_until_ready(ours(a, *ca)),
        lambda: jax.block_until_ready(theirs(b, *cb)),
    )


def _jitted_again(lib: Any, numpy: Any, transform: Callable[..., Any]) -> Callable[[], Any]:
    """`jit` of a function of 20 layers, and a call, as libraries have them in loops."""
    weights, x = [numpy.eye(64) * 0.1] * 20, numpy.ones((8, 64))

    def network(x: Any) -> Any:
        for w in weights:
            x = numpy.tanh(x @ w)
        return numpy.sum(x**2)

    return lambda: lib.block_until_ready(lib.jit(transform(network))(x))


@case("jit again of a network, and a call", 2.0)
def jitted_again() -> Sides:
    return _jitted_again(corejax, cnp, lambda f: f), _jitted_again(jax, jnp, lambda f: f)


@case("jit again of a gradient, and a call", 0.05, short=True)
def gradient_jitted_again() -> Sides:
    return _jitted_again(corejax, cnp, corejax.grad), _jitted_again(jax, jnp, jax.grad)
