"""The model in corejax itself: a function of its parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from data import Trained, initial_parameters, minibatches

import corejax
import corejax.numpy as jnp
from corejax.extend import find_primitive

toeplitz_p = find_primitive("toeplitz.matvec")
recurrence_p = find_primitive("linear_recurrence.linear_recurrence")


def scores(params: dict[str, Any], image: Any) -> Any:
    """Return the scores of the ten digits for one image, a sequence of 64 pixels."""
    signal = jnp.tanh(toeplitz_p.bind(params["filters"], image[None]))
    decay = jnp.broadcast_to(corejax.nn.sigmoid(params["decay"])[:, None], signal.shape)
    states = recurrence_p.bind(decay, (1 - decay) * signal, reverse=False)
    features = jnp.concatenate([states[:, -1], states[:, 31]])
    return features @ params["weights"] + params["bias"]


def loss(params: dict[str, Any], images: Any, labels: Any) -> Any:
    """Return the mean cross entropy."""
    logits = corejax.vmap(scores, in_axes=(None, 0))(params, images)
    return -jnp.take_along_axis(corejax.nn.log_softmax(logits), labels[:, None], 1).mean()


@corejax.jit
def step(params: Any, momentum: Any, images: Any, labels: Any, rate: float) -> tuple[Any, Any, Any]:
    """Take a step of gradient descent with momentum."""
    value, gradient = corejax.value_and_grad(loss)(params, images, labels)
    momentum = corejax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
    return corejax.tree.map(lambda p, m: p - rate * m, params, momentum), momentum, value


def train(images: np.ndarray, labels: np.ndarray, epochs: int, rate: float) -> Trained:
    """Return the loss of each step, and the function from images to digits."""
    params: Any = initial_parameters()
    momentum = corejax.tree.map(jnp.zeros_like, params)
    losses = []
    for batch in minibatches(len(labels), 64, epochs):
        params, momentum, value = step(params, momentum, images[batch], labels[batch], rate)
        losses.append(float(value))
    predict = corejax.jit(corejax.vmap(scores, in_axes=(None, 0)))
    return losses, lambda images: np.asarray(predict(params, images)).argmax(1)
