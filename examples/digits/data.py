"""The UCI handwritten digits that scikit-learn ships: 1,797 grey images of 8 by 8 pixels, written by 43 people."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from corejax import Array


class Split(NamedTuple):
    """Images, float32 of shape `(n, 64)` with values from 0 to 1, and their labels, int32 of shape `(n,)`."""

    images: np.ndarray | Array
    labels: np.ndarray | Array


def load(test_share: float = 0.2, seed: int = 0) -> tuple[Split, Split]:
    """Load the images, and split them into training and test images, with the same share of each digit."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    labels = labels.astype(np.int32)
    rng = np.random.default_rng(seed)
    in_test = np.zeros(len(labels), bool)
    for digit in range(10):
        (of_digit,) = np.nonzero(labels == digit)
        in_test[rng.permutation(of_digit)[: round(test_share * len(of_digit))]] = True
    return Split(images[~in_test], labels[~in_test]), Split(images[in_test], labels[in_test])


def minibatches(split: Split, size: int, rng: np.random.Generator) -> Split:
    """Return one epoch in random order: images of shape `(steps, size, 64)`, labels of shape `(steps, size)`.

    The remainder that does not fill a batch is dropped; it differs from epoch to epoch.
    """
    steps = len(split.labels) // size
    order = rng.permutation(len(split.labels))[: steps * size].reshape(steps, size)
    return Split(split.images[order], split.labels[order])
