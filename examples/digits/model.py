"""A two-layer network and its training in plain functions: parameters are a pytree, nothing has state.

Everything is written for one image. `vmap` makes it work on many, `grad` differentiates it, `lax.scan` runs the
minibatches of an epoch, and `jit` compiles the lot into one XLA program.
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
    """Weights drawn as He et al. (2015) do for rectified units; zero biases."""

    def layer(inputs: int, outputs: int) -> Params:
        weights = rng.normal(0.0, np.sqrt(2 / inputs), (inputs, outputs)).astype(np.float32)
        return {"weights": jnp.asarray(weights), "bias": jnp.zeros(outputs)}

    return {"hidden": layer(pixels, hidden), "output": layer(hidden, classes)}


def scores(params: Params, image: Any) -> Any:
    """Log-odds of the ten digits, up to a constant."""
    hidden = nn.relu(image @ params["hidden"]["weights"] + params["hidden"]["bias"])
    return hidden @ params["output"]["weights"] + params["output"]["bias"]


def loss(params: Params, image: Any, label: Any) -> Any:
    """Cross entropy: how much the right answer surprises the network, in nats."""
    return -jnp.sum(nn.one_hot(label, 10) * nn.log_softmax(scores(params, image)))


# -- many images -------------------------------------------------------------------------------------------------


@jit
def predict(params: Params, images: Any) -> Any:
    """The likeliest digit of each image."""
    return jnp.argmax(vmap(scores, in_axes=(None, 0))(params, images), axis=-1)


@jit
def probabilities(params: Params, images: Any) -> Any:
    """Probabilities of the ten digits for each image."""
    return nn.softmax(vmap(scores, in_axes=(None, 0))(params, images))


def clipped_gradient(params: Params, images: Any, labels: Any, limit: float) -> tuple[Params, Any, Any]:
    """Mean over the images of their own gradients, each shortened to a norm of at most `limit`.

    So one odd image (a 7 that looks like a 1) pulls no harder than `limit`, whatever the others do: this needs the
    gradient of every image by itself, which is what `vmap(grad(...))` gives.

    Returns:
        The mean, the loss of each image, and the norm of the gradient of each image.
    """
    losses, gradients = vmap(value_and_grad(loss), in_axes=(None, 0, 0))(params, images, labels)
    norms = jnp.sqrt(sum(vmap(jnp.vdot)(g, g) for g in tree_leaves(gradients)))
    factors = jnp.minimum(1.0, limit / jnp.maximum(norms, 1e-12)) / len(labels)
    return tree_map(lambda g: jnp.tensordot(factors, g, 1), gradients), losses, norms


# -- training ----------------------------------------------------------------------------------------------------


class Adam(NamedTuple):
    """State of the optimiser of Kingma and Ba (2015): step number, running means of gradients and of their squares."""

    step: Any
    mean: Params
    square: Params


def adam_init(params: Params) -> Adam:
    """The state before the first step."""
    zeros = tree_map(jnp.zeros_like, params)
    return Adam(jnp.zeros(()), zeros, zeros)


def adam_step(params: Params, state: Adam, gradient: Params, rate: float) -> tuple[Params, Adam]:
    """One step downhill; each parameter moves by about `rate`."""
    step = state.step + 1
    mean = tree_map(lambda m, g: 0.9 * m + 0.1 * g, state.mean, gradient)
    square = tree_map(lambda s, g: 0.999 * s + 0.001 * g**2, state.square, gradient)

    def move(p: Any, m: Any, s: Any) -> Any:
        return p - rate * (m / (1 - 0.9**step)) / (jnp.sqrt(s / (1 - 0.999**step)) + 1e-8)

    return tree_map(move, params, mean, square), Adam(step, mean, square)


class Report(NamedTuple):
    """What happened in an epoch: mean loss, and which share of the images' gradients was shortened."""

    loss: Any
    clipped: Any


@jit
def epoch(params: Params, state: Adam, images: Any, labels: Any, rate: Any, limit: Any) -> tuple[Params, Adam, Report]:
    """One pass over minibatches of shapes `(steps, size, 64)` and `(steps, size)`."""

    def step(carry: tuple[Params, Adam], batch: tuple[Any, Any]) -> tuple[tuple[Params, Adam], Report]:
        params, state = carry
        gradient, losses, norms = clipped_gradient(params, *batch, limit)
        report = Report(jnp.mean(losses), jnp.mean(norms > limit))
        return adam_step(params, state, gradient, rate), report

    (params, state), reports = lax.scan(step, (params, state), (images, labels))
    return params, state, tree_map(jnp.mean, reports)
