"""Principal components of handwritten digits by singular value decomposition, with three applications.

The first two components of all images give a map of the digits. The components of each digit, computed for all ten at
once with `vmap`, span subspaces, and a new image is classified by the nearest one (Watanabe et al., Evaluation and
selection of variables in pattern recognition, 1967). A randomised decomposition computes the first components from a
few products with the data (Halko, Martinsson and Tropp, Finding Structure with Randomness, 2011, algorithm 4.4).

    python examples/principal_components.py
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from rich.console import Console
from sklearn.datasets import load_digits

import corejax
import corejax.numpy as jnp
from corejax import Array, random

SIDE = 8  # pixels
COUNTS = (2, 5, 10, 20, 40)  # numbers of components in the picture


class Components(NamedTuple):
    """Principal components of a set of images.

    Attributes:
        mean: the mean image, of shape (pixels,).
        directions: orthonormal rows, the most important first, of shape (components, pixels).
        variances: variances of the images along the directions, of shape (components,).
    """

    mean: Array
    directions: Array
    variances: Array


def principal_components(images: Array) -> Components:
    """Return all components of images of shape (n, pixels)."""
    mean = jnp.mean(images, axis=0)
    _, values, directions = jnp.linalg.svd(images - mean, full_matrices=False)
    return Components(mean, directions, values**2 / (len(images) - 1))


@functools.partial(corejax.jit, static_argnames=("count", "spare", "powers"))
def randomized(key: Array, images: Array, count: int, spare: int = 8, powers: int = 2) -> Components:
    """Return the first `count` components, computed from products of the data with random vectors.

    Each of the `powers` iterations makes the result more accurate.
    """
    mean = jnp.mean(images, axis=0)
    centred = images - mean
    basis, _ = jnp.linalg.qr(centred @ random.normal(key, (images.shape[1], count + spare)))
    for _ in range(powers):
        basis, _ = jnp.linalg.qr(centred @ (centred.T @ basis))
    _, values, directions = jnp.linalg.svd(basis.T @ centred, full_matrices=False)
    return Components(mean, directions[:count], values[:count] ** 2 / (len(images) - 1))


def encode(components: Components, images: Array, count: int) -> Array:
    """Return the coordinates of images along the first `count` components, of shape (n, count)."""
    return (images - components.mean) @ components.directions[:count].T


def decode(components: Components, codes: Array) -> Array:
    """Return the images with the given coordinates."""
    return components.mean + codes @ components.directions[: codes.shape[-1]]


def distance(components: Components, images: Array, count: int) -> Array:
    """Return the distance of each image from its projection to the first `count` components, of shape (n,)."""
    return jnp.linalg.norm(images - decode(components, encode(components, images, count)), axis=-1)


@functools.partial(corejax.jit, static_argnames="count")
def classify(by_class: Array, images: Array, count: int) -> Array:
    """Return the class with the nearest subspace for each image; `by_class` has shape (classes, n, pixels)."""
    components = corejax.vmap(principal_components)(by_class)
    return jnp.argmin(corejax.vmap(lambda c: distance(c, images, count))(components), axis=0)


@functools.partial(corejax.jit, static_argnames="counts")
def influence(images: Array, counts: tuple[int, ...]) -> Array:
    """Return how strongly each pixel affects the variance explained by the first components: (counts, pixels)."""

    def shares(images: Array) -> Array:
        variances = principal_components(images).variances
        return jnp.cumsum(variances)[np.array(counts) - 1] / jnp.sum(variances)

    return jnp.sqrt(jnp.mean(corejax.jacrev(shares)(images) ** 2, axis=1))


def load(seed: int, test_share: float = 0.2) -> tuple[Array, Array, np.ndarray]:
    """Load training images of shape (10, n, pixels), the same number of each digit, and test images with labels."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    order = np.random.default_rng(seed).permutation(len(labels))
    test, train = np.split(order, [round(test_share * len(order))])
    of_digit = [train[labels[train] == digit] for digit in range(10)]
    fewest = min(len(chosen) for chosen in of_digit)
    by_class = jnp.stack([images[chosen[:fewest]] for chosen in of_digit])
    return by_class, jnp.asarray(images[test]), labels[test]


def draw(path: Path, components: Components, by_class: Array, moving: Array) -> None:
    """Plot the map, the components, reconstructions from several numbers of components, and relevant pixels."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(5, 7.5), layout="constrained")
    halves: Any = figure.subfigures(2, 1, height_ratios=[1, 1])
    upper, lower = halves
    axes = upper.subplots()
    for digit, images in enumerate(by_class):
        x, y = np.asarray(encode(components, images, 2)).T
        axes.scatter(x, y, s=5, lw=0, color=f"C{digit}")
        axes.text(
            np.median(x),
            np.median(y),
            str(digit),
            fontsize=15,
            weight="bold",
            ha="center",
            va="center",
            bbox={"boxstyle": "circle", "fc": "white", "ec": f"C{digit}", "alpha": 0.8},
        )
    axes.set(xlabel="first component", ylabel="second", title="a map of the digits")

    cells = lower.subplots(4, len(COUNTS) + 2)
    rows: list[tuple[str, Sequence[object], Any]] = [
        ("components", ["mean", *"12345"], [components.mean, *components.directions[:5]])
    ]
    for digit in (3, 5):
        image = by_class[digit, 0]
        made = [decode(components, encode(components, image[None], n))[0] for n in COUNTS]
        rows.append((f"a {digit} made\nof so many", ["image", *COUNTS], [image, *made]))
    rows.append(("pixels that\nmatter to so\nmany", COUNTS, moving))
    for cell in cells.flat:
        cell.set_axis_off()
    for line, (name, titles, images) in zip(cells, rows, strict=True):
        line[0].text(0.9, 0.5, name, fontsize=8, ha="right", va="center", transform=line[0].transAxes)
        for cell, title, image in zip(line[-len(titles) :], titles, images, strict=True):
            pixels = np.asarray(image).reshape(SIDE, SIDE)
            limit = np.abs(pixels).max()
            cell.imshow(pixels, cmap="RdBu_r", vmin=-limit, vmax=limit)
            cell.set_title(title, fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


@click.command()
@click.option(
    "--count",
    default=10,
    type=click.IntRange(1, SIDE * SIDE),
    help="Components of each digit that images are compared with.",
    show_default=True,
)
@click.option("--seed", default=0, help="Of the split, and of random vectors.", show_default=True)
@click.option("--output", default="principal_components.png", type=Path, help="The picture.", show_default=True)
def main(count: int, seed: int, output: Path) -> None:
    """Find the principal components of the digits, and recognise digits by them."""
    output.parent.mkdir(parents=True, exist_ok=True)
    console = Console()
    begun = time.perf_counter()
    by_class, test_images, test_labels = load(seed)
    images = by_class.reshape(-1, SIDE * SIDE)
    components = corejax.jit(principal_components)(images)
    shares = np.cumsum(np.asarray(components.variances)) / np.sum(np.asarray(components.variances))
    quick = randomized(random.key(seed), images, count)
    lost = 1 - np.sum(np.asarray(quick.variances)) / np.sum(np.asarray(components.variances)[:count])
    right = np.mean(np.asarray(classify(by_class, test_images, count)) == test_labels)
    draw(output, components, by_class, influence(images, COUNTS))
    console.print(
        f"{count} of {len(shares)} components have {shares[count - 1]:.0%} of the variance; a random sketch of "
        f"{count + 8} vectors loses {lost:.1e} of that"
    )
    console.print(
        f"{right:.1%} of {len(test_labels)} new images are nearest to their own digit's {count} components, "
        f"{time.perf_counter() - begun:.0f} s; drawn to {output}"
    )


if __name__ == "__main__":
    main()
