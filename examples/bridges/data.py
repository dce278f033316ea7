"""The digits of scikit-learn as sequences of 64 pixels, initial parameters, and the order of the minibatches."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits

CHANNELS, PIXELS, CLASSES = 16, 64, 10


def load(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training images and labels, and test images and labels: a fifth of the 1,797."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    images, labels = (images[order] / 16).astype(np.float32), labels[order].astype(np.int64)
    held_out = len(labels) // 5
    return images[held_out:], labels[held_out:], images[:held_out], labels[:held_out]


def initial_parameters(seed: int = 1) -> dict[str, np.ndarray]:
    """Return the parameters that both models start from.

    `filters` are the diagonals of a Toeplitz matrix for each channel, `decay` the factors of the recurrences before a
    sigmoid, which forget at different rates.
    """
    rng = np.random.default_rng(seed)
    shapes = {"filters": (CHANNELS, 2 * PIXELS - 1), "weights": (2 * CHANNELS, CLASSES)}
    scales = {"filters": 1 / np.sqrt(PIXELS), "weights": 1 / np.sqrt(2 * CHANNELS)}
    drawn = {name: (scales[name] * rng.normal(size=shape)).astype(np.float32) for name, shape in shapes.items()}
    decay = np.linspace(0, 4, CHANNELS, dtype=np.float32)
    return {**drawn, "decay": decay, "bias": np.zeros(CLASSES, np.float32)}


def minibatches(count: int, size: int, epochs: int, seed: int = 2) -> list[np.ndarray]:
    """Return the indices of each minibatch."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(count)[: count // size * size].reshape(-1, size) for _ in range(epochs)]
    return [batch for order in orders for batch in order]


Losses = list[float]
Trained = tuple[Losses, Any]
