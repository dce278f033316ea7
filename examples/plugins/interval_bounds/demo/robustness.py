"""Train a classifier that is provably correct near each example, with interval bounds in the loss.

python demo/robustness.py [--picture bounds.png]

Two networks learn to classify the points of two spirals. One is trained on the examples only, the other also on the
worst case within a box around each example (S. Gowal et al., arXiv:1810.12715). The bounds then prove for how many
examples the whole box is classified correctly, and a random search looks for counterexamples.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np

import corejax
import corejax.numpy as jnp
from corejax.interval_bounds import Interval, propagate

Params = list[tuple[Any, Any]]


def spirals(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sample noisy points of two spirals, and their labels, -1 or 1."""
    turn = np.sqrt(rng.uniform(0.08, 1.0, count)) * 1.4 * np.pi
    label = np.where(np.arange(count) % 2, 1, -1)
    angle = turn + np.where(label > 0, np.pi, 0)
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1) * turn[:, None] / (1.4 * np.pi)
    return (points + rng.normal(scale=0.015, size=points.shape)).astype(np.float32), label.astype(np.float32)


def init(rng: np.random.Generator, sizes: tuple[int, ...] = (2, 64, 64, 1)) -> Params:
    """Initialise weights and biases."""
    return [
        (rng.normal(size=(m, n)).astype(np.float32) * np.float32(np.sqrt(2 / m)), np.zeros(n, np.float32))
        for m, n in itertools.pairwise(sizes)
    ]


def score(params: Params, x: Any) -> Any:
    """Return a score for each point of a batch: positive for one spiral, negative for the other."""
    for weights, bias in params[:-1]:
        x = jnp.maximum(x @ weights + bias, 0)
    weights, bias = params[-1]
    return (x @ weights + bias)[:, 0]


def worst_margin(params: Params, x: Any, label: Any, radius: Any, rounding: Any = "outward") -> Any:
    """Return a lower bound of the margin over all points within `radius` of each example in each coordinate."""
    bounds = propagate(lambda x: score(params, x), rounding=rounding)(Interval.around(x, radius))
    return jnp.where(label > 0, bounds.lower, -bounds.upper)


def loss(params: Params, x: Any, label: Any, radius: Any, weight: Any) -> Any:
    """Return a weighted mean of the logistic loss of the examples and of the worst case around them."""
    plain = jnp.log1p(jnp.exp(-score(params, x) * label)).mean()
    worst = jnp.log1p(jnp.exp(-worst_margin(params, x, label, radius, "nearest"))).mean()
    return (1 - weight) * plain + weight * worst


@corejax.jit
def step(params: Params, momentum: Params, x: Any, label: Any, radius: Any, weight: Any) -> tuple[Any, Any]:
    """Run one step of gradient descent with momentum; the gradient goes through the bounds."""
    gradient = corejax.grad(loss)(params, x, label, radius, weight)
    momentum = corejax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
    return corejax.tree.map(lambda p, m: p - 0.05 * m, params, momentum), momentum


def train(x: Any, label: Any, radius: float, robust: bool, steps: int, seed: int) -> Params:
    """Train a network. If `robust`, the box and its weight in the loss grow over the first half of the steps."""
    params = init(np.random.default_rng(seed))
    momentum = corejax.tree.map(np.zeros_like, params)
    for i in range(steps):
        grown = np.float32(min(1.0, 2 * i / steps)) if robust else np.float32(0)
        params, momentum = step(params, momentum, x, label, np.float32(radius) * grown, np.float32(0.5) * grown)
    return params


def attacked(params: Params, x: Any, label: Any, radius: float, rng: np.random.Generator) -> np.ndarray:
    """Search each box at random; return which examples have a misclassified point nearby."""
    found = np.zeros(len(x), bool)
    answer = corejax.jit(score)
    for _ in range(200):
        offset = rng.choice([rng.uniform(-1, 1, x.shape), np.sign(rng.normal(size=x.shape))])
        near = np.float32(x + np.float32(radius) * offset)
        near = np.clip(near, x - np.float32(radius), x + np.float32(radius))
        found |= np.asarray(answer(params, near)) * label <= 0
    return found


def picture(path: Path, networks: dict[str, Params], x: Any, label: Any, radius: float) -> None:
    """Plot the answer of each network, in full colour where bounds prove it for the whole box around the point."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    grid = np.linspace(-1.2, 1.2, 120, dtype=np.float32)
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    figure, axes = pyplot.subplots(1, len(networks), figsize=(5 * len(networks), 5))
    for axis, (name, params) in zip(axes, networks.items(), strict=True):
        answer = np.asarray(score(params, points))
        margin = np.asarray(worst_margin(params, points, np.sign(answer), np.float32(radius)))
        shown = np.sign(answer) * np.where(margin > 0, 1.0, 0.35)
        axis.imshow(
            shown.reshape(120, 120), extent=(-1.2, 1.2, -1.2, 1.2), origin="lower", cmap="RdBu", vmin=-1.6, vmax=1.6
        )
        axis.scatter(x[:, 0], x[:, 1], c=label, cmap="RdBu", s=9, edgecolors="black", linewidths=0.3)
        axis.set_title(f"{name}: full colour where proved for ±{radius}")
        axis.set_axis_off()
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def main() -> int:
    """Train and compare both networks; return 1 if a proof is refuted or robust training does not help."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1500, help="training steps (default 1500)")
    parser.add_argument("--radius", type=float, default=0.1, help="radius of the boxes (default 0.1)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", type=Path, help="PNG to write, with matplotlib")
    options = parser.parse_args()

    rng = np.random.default_rng(options.seed)
    x, label = spirals(300, rng)
    test_x, test_label = spirals(200, rng)
    print(f"{'network':8} {'right':>7} {'proved':>7} {'attacked':>9}   of 200 points, ±{options.radius}")
    networks, proved = {}, {}
    wrong = 0
    for name, robust in (("plain", False), ("robust", True)):
        params = networks[name] = train(x, label, options.radius, robust, options.steps, options.seed)
        right = np.asarray(score(params, test_x)) * test_label > 0
        certain = np.asarray(corejax.jit(worst_margin)(params, test_x, test_label, np.float32(options.radius))) > 0
        broken = attacked(params, test_x, test_label, options.radius, rng)
        proved[name] = certain.mean()
        wrong += int(np.sum(certain & broken))
        print(f"{name:8} {right.mean():7.1%} {certain.mean():7.1%} {broken.mean():9.1%}")
    print(f"proofs that the search refutes: {wrong}")
    if options.picture is not None:
        picture(options.picture, networks, x, label, options.radius)
        print(f"wrote {options.picture}")
    return int(wrong > 0 or proved["robust"] <= proved["plain"])


if __name__ == "__main__":
    raise SystemExit(main())
