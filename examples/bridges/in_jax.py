"""The model in JAX, in the style of Flax: a module without state, with `init` and `apply`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from data import Trained, initial_parameters, minibatches

import corejax
from corejax.extend import find_primitive

toeplitz = corejax.to_jax(find_primitive("toeplitz.matvec"))
recurrence = corejax.to_jax(find_primitive("linear_recurrence.linear_recurrence"), reverse=False)


@dataclass(frozen=True)
class Sequences:
    """A long convolution, then a linear recurrence for each channel; the classes are read from their last states."""

    def init(self) -> dict[str, jax.Array]:
        """Return the initial parameters."""
        return jax.tree.map(jnp.asarray, initial_parameters())

    def apply(self, params: dict[str, jax.Array], image: jax.Array) -> jax.Array:
        """Return the scores of the ten digits for one image, a sequence of 64 pixels."""
        signal = jnp.tanh(toeplitz(params["filters"], image[None]))
        decay = jnp.broadcast_to(jax.nn.sigmoid(params["decay"])[:, None], signal.shape)
        states = recurrence(decay, (1 - decay) * signal)
        features = jnp.concatenate([states[:, -1], states[:, 31]])
        return features @ params["weights"] + params["bias"]


MODEL = Sequences()


def loss(params: dict[str, jax.Array], images: jax.Array, labels: jax.Array) -> jax.Array:
    """Return the mean cross entropy."""
    scores = jax.vmap(MODEL.apply, in_axes=(None, 0))(params, images)
    return -jnp.take_along_axis(jax.nn.log_softmax(scores), labels[:, None], 1).mean()


@jax.jit
def step(params: Any, momentum: Any, images: jax.Array, labels: jax.Array, rate: float) -> tuple[Any, Any, jax.Array]:
    """Take a step of gradient descent with momentum."""
    value, gradient = jax.value_and_grad(loss)(params, images, labels)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
    return jax.tree.map(lambda p, m: p - rate * m, params, momentum), momentum, value


def train(images: np.ndarray, labels: np.ndarray, epochs: int, rate: float) -> Trained:
    """Return the loss of each step, and the function from images to digits."""
    params = MODEL.init()
    momentum = jax.tree.map(jnp.zeros_like, params)
    losses = []
    for batch in minibatches(len(labels), 64, epochs):
        params, momentum, value = step(params, momentum, images[batch], labels[batch], rate)
        losses.append(float(value))
    scores = jax.jit(jax.vmap(MODEL.apply, in_axes=(None, 0)))
    return losses, lambda images: np.asarray(scores(params, images)).argmax(1)
