"""The memory of a deep network's gradient, as the compiler plans it: with checkpoints, without, in segments."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import checkpoint_policies as policies
from corejax import lax

F = np.float32
LAYERS, ROWS, WIDTH = 64, 512, 64
WEIGHTS, INPUT = np.full((LAYERS, WIDTH, WIDTH), 0.01, F), np.ones((ROWS, WIDTH), F)


def layer(w, x):
    for _ in range(3):
        x = jnp.tanh(x @ w)
    return x


def scanned(layer):
    return lambda ws, x: jnp.sum(lax.scan(lambda c, w: (layer(w, c), None), x, ws)[0])


def unrolled(layer):
    def loss(ws, x):
        for i in range(LAYERS):
            x = layer(ws[i], x)
        return jnp.sum(x)

    return loss


def in_segments(layer):
    """Square root of the depth: eight segments of eight layers, each kept by its first input only."""

    def segment(ws, x):
        return lax.scan(lambda c, w: (layer(w, c), None), x, ws)[0]

    def loss(ws, x):
        ws = ws.reshape((8, 8, WIDTH, WIDTH))
        return jnp.sum(lax.scan(lambda c, w: (corejax.checkpoint(segment)(w, c), None), x, ws)[0])

    return loss


def temporaries(loss):
    """Bytes of temporaries of the compiled gradient."""
    return corejax.jit(corejax.grad(loss)).lower(WEIGHTS, INPUT).compile().memory_analysis()["temp"]


def test_memory_of_a_deep_network():
    """One layer's input is `unit` bytes; without checkpoints each layer keeps three activations and more."""
    unit = ROWS * WIDTH * 4
    plain = temporaries(scanned(layer))
    once = temporaries(scanned(corejax.checkpoint(layer)))
    twice = temporaries(in_segments(corejax.checkpoint(layer)))
    assert plain > 3 * LAYERS * unit
    assert once < 0.4 * plain and once < 1.2 * LAYERS * unit
    assert twice < 0.15 * plain and twice < (8 + 8 + 10) * unit
    assert temporaries(scanned(corejax.checkpoint(layer, policy=policies.everything_saveable))) > 0.9 * plain


@pytest.mark.slow
def test_memory_of_unrolled_layers():
    """Python's loop: there is no loop in the compiled program that would keep the two passes apart."""
    plain, once = (temporaries(unrolled(f)) for f in (layer, corejax.checkpoint(layer)))
    assert once < 0.5 * plain
