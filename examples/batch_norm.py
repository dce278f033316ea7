"""Image classification with convolutions and batch norm: the UCI handwritten digits, 8 by 8 pixels.

Batch norm (Ioffe and Szegedy, 2015) needs state: running statistics, which training updates and prediction uses.
Here the state is a value. A layer takes the statistics and returns updated ones; they are passed along with the
parameters through `value_and_grad` (as an auxiliary output of the loss) and `lax.scan` (as part of the carry).

    python examples/batch_norm.py
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.progress import track
from sklearn.datasets import load_digits

import corejax
import corejax.numpy as jnp
from corejax import Array, lax, nn, random, tree

he_normal = nn.initializers.he_normal()

# -- layers --------------------------------------------------------------------------------------------------------


class Statistics(NamedTuple):
    """The mean and variance of each channel, of shape (channels,)."""

    mean: Array
    variance: Array


def convolution(kernel: Array, images: Array) -> Array:
    """Convolve images of shape (n, height, width, channels) with a kernel of shape (3, 3, channels, features)."""
    return lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def batch_norm(params: Any, running: Statistics, x: Array, training: bool) -> tuple[Array, Statistics]:
    """Normalise each channel to mean 0 and variance 1, scale and shift it; return it with updated running statistics.

    Training normalises by the statistics of the batch, prediction by the running statistics.
    """
    if training:
        batch = Statistics(jnp.mean(x, axis=(0, 1, 2)), jnp.var(x, axis=(0, 1, 2)))
        running = tree.map(lambda old, new: 0.95 * old + 0.05 * lax.stop_gradient(new), running, batch)
    else:
        batch = running
    z = (x - batch.mean) * lax.rsqrt(batch.variance + 1e-5)
    return z * params["scale"] + params["shift"], running


def max_pool(images: Array) -> Array:
    """Return the maximum of each block of 2 by 2 pixels."""
    return lax.reduce_window(images, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


# -- the network ---------------------------------------------------------------------------------------------------


def init(key: Array, widths: tuple[int, ...] = (16, 32, 32)) -> tuple[Any, list[Statistics]]:
    """Return parameters and running statistics of a network with one convolution per width."""
    *keys, last = random.split(key, len(widths) + 1)
    blocks, statistics = [], []
    for key, inputs, outputs in zip(keys, (1, *widths), widths, strict=False):
        norm = {"scale": jnp.ones(outputs), "shift": jnp.zeros(outputs)}
        blocks.append({"kernel": he_normal(key, (3, 3, inputs, outputs)), "norm": norm})
        statistics.append(Statistics(jnp.zeros(outputs), jnp.ones(outputs)))
    output = {"weights": 0.01 * random.normal(last, (widths[-1], 10)), "bias": jnp.zeros(10)}
    return {"blocks": blocks, "output": output}, statistics


def scores(params: Any, statistics: list[Statistics], images: Array, training: bool) -> tuple[Array, list[Statistics]]:
    """Return unnormalised log-probabilities of the ten digits, and updated running statistics."""
    x, following = images, []
    for i, (block, running) in enumerate(zip(params["blocks"], statistics, strict=True)):
        x, running = batch_norm(block["norm"], running, convolution(block["kernel"], x), training)
        x = nn.relu(x)
        if i < 2:
            x = max_pool(x)
        following.append(running)
    x = jnp.mean(x, axis=(1, 2))
    return x @ params["output"]["weights"] + params["output"]["bias"], following


def loss(params: Any, statistics: list[Statistics], images: Array, labels: Array) -> tuple[Array, list[Statistics]]:
    """Return the mean cross entropy in nats, and updated running statistics."""
    found, statistics = scores(params, statistics, images, training=True)
    return -jnp.mean(jnp.sum(nn.one_hot(labels, 10) * nn.log_softmax(found), axis=-1)), statistics


# -- training ------------------------------------------------------------------------------------------------------


class State(NamedTuple):
    """Everything that a training step updates."""

    params: Any
    statistics: list[Statistics]
    momentum: Any


@corejax.jit
def epoch(state: State, images: Array, labels: Array, rate: float) -> tuple[State, Array]:
    """Train for one epoch with Nesterov momentum, and return the mean loss.

    The minibatches have shapes (steps, n, 8, 8, 1) and (steps, n).
    """

    def step(state: State, batch: tuple[Array, Array]) -> tuple[State, Array]:
        gradient_of = corejax.value_and_grad(loss, has_aux=True)
        (value, statistics), gradient = gradient_of(state.params, state.statistics, *batch)
        momentum = tree.map(lambda m, g: 0.9 * m + g, state.momentum, gradient)
        params = tree.map(lambda p, m, g: p - rate * (0.9 * m + g), state.params, momentum, gradient)
        return State(params, statistics, momentum), value

    state, losses = lax.scan(step, state, (images, labels))
    return state, jnp.mean(losses)


@corejax.jit
def predict(state: State, images: Array) -> Array:
    """Return the most likely digit of each image."""
    return jnp.argmax(scores(state.params, state.statistics, images, training=False)[0], axis=-1)


@corejax.jit
def shifted(key: Array, images: Array) -> Array:
    """Shift each image by at most one pixel in each direction, to augment the data."""

    def one(image: Array, by: Array) -> Array:
        return lax.dynamic_slice(jnp.pad(image, ((1, 1), (1, 1), (0, 0))), (by[0], by[1], 0), image.shape)

    return corejax.vmap(one)(images, random.randint(key, (len(images), 2), 0, 3))


def confusion(labels: np.ndarray, guesses: np.ndarray) -> np.ndarray:
    """Count how often each digit (row) was classified as each digit (column)."""
    counts = np.zeros((10, 10), int)
    np.add.at(counts, (labels, guesses), 1)
    return counts


def draw(path: Path, losses: list[float], rates: list[float], counts: np.ndarray) -> None:
    """Plot the learning curves and the confusion matrix."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, (curve, table) = plt.subplots(2, 1, figsize=(5, 7.5), layout="constrained", height_ratios=[1, 1.5])
    epochs = np.arange(1, len(losses) + 1)
    curve.semilogy(epochs, losses, "o-", ms=3, label="loss while training (nats)")
    curve.semilogy(epochs, np.maximum(1 - np.array(rates), 1e-3), "s-", ms=3, label="wrong of the test images (share)")
    curve.set(xlabel="epoch")
    curve.legend(fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1))
    shown = np.where(np.eye(10, dtype=bool), np.nan, counts)
    table.imshow(shown, cmap="Reds", vmin=0, vmax=max(4, np.nanmax(shown)))
    for i, j in np.argwhere(counts > 0):
        table.text(j, i, counts[i, j], ha="center", va="center", color="tab:green" if i == j else "black", fontsize=9)
    table.set(xticks=range(10), yticks=range(10), xlabel="taken for", ylabel="digit")
    table.set_title(f"{np.trace(counts)} of {counts.sum()} test images right")
    figure.savefig(path, dpi=130)
    plt.close(figure)


@click.command()
@click.option("--steps", default=15, type=click.IntRange(1), help="Passes over the data.", show_default=True)
@click.option("--batch", default=32, type=click.IntRange(2, 1000), help="Images in a minibatch.", show_default=True)
@click.option("--rate", default=0.05, help="First step size.", show_default=True)
@click.option("--seed", default=0, help="Of weights, order, shifts and split.", show_default=True)
@click.option("--output", default="batch_norm.png", type=Path, help="The picture.", show_default=True)
def main(steps: int, batch: int, rate: float, seed: int, output: Path) -> None:
    """Learn to read handwritten digits with a convolutional network."""
    output.parent.mkdir(parents=True, exist_ok=True)
    console = Console()
    begun = time.perf_counter()
    images, labels = load_digits(return_X_y=True)
    images, labels = jnp.asarray(images / 16, jnp.float32).reshape(-1, 8, 8, 1), labels.astype(np.int32)
    key, params_key, split_key = random.split(random.key(seed), 3)
    test, train = np.split(np.asarray(random.permutation(split_key, len(labels))), [len(labels) // 5])

    params, statistics = init(params_key)
    state = State(params, statistics, tree.map(jnp.zeros_like, params))
    losses, rates = [], []
    for i in track(range(steps), "learning", console=console):
        order_key, shift_key = random.split(random.fold_in(key, i))
        order = np.asarray(random.permutation(order_key, train))[: len(train) // batch * batch]
        seen = shifted(shift_key, images[order]).reshape(-1, batch, 8, 8, 1)
        size = 0.5 * rate * (1 + math.cos(math.pi * i / steps))
        state, value = epoch(state, seen, jnp.asarray(labels[order]).reshape(-1, batch), size)
        losses.append(float(value))
        rates.append(float(np.mean(np.asarray(predict(state, images[test])) == labels[test])))

    draw(output, losses, rates, confusion(labels[test], np.asarray(predict(state, images[test]))))
    console.print(
        f"{rates[-1]:.2%} of {len(test)} test images right after {steps} epochs of {len(train)}, "
        f"{time.perf_counter() - begun:.0f} s; drawn to {output}"
    )


if __name__ == "__main__":
    main()
