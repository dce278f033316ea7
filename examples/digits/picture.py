"""A picture of test images with the predictions of the network."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.layout_engine import ConstrainedLayoutEngine

RIGHT, WRONG = "#1a7f37", "#cf222e"


def save(path: Path, images: np.ndarray, labels: np.ndarray, probabilities: np.ndarray, columns: int = 5) -> None:
    """Draw every misclassified image, then the images with the least confident predictions.

    Args:
        path: the PNG file to write.
        images: shape `(n, 64)`.
        labels: the correct digits, shape `(n,)`.
        probabilities: the predicted probabilities, shape `(n, 10)`.
        columns: number of images in a row.
    """
    guesses = probabilities.argmax(axis=1)
    confidence = probabilities.max(axis=1)
    order = np.lexsort((confidence, guesses == labels))  # wrong ones first, then by confidence
    rows = 4
    layout = ConstrainedLayoutEngine(h_pad=0.08)
    figure, axes = plt.subplots(rows, columns, figsize=(1.05 * columns, 1.45 * rows), layout=layout)
    for axis, i in zip(axes.flat, order, strict=False):
        right = guesses[i] == labels[i]
        title = f"{guesses[i]}" if right else f"{guesses[i]}, is {labels[i]}"
        axis.imshow(images[i].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        axis.set_title(title, color=RIGHT if right else WRONG, fontsize=11, fontweight="bold")
        axis.set_xlabel(f"{confidence[i]:.0%} sure", fontsize=8, color="#57606a")
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        for spine in axis.spines.values():
            spine.set_edgecolor("#d0d7de")
    wrong = int((guesses != labels).sum())
    figure.suptitle(
        f"{len(labels) - wrong} of {len(labels)} test images right;\nthe {wrong} wrong ones, then the least sure"
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)
