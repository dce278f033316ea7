"""The model in Flax: a module of `flax.nnx`, on JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from data import Trained, initial_parameters, minibatches
from flax import nnx

import corejax
from corejax.extend import find_primitive

toeplitz = corejax.to_jax(find_primitive("toeplitz.matvec"))
recurrence = corejax.to_jax(find_primitive("linear_recurrence.linear_recurrence"), reverse=False)


class Sequences(nnx.Module):
    """A long convolution, then a linear recurrence for each channel; the classes are read from their last states."""

    def __init__(self) -> None:
        for name, value in initial_parameters().items():
            setattr(self, name, nnx.Param(jnp.asarray(value)))

    def __call__(self, image: jax.Array) -> jax.Array:
        """Return the scores of the ten digits for one image, a sequence of 64 pixels."""
        signal = jnp.tanh(toeplitz(self.filters[...], image[None]))
        decay = jnp.broadcast_to(jax.nn.sigmoid(self.decay[...])[:, None], signal.shape)
        states = recurrence(decay, (1 - decay) * signal)
        features = jnp.concatenate([states[:, -1], states[:, 31]])
        return features @ self.weights[...] + self.bias[...]


scores = nnx.jit(nnx.vmap(lambda model, image: model(image), in_axes=(None, 0)))


@nnx.jit
def step(model: Sequences, optimizer: nnx.Optimizer, images: jax.Array, labels: jax.Array) -> jax.Array:
    """Update the parameters with the gradient of a minibatch, and return its mean cross entropy."""

    def loss(model: Sequences) -> jax.Array:
        return optax.softmax_cross_entropy_with_integer_labels(scores(model, images), labels).mean()

    value, gradient = nnx.value_and_grad(loss)(model)
    optimizer.update(model, gradient)
    return value


def train(images: np.ndarray, labels: np.ndarray, epochs: int, rate: float) -> Trained:
    """Return the loss of each step, and the function from images to digits."""
    model = Sequences()
    optimizer = nnx.Optimizer(model, optax.sgd(rate, momentum=0.9), wrt=nnx.Param)
    batches = minibatches(len(labels), 64, epochs)
    losses = [float(step(model, optimizer, images[batch], labels[batch])) for batch in batches]
    return losses, lambda images: np.asarray(scores(model, images)).argmax(1)
