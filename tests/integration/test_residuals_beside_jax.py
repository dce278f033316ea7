"""What a loop over layers keeps of each for its derivative: values beside jax's, and fewer bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax

jax = pytest.importorskip("jax")

rng = np.random.default_rng(0)
LAYERS, BATCH, LENGTH, WIDTH = 3, 2, 16, 8
X = rng.standard_normal((BATCH, LENGTH, WIDTH)).astype(np.float32)
W = rng.standard_normal((LAYERS, WIDTH, WIDTH)).astype(np.float32) / 3


def normalised(lib: Any, x: Any, w: Any) -> Any:
    n = lib.numpy
    mean = n.mean(x, axis=-1, keepdims=True)
    return x + (x - mean) / n.sqrt(n.var(x, axis=-1, keepdims=True) + 1e-5) @ w


def attention(lib: Any, x: Any, w: Any) -> Any:
    n = lib.numpy
    scores = n.einsum("bqd,bkd->bqk", x @ w, x) / WIDTH**0.5
    mask = n.tril(n.ones((LENGTH, LENGTH), dtype=bool))
    return x + lib.nn.softmax(n.where(mask, scores, -1e9), axis=-1) @ x


def gated(lib: Any, x: Any, w: Any) -> Any:
    return x + lib.nn.gelu(x @ w) * lib.nn.sigmoid(x)


def clipped(lib: Any, x: Any, w: Any) -> Any:
    y = x @ w
    return lib.numpy.where(y > 0, y, 0.1 * y) + lib.numpy.clip(x, -1, 1)


def loss(lib: Any, layer: Callable[..., Any]) -> Callable[..., Any]:
    def f(w: Any, x: Any) -> Any:
        return (lib.lax.scan(lambda c, v: (layer(lib, c, v), None), x, w)[0] ** 2).mean()

    return f


def stacked_bytes(program: Any) -> int:
    """Bytes of what the first scan gives for each layer."""
    scan = next(e for e in program.jaxpr.eqns if e.primitive.name == "scan")
    stacked = scan.outvars[scan.params["num_carry"] :]
    return sum(int(np.prod(v.aval.shape)) * v.aval.dtype.itemsize for v in stacked)


@pytest.mark.parametrize(
    ("layer", "share"),
    [(normalised, 0.65), (attention, 0.7), (gated, 0.5), (clipped, 0.8)],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_a_scan_of_layers(layer: Callable[..., Any], share: float) -> None:
    ours, theirs = loss(corejax, layer), loss(jax, layer)
    kept = stacked_bytes(corejax.make_jaxpr(corejax.grad(ours))(W, X))
    assert kept <= share * stacked_bytes(jax.make_jaxpr(jax.grad(theirs))(W, X))
    for got, want in zip(
        corejax.jit(corejax.grad(ours, (0, 1)))(W, X), jax.jit(jax.grad(theirs, (0, 1)))(W, X), strict=True
    ):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=2e-4, atol=1e-6)
