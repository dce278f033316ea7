"""Two primitives of corejax in a model of Flax and in one of PyTorch, which learn digits as the model of corejax does.

The primitives are those of `examples/plugins/toeplitz` and `examples/plugins/linear_recurrence`. Their rules were
written once, for corejax; JAX and PyTorch differentiate and batch the models by these rules.

    python examples/bridges/train.py --output curves.png
"""

from __future__ import annotations

import importlib
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import data

from corejax.extend import find_primitive

# The module of each model, and the packages that it needs.
FRAMEWORKS = {
    "corejax": ("in_corejax", ()),
    "flax": ("in_flax", ("flax", "corejax_to_jax")),
    "torch": ("in_torch", ("torch", "corejax_to_torch")),
}
PRIMITIVES = {"toeplitz.matvec": "toeplitz", "linear_recurrence.linear_recurrence": "linear_recurrence"}


@click.command()
@click.option("--epochs", default=12, show_default=True)
@click.option("--rate", default=0.2, show_default=True)
@click.option("--output", type=click.Path(path_type=Path), help="the picture of the loss curves to draw")
def main(epochs: int, rate: float, output: Path | None) -> None:
    """Train in each framework that is installed, compare the loss curves, and draw them."""
    for name, project in PRIMITIVES.items():
        if find_primitive(name) is None:
            raise click.ClickException(f"{name} is not installed: pip install ./examples/plugins/{project}")
    images, labels, test_images, test_labels = data.load()
    curves = {}
    for framework, (module, packages) in FRAMEWORKS.items():
        missing = [package for package in packages if find_spec(package) is None]
        if missing:
            print(f"{framework}: skipped, it needs {' and '.join(missing)}")
            continue
        started = time.perf_counter()
        curves[framework], predict = importlib.import_module(module).train(images, labels, epochs, rate)
        right = np.mean(predict(test_images) == test_labels)
        losses, seconds = curves[framework], time.perf_counter() - started
        print(
            f"{framework}: loss {losses[0]:.4f} to {losses[-1]:.4f} in {len(losses)} steps, "
            f"{right:.1%} of the test images right, {seconds:.0f} s"
        )
    for framework, apart in differences(curves).items():
        print(f"the curves of corejax and {framework} differ by {apart.max():.1e} at most")
    if output is not None:
        draw(output, curves)


def differences(curves: dict[str, data.Losses]) -> dict[str, np.ndarray]:
    """Return how far the curves of the other frameworks are from corejax's own, at each step."""
    return {
        name: np.abs(np.subtract(losses, curves["corejax"])) for name, losses in curves.items() if name != "corejax"
    }


def draw(path: Path, curves: dict[str, data.Losses]) -> None:
    """Draw the loss curves, and their differences from corejax's own below."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (above, below) = plt.subplots(2, 1, figsize=(7, 5), sharex=True, layout="constrained", height_ratios=(3, 1))
    styles = {
        "corejax": {"color": "#bf8700", "linewidth": 7, "alpha": 0.35, "label": "a function of corejax"},
        "flax": {"color": "#0969da", "linewidth": 3.5, "alpha": 0.5, "label": "a module of Flax"},
        "torch": {"color": "#cf222e", "linewidth": 0.8, "label": "a module of torch.nn"},
    }
    for framework, losses in curves.items():
        above.semilogy(losses, **styles[framework])
    above.set(ylabel="loss of the minibatch", title="toeplitz and linear_recurrence of corejax, learning digits")
    above.legend(frameon=False)
    for framework, apart in differences(curves).items():
        below.semilogy(np.maximum(apart, 1e-9), color=styles[framework]["color"], linewidth=0.8)
    below.set(xlabel="step", ylabel="difference")
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
