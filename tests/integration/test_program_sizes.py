"""Programs as people write them come down to about as many equations as in jax: compositions stay compositions."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax

MORE = 1.15  # times jax's, and
SOME = 2  # more


def _f(*shape: int) -> Any:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}


def program(*args: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of a library (jax, or corejax) and arrays."""

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[f.__name__] = (f, args)
        return f

    return register


@program(_f(8, 4), _f(4, 16), _f(16), _f(16, 3), _f(3))
def mlp(jax: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    return jax.nn.relu(x @ w1 + b1) @ w2 + b2


@program(_f(8, 3), np.arange(8) % 3)
def softmax_cross_entropy(jax: Any, logits: Any, labels: Any) -> Any:
    return -jax.numpy.mean(jax.numpy.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, 3), axis=-1))


@program(_f(2, 5, 8), _f(8), _f(8))
def layer_norm(jax: Any, x: Any, scale: Any, shift: Any) -> Any:
    mean = jax.numpy.mean(x, axis=-1, keepdims=True)
    variance = jax.numpy.var(x, axis=-1, keepdims=True)
    return (x - mean) / jax.numpy.sqrt(variance + 1e-5) * scale + shift


@program(_f(2, 5, 3, 4), _f(2, 5, 3, 4), _f(2, 5, 3, 4))
def attention(jax: Any, q: Any, k: Any, v: Any) -> Any:
    scores = jax.numpy.einsum("bqhd,bkhd->bhqk", q, k) / 2.0
    mask = jax.numpy.tril(jax.numpy.ones((5, 5), dtype=bool))
    scores = jax.numpy.where(mask, scores, -1e9)
    return jax.numpy.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)


@program(_f(2, 5, 3, 4), _f(2, 5, 3, 4), _f(2, 5, 3, 4))
def attention_of_nn(jax: Any, q: Any, k: Any, v: Any) -> Any:
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


@program(_f(2, 8, 8, 3), _f(3, 3, 3, 3), _f(3, 3, 3, 3))
def resnet_block(jax: Any, x: Any, w1: Any, w2: Any) -> Any:
    def conv(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    return jax.nn.relu(x + conv(jax.nn.relu(conv(x, w1)), w2))


@program(_f(2, 4), _f(2, 3), _f(2, 3), _f(7, 12), _f(12))
def lstm_cell(jax: Any, x: Any, h: Any, c: Any, w: Any, b: Any) -> Any:
    gates = jax.numpy.concatenate([x, h], axis=-1) @ w + b
    i, f, g, o = jax.numpy.split(gates, 4, axis=-1)
    c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jax.numpy.tanh(g)
    return jax.nn.sigmoid(o) * jax.numpy.tanh(c), c


@program(_f(6, 2), _f(5, 2))
def gaussian_kernel(jax: Any, x: Any, y: Any) -> Any:
    squares = jax.numpy.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=-1)
    return jax.numpy.exp(-0.5 * squares) + 1e-6 * jax.numpy.eye(6, 5)


@program(_f(10, 4), np.array([1, 3, 3, 9]))
def embedding_lookup(jax: Any, table: Any, tokens: Any) -> Any:
    return table[tokens] * np.float32(np.sqrt(4))


@program(_f(9, 2), _f(3, 2))
def k_means_step(jax: Any, points: Any, centres: Any) -> Any:
    distances = jax.numpy.sum((points[:, None] - centres[None]) ** 2, -1)
    chosen = jax.nn.one_hot(jax.numpy.argmin(distances, axis=1), 3)
    return (chosen.T @ points) / jax.numpy.maximum(chosen.sum(0)[:, None], 1)


@program(_f(4), _f(4, 4), _f(4, 4), _f(2, 4), _f(2))
def kalman_prediction(jax: Any, mean: Any, cov: Any, f: Any, h: Any, z: Any) -> Any:
    mean, cov = f @ mean, f @ cov @ f.T + 0.1 * jax.numpy.eye(4)
    return z - h @ mean, h @ cov @ h.T + jax.numpy.diag(jax.numpy.ones(2))


@program(_f(5, 3) + 2, _f(5, 3))
def ray_marching_step(jax: Any, origins: Any, directions: Any) -> Any:
    d = directions / jax.numpy.sqrt(jax.numpy.sum(directions**2, axis=-1, keepdims=True))
    distance = jax.numpy.sqrt(jax.numpy.sum(origins**2, axis=-1)) - 1.0
    return jax.numpy.where(distance[:, None] > 1e-3, origins + d * distance[:, None], origins)


@program(_f(3))
def runge_kutta_step(jax: Any, x: Any) -> Any:
    def slope(x: Any) -> Any:
        return jax.numpy.stack([10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]])

    k1 = slope(x)
    k2 = slope(x + 0.005 * k1)
    k3 = slope(x + 0.005 * k2)
    return x + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + slope(x + 0.01 * k3))


@program(_f(6, 4), _f(4))
def power_iteration(jax: Any, x: Any, v: Any) -> Any:
    x = x - x.mean(axis=0)
    v = x.T @ (x @ v)
    return v / jax.numpy.sqrt(jax.numpy.vdot(v, v))


@program(_f(8, 3), np.arange(8) % 2, _f(3))
def logistic_regression(jax: Any, x: Any, y: Any, w: Any) -> Any:
    z = x @ w
    return jax.numpy.mean(jax.numpy.logaddexp(0.0, z) - y * z) + 0.01 * jax.numpy.sum(w**2)


@program(_f(16))
def heat_equation_step(jax: Any, u: Any) -> Any:
    return u + 0.1 * (jax.numpy.roll(u, 1) - 2 * u + jax.numpy.roll(u, -1))


@program(_f(5), _f(5), _f(5), _f(5))
def adam_step(jax: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 0.01 * (m / (1 - 0.9)) / (jax.numpy.sqrt(v / (1 - 0.999)) + 1e-8), m, v


@program(_f(4, 3), _f(3, 3), _f(3, 3), _f(3))
def scan_of_a_cell(jax: Any, xs: Any, w: Any, u: Any, h: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = jax.numpy.tanh(x @ w + h @ u)
        return h, h

    return jax.lax.scan(step, h, xs)


@program(_f(12))
def moving_statistics(jax: Any, x: Any) -> Any:
    sums = jax.numpy.cumsum(jax.numpy.pad(x, (1, 0)))
    means = (sums[3:] - sums[:-3]) / 3
    return means, jax.numpy.clip(x, -0.5, 0.5).std(), jax.numpy.argmax(x)


@program(_f(6, 8))
def gelu_and_dropout_mask(jax: Any, x: Any) -> Any:
    kept = jax.numpy.arange(8) % 2 == 0
    return jax.numpy.where(kept, jax.nn.gelu(x) / 0.5, 0.0)


@program(_f(5, 3), _f(7, 3))
def pairwise_cosines(jax: Any, x: Any, y: Any) -> Any:
    def unit(x: Any) -> Any:
        return x / jax.numpy.maximum(jax.numpy.sqrt(jax.numpy.sum(x * x, axis=1, keepdims=True)), 1e-6)

    return jax.numpy.einsum("id,jd->ij", unit(x), unit(y))


CALLS = ("jit", "pjit", "custom_jvp_call", "custom_vjp_call", "xla_call")


def size(jaxpr: Any) -> int:
    """The number of equations, those of called programs among them and not the calls."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    total = 0
    for eqn in jaxpr.eqns:
        inner = [p for p in eqn.params.values() if hasattr(getattr(p, "jaxpr", p), "eqns")]
        total += sum(map(size, inner)) + (not inner or eqn.primitive.name not in CALLS)
    return total


@pytest.fixture(scope="module")
def jax() -> Any:
    module = pytest.importorskip("jax")
    for name in ("nn", "numpy", "lax"):
        importlib.import_module(f"jax.{name}")
    return module


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_as_short_as_jaxs(name: str, jax: Any) -> None:
    f, args = PROGRAMS[name]
    ours = corejax.make_jaxpr(lambda *xs: f(corejax, *xs))(*args)
    theirs = jax.make_jaxpr(lambda *xs: f(jax, *xs))(*args)
    assert size(ours) <= MORE * size(theirs) + SOME, f"{size(ours)} equations, jax has {size(theirs)}:\n{ours}"


def _loss(library: Any, f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    def total(*xs: Any) -> Any:
        leaves = corejax.tree_util.tree_leaves(f(library, *xs))
        return sum(x.sum() for x in leaves if x.dtype == np.float32)

    places = tuple(i for i, x in enumerate(args) if x.dtype == np.float32)
    return library.make_jaxpr(library.grad(total, argnums=places))(*args)


@pytest.mark.parametrize("name", PROGRAMS)
def test_their_gradients_too(name: str, jax: Any) -> None:
    f, args = PROGRAMS[name]
    ours, theirs = size(_loss(corejax, f, args)), size(_loss(jax, f, args))
    assert ours <= MORE * theirs + 2 * SOME, f"{ours} equations, jax has {theirs}"
