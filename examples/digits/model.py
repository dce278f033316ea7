"""A two-layer network and its training in plain functions: parameters are a pytree, and no object has state.

The functions are written for one image. `vmap` extends them to a batch, `grad` differentiates them, `lax.scan` loops
over the minibatches of an epoch, and `jit` compiles everything into one XLA program.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import corejax.numpy as jnp
from corejax import jit, lax, nn, value_and_grad, vmap
from corejax.tree_util import tree_leaves, tree_map

Params = Any

# -- one image ---------------------------------------------------------------------------------------------------


def init(rng: np.random.Generator, pixels: int = 64, hidden: int = 256, classes: int = 10) -> Params:
    """Initialise the weights as in He et al. (2015), and the biases with zeros."""

    def layer(inputs: int, outputs: int) -> Params:
        weights = rng.normal(0.0, np.sqrt(2 / inputs), (inputs, outputs)).astype(np.float32)
        return {"weights": jnp.asarray(weights), "bias": jnp.zeros(outputs)}

    return {"hidden": layer(pixels, hidden), "output": layer(hidden, classes)}


def scores(params: Params, image: Any) -> Any:
    """Return unnormalised log-probabilities of the ten digits."""
    hidden = nn.relu(image @ params["hidden"]["weights"] + params["hidden"]["bias"])
    return hidden @ params["output"]["weights"] + params["output"]["bias"]


def loss(params: Params, image: Any, label: Any) -> Any:
    """Return the cross entropy of the label, in nats."""
    return -jnp.sum(nn.one_hot(label, 10) * nn.log_softmax(scores(params, image)))


# -- many images -------------------------------------------------------------------------------------------------


@jit
def predict(params: Params, images: Any) -> Any:
    """Return the most likely digit of each image."""
    return jnp.argmax(vmap(scores, in_axes=(None, 0))(params, images), axis=-1)


@jit
def probabilities(params: Params, images: Any) -> Any:
    """Return the probabilities of the ten digits for each image."""
    return nn.softmax(vmap(scores, in_axes=(None, 0))(params, images))


def clipped_gradient(params: Params, images: Any, labels: Any, limit: float) -> tuple[Params, Any, Any]:
    """Average the gradients of the images, each clipped to a norm of at most `limit`.

    An outlier, such as a 7 that looks like a 1, therefore has a bounded influence. Clipping needs the gradient of each
    image separately, which `vmap(grad(...))` computes.

    Returns:
        The mean gradient, the loss of each image, and the norm of the gradient of each image.
    """
    losses, gradients = vmap(value_and_grad(loss), in_axes=(None, 0, 0))(params, images, labels)
    norms = jnp.sqrt(sum(vmap(jnp.vdot)(g, g) for g in tree_leaves(gradients)))
    factors = jnp.minimum(1.0, limit / jnp.maximum(norms, 1e-12)) / len(labels)
    return tree_map(lambda g: jnp.tensordot(factors, g, 1), gradients), losses, norms


# -- training ----------------------------------------------------------------------------------------------------


class Adam(NamedTuple):
    """State of Adam (Kingma and Ba, 2015): step number, running means of the gradients and of their squares."""

    step: Any
    mean: Params
    square: Params


def adam_init(params: Params) -> Adam:
    """Return the state before the first step."""
    zeros = tree_map(jnp.zeros_like, params)
    return Adam(jnp.zeros(()), zeros, zeros)


def adam_step(params: Params, state: Adam, gradient: Params, rate: float) -> tuple[Params, Adam]:
    """Update the parameters and the state; each parameter changes by about `rate`."""
    step = state.step + 1
    mean = tree_map(lambda m, g: 0.9 * m + 0.1 * g, state.mean, gradient)
    square = tree_map(lambda s, g: 0.999 * s + 0.001 * g**2, state.square, gradient)

    def move(p: Any, m: Any, s: Any) -> Any:
        return p - rate * (m / (1 - 0.9**step)) / (jnp.sqrt(s / (1 - 0.999**step)) + 1e-8)

    return tree_map(move, params, mean, square), Adam(step, mean, square)


class Report(NamedTuple):
    """Statistics of an epoch: the mean loss, and the share of the gradients that were clipped."""

    loss: Any
    clipped: Any


@jit
def epoch(params: Params, state: Adam, images: Any, labels: Any, rate: Any, limit: Any) -> tuple[Params, Adam, Report]:
    """Train for one epoch on minibatches of shapes `(steps, size, 64)` and `(steps, size)`."""

    def step(carry: tuple[Params, Adam], batch: tuple[Any, Any]) -> tuple[tuple[Params, Adam], Report]:
        params, state = carry
        gradient, losses, norms = clipped_gradient(params, *batch, limit)
        report = Report(jnp.mean(losses), jnp.mean(norms > limit))
        return adam_step(params, state, gradient, rate), report

    (params, state), reports = lax.scan(step, (params, state), (images, labels))
    return params, state, tree_map(jnp.mean, reports)
