"""Gaussian process regression: predict the progression of diabetes after a year from ten measurements.

The covariance of two patients decreases with their distance, in which each measurement has its own length scale. The
scales and the variances of signal and noise maximise the marginal likelihood; its gradient goes through a Cholesky
decomposition (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapters 2 and 5). `vmap` of
`minimize` runs the optimisation from several starts at once.

    python examples/gaussian_process.py
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from sklearn.datasets import load_diabetes

import corejax
import corejax.numpy as jnp
from corejax import Array, random
from corejax.flatten_util import ravel_pytree
from corejax.scipy.linalg import solve_triangular
from corejax.scipy.optimize import minimize

Params = dict[str, Array]  # logarithms, so that the parameters themselves are positive


def initial(features: int) -> Params:
    """Return length scales of a few standard deviations, and a signal as strong as the noise."""
    return {"scales": jnp.full(features, jnp.log(3.0)), "signal": jnp.zeros(()), "noise": jnp.zeros(())}


def covariance(params: Params, a: Array, b: Array) -> Array:
    """Return the covariances, of shape (n, m), between points `a` of shape (n, d) and points `b` of shape (m, d)."""
    a, b = a / jnp.exp(params["scales"]), b / jnp.exp(params["scales"])
    squares = jnp.sum(a**2, axis=1)[:, None] + jnp.sum(b**2, axis=1) - 2 * a @ b.T  # of the distances
    return jnp.exp(params["signal"] - 0.5 * squares)


def factor(params: Params, x: Array) -> Array:
    """Return the lower Cholesky factor, of shape (n, n), of the covariance of noisy observations at `x`."""
    return jnp.linalg.cholesky(covariance(params, x, x) + jnp.exp(params["noise"]) * jnp.eye(len(x)))


def surprise(params: Params, x: Array, y: Array) -> Array:
    """Return the negative log-likelihood of the observations `y`, per observation."""
    lower = factor(params, x)
    white = solve_triangular(lower, y, lower=True)
    determinant = jnp.mean(jnp.log(jnp.diag(lower)))
    return 0.5 * jnp.mean(white**2) + determinant + 0.5 * jnp.log(2 * jnp.pi)


def fit(start: Params, x: Array, y: Array, steps: int) -> tuple[Params, Array]:
    """Minimise `surprise` from `start`; return the parameters at the minimum, and the value there."""
    flat, unravel = ravel_pytree(start)
    found = minimize(
        lambda v: surprise(unravel(v), x, y), flat, method="BFGS", options={"maxiter": steps, "gtol": 1e-3}
    )
    return unravel(found.x), found.fun


def fit_many(key: Array, x: Array, y: Array, starts: int, steps: int) -> tuple[Params, Array]:
    """Run `fit` from several random starts; every result has a leading axis for the starts."""
    flat, unravel = ravel_pytree(initial(x.shape[1]))
    points = flat + 0.5 * random.normal(key, (starts, len(flat)))
    return corejax.jit(corejax.vmap(lambda point: fit(unravel(point), x, y, steps)))(points)


@corejax.jit
def predict(params: Params, x: Array, y: Array, at: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation of new observations at `at` of shape (m, d), given observations `y` at `x`."""
    lower = factor(params, x)
    between = solve_triangular(lower, covariance(params, x, at), lower=True)
    mean = between.T @ solve_triangular(lower, y, lower=True)
    variance = jnp.exp(params["signal"]) + jnp.exp(params["noise"]) - jnp.sum(between**2, axis=0)
    return mean, jnp.sqrt(variance)


def load(seed: int, test_share: float = 0.2) -> tuple[Any, ...]:
    """Load standardised measurements and the progression, split for training and testing, and the column names."""
    data: Any = load_diabetes(scaled=False)
    order = np.random.default_rng(seed).permutation(len(data.target))
    x = (data.data - data.data.mean(0)) / data.data.std(0)
    test, train = np.split(order, [round(test_share * len(order))])
    return x[train], data.target[train], x[test], data.target[test], data.feature_names


def draw(path: Path, params: Params, names: list[str], train: Any, test: Any, scale: tuple[float, float]) -> None:
    """Plot predictions along the body mass index, predictions against the truth, and the relevance of each column."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    (x, y), (x_test, y_test), (shift, width) = train, test, scale
    figure, (along, beside, matters) = plt.subplots(
        3, 1, figsize=(5, 10.5), layout="constrained", height_ratios=[1, 1.2, 0.8]
    )
    bmi = names.index("bmi")
    line = np.linspace(x[:, bmi].min() - 0.5, x[:, bmi].max() + 0.5, 100)
    at = jnp.where(np.arange(x.shape[1]) == bmi, line[:, None], 0.0)
    mean, sd = (np.asarray(v) * width for v in predict(params, x, (y - shift) / width, at))
    along.scatter(x[:, bmi], y, s=7, color="0.6", label="patients")
    along.plot(line, mean + shift, color="tab:blue", label="mean patient otherwise")
    along.fill_between(line, mean + shift - 2 * sd, mean + shift + 2 * sd, alpha=0.2, label="95 % of patients")
    along.set(xlabel="body mass index (standard deviations)", ylabel="progression after a year")
    along.legend(fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, columnspacing=1)

    mean, sd = (np.asarray(v) * width for v in predict(params, x, (y - shift) / width, x_test))
    inside = np.abs(mean + shift - y_test) < 2 * sd
    for chosen, colour, label in ((inside, "tab:blue", "inside the band"), (~inside, "tab:red", "outside")):
        beside.errorbar(
            (mean + shift)[chosen],
            y_test[chosen],
            xerr=2 * sd[chosen],
            fmt="o",
            ms=3,
            lw=0.4,
            color=colour,
            label=label,
        )
    beside.axline((150, 150), slope=1, color="0.3", lw=0.8)
    beside.set(xlabel="predicted, with its band", ylabel="measured")
    beside.legend(fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, title="patients held out")

    relevance = 1 / np.exp(np.asarray(params["scales"]))
    order = np.argsort(relevance)
    matters.barh([names[i] for i in order], relevance[order], color="tab:blue")
    matters.set(xlabel="1 / length scale", title="what matters")
    figure.savefig(path, dpi=130)
    plt.close(figure)


@click.command()
@click.option(
    "--starts",
    default=4,
    type=click.IntRange(1),
    help="How many random starts are optimised side by side.",
    show_default=True,
)
@click.option("--steps", default=100, type=click.IntRange(1), help="Iterations of BFGS at most.", show_default=True)
@click.option("--seed", default=0, help="Seed of the starts and of the split.", show_default=True)
@click.option("--output", default="gaussian_process.png", type=Path, help="The picture.", show_default=True)
def main(starts: int, steps: int, seed: int, output: Path) -> None:
    """Fit a Gaussian process to the diabetes data, and predict patients that it has not seen."""
    output.parent.mkdir(parents=True, exist_ok=True)
    console = Console()
    begun = time.perf_counter()
    x, raw, x_test, y_test, names = load(seed)
    shift, width = raw.mean(), raw.std()
    y = (raw - shift) / width
    with corejax.enable_x64(True):  # covariances of near neighbours are nearly singular
        with console.status(f"optimising {starts} starts"):
            found, values = fit_many(random.key(seed), x, y, starts, steps)
        best = int(jnp.nanargmin(values))
        params = corejax.tree.map(lambda v: v[best], found)
        mean, sd = (np.asarray(v) * width for v in predict(params, x, y, x_test))
        error = y_test - mean - shift
        draw(output, params, names, (x, raw), (x_test, y_test), (shift, width))
    console.print(f"minus log likelihood per patient: {', '.join(f'{v:.4f}' for v in np.asarray(values))}")
    console.print(
        f"{1 - np.mean(error**2) / np.var(y_test):.0%} of the variance of {len(y_test)} patients explained, "
        f"{np.mean(np.abs(error) < 2 * sd):.0%} of them inside the band of 95 %, {time.perf_counter() - begun:.0f} s; "
        f"drawn to {output}"
    )


if __name__ == "__main__":
    main()
