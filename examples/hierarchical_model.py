"""Hamiltonian Monte Carlo on a hierarchical model: eight schools that tried the same course.

Each school measured the effect of coaching on its pupils' test scores, with a known error (Rubin, Estimation in
Parallel Randomized Experiments, 1981). The true effects are samples of a normal distribution with unknown mean and
standard deviation, so that each school's estimate uses the data of all schools. The sampler follows Neal (MCMC Using
Hamiltonian Dynamics, 2011), with step sizes by dual averaging (Hoffman and Gelman, The No-U-Turn Sampler, 2014,
section 3.2). A chain is a `lax.scan` over keys, and `vmap` runs several chains.

    python examples/hierarchical_model.py
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.table import Table

import corejax
import corejax.numpy as jnp
from corejax import Array, lax, random
from corejax.flatten_util import ravel_pytree
from corejax.scipy import stats

EFFECTS = np.array([28, 8, -3, 7, -1, 1, 18, 12], np.float32)
ERRORS = np.array([15, 10, 16, 11, 9, 11, 10, 18], np.float32)

# -- the model -----------------------------------------------------------------------------------------------------

Params = dict[str, Array]
ORIGIN: Params = {"mean": jnp.zeros(()), "log_spread": jnp.zeros(()), "offsets": jnp.zeros(len(EFFECTS))}


def effects_of(params: Params) -> Array:
    """Return the schools' true effects, from offsets with unit variance, which are easier to sample."""
    return params["mean"] + jnp.exp(params["log_spread"]) * params["offsets"]


def log_density(params: Params) -> Array:
    """Return the logarithm of the posterior density, up to a constant."""
    spread = jnp.exp(params["log_spread"])
    prior = stats.norm.logpdf(params["mean"], 0, 5) + stats.cauchy.logpdf(spread, 0, 5) + params["log_spread"]
    offsets = jnp.sum(stats.norm.logpdf(params["offsets"]))
    return prior + offsets + jnp.sum(stats.norm.logpdf(EFFECTS, effects_of(params), ERRORS))


# -- the sampler ---------------------------------------------------------------------------------------------------

LogDensity = Callable[[Array], Array]


def leapfrog(log_p: LogDensity, position: Array, momentum: Array, size: Array, count: Array) -> tuple[Array, Array]:
    """Return position and momentum after `count` leapfrog steps of length `size`."""
    force = corejax.grad(log_p)

    def step(_: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        position, momentum = state
        momentum = momentum + 0.5 * size * force(position)
        position = position + size * momentum
        return position, momentum + 0.5 * size * force(position)

    return lax.fori_loop(0, count, step, (position, momentum))


def transition(log_p: LogDensity, key: Array, position: Array, size: Array, longest: int) -> tuple[Array, Array]:
    """Return the next position, and the acceptance probability of the proposal."""
    momentum_key, length_key, accept_key = random.split(key, 3)
    momentum = random.normal(momentum_key, position.shape)
    count = random.randint(length_key, (), 1, longest + 1)  # a random length, so that no orbit is periodic
    proposal, after = leapfrog(log_p, position, momentum, size, count)
    energy = 0.5 * jnp.vdot(momentum, momentum) - log_p(position)
    change = 0.5 * jnp.vdot(after, after) - log_p(proposal) - energy
    accepted = jnp.exp(jnp.minimum(0.0, -jnp.where(jnp.isnan(change), jnp.inf, change)))
    return jnp.where(random.uniform(accept_key) < accepted, proposal, position), accepted


class Adaptation(NamedTuple):
    """State of dual averaging: steps, mean acceptance error, log step size, and the running mean of the latter."""

    steps: Any = 0.0
    error: Any = 0.0
    log_size: Any = -2.0
    average: Any = 0.0


def adapt(state: Adaptation, accepted: Array, target: float = 0.8) -> Adaptation:
    """Update the step size, which grows with the acceptance probability."""
    steps = state.steps + 1
    error = state.error + (target - accepted - state.error) / (steps + 10)
    log_size = -jnp.sqrt(steps) / 0.05 * error
    return Adaptation(steps, error, log_size, state.average + steps**-0.75 * (log_size - state.average))


def chain(log_p: LogDensity, key: Array, start: Array, warmup: int, draws: int, longest: int) -> tuple[Array, Array]:
    """Return `draws` positions and their acceptance probabilities, after a warm-up that tunes the step size."""

    def warm(state: Any, key: Array) -> tuple[Any, None]:
        position, adaptation = state
        position, accepted = transition(log_p, key, position, jnp.exp(adaptation.log_size), longest)
        return (position, adapt(adaptation, accepted)), None

    def draw(position: Array, key: Array) -> tuple[Array, tuple[Array, Array]]:
        position, accepted = transition(log_p, key, position, size, longest)
        return position, (position, accepted)

    warm_key, draw_key = random.split(key)
    adaptation = corejax.tree.map(jnp.float32, Adaptation())
    (position, adaptation), _ = lax.scan(warm, (start, adaptation), random.split(warm_key, warmup))
    size = jnp.exp(adaptation.average)
    return lax.scan(draw, position, random.split(draw_key, draws))[1]


@functools.partial(corejax.jit, static_argnums=(1, 2, 3, 4))
def sample(key: Array, chains: int, warmup: int, draws: int, longest: int = 16) -> tuple[Params, Array]:
    """Return posterior samples, each parameter of shape (chains, draws, ...), and their acceptance probabilities."""
    origin, unravel = ravel_pytree(ORIGIN)
    start_key, key = random.split(key)
    starts = origin + random.uniform(start_key, (chains, len(origin)), minval=-2, maxval=2)
    run = functools.partial(chain, lambda v: log_density(unravel(v)), warmup=warmup, draws=draws, longest=longest)
    positions, accepted = corejax.vmap(run)(random.split(key, chains), starts)
    return corejax.vmap(corejax.vmap(unravel))(positions), accepted


# -- diagnostics ---------------------------------------------------------------------------------------------------


@corejax.jit
def diagnostics(x: Array) -> tuple[Array, Array]:
    """Return R-hat and the effective sample size of `x`, of shape (chains, draws).

    Chains are split in halves (Gelman et al., Bayesian Data Analysis, 2013, sections 11.4 and 11.5).
    """
    x = x[:, : x.shape[1] // 2 * 2].reshape(2 * len(x), -1)
    chains, n = x.shape
    within = jnp.mean(jnp.var(x, axis=1, ddof=1))
    total = within * (n - 1) / n + jnp.var(jnp.mean(x, axis=1), ddof=1)
    spectrum = jnp.fft.rfft(x - jnp.mean(x, axis=1, keepdims=True), 2 * n)
    covariances = jnp.mean(jnp.fft.irfft(jnp.abs(spectrum) ** 2, 2 * n)[:, :n], axis=0) / n
    correlations = 1 - (within * (n - 1) / n - covariances) / total
    pairs = correlations[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    positive = jnp.cumprod(pairs > 0)  # Geyer: pair sums are positive until noise dominates
    return jnp.sqrt(total / within), chains * n / (2 * jnp.sum(pairs * positive) - 1)


def draw_picture(path: Path, draws: dict[str, np.ndarray]) -> None:
    """Plot traces of the spread, the posterior of the schools, and the funnel that makes sampling hard."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, (trace, schools, funnel) = plt.subplots(3, 1, figsize=(5, 10), layout="constrained")
    for chain in draws["spread"]:
        trace.plot(chain[:200], lw=0.8)
    trace.set(
        yscale="log",
        xlabel="draw (the first 200)",
        ylabel="spread of the schools",
        title=f"{len(draws['spread'])} chains",
    )

    effects = draws["effects"].reshape(-1, len(EFFECTS))
    rows = np.arange(len(EFFECTS))
    schools.errorbar(EFFECTS, rows - 0.15, xerr=ERRORS, fmt="o", ms=4, color="0.6", label="measured")
    schools.errorbar(effects.mean(0), rows + 0.15, xerr=effects.std(0), fmt="o", ms=4, label="posterior")
    schools.axvline(draws["mean"].mean(), color="tab:blue", lw=0.8, ls=":")
    schools.set(yticks=rows, yticklabels="ABCDEFGH", xlabel="effect, with one standard deviation")
    schools.invert_yaxis()
    schools.legend(fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, title="schools")

    some = slice(None, None, 4)
    funnel.scatter(effects[some, 0], draws["spread"].ravel()[some], s=4, lw=0)
    funnel.set(yscale="log", xlabel="effect of school A", ylabel="spread of the schools", title="the funnel")
    figure.savefig(path, dpi=130)
    plt.close(figure)


@click.command()
@click.option("--chains", default=4, type=click.IntRange(1), help="How many chains.", show_default=True)
@click.option(
    "--steps", default=1000, type=click.IntRange(10), help="Draws of each, after as many to warm up.", show_default=True
)
@click.option("--seed", default=0, help="Of all draws.", show_default=True)
@click.option("--output", default="hierarchical_model.png", type=Path, help="The picture.", show_default=True)
def main(chains: int, steps: int, seed: int, output: Path) -> None:
    """Sample the posterior of the eight schools' effects."""
    output.parent.mkdir(parents=True, exist_ok=True)
    console = Console()
    begun = time.perf_counter()
    with console.status(f"{chains} chains of {2 * steps} steps"):
        params, accepted = sample(random.key(seed), chains, steps, steps)
        draws = {
            "mean": params["mean"],
            "spread": jnp.exp(params["log_spread"]),
            "effects": corejax.vmap(corejax.vmap(effects_of))(params),
        }
        draws = {name: np.asarray(x) for name, x in draws.items()}
    table = Table("", "mean", "sd", "R-hat", "effective draws")
    columns = {"mean": draws["mean"], "spread": draws["spread"]}
    columns |= {f"school {name}": x for name, x in zip("ABCDEFGH", np.moveaxis(draws["effects"], -1, 0), strict=True)}
    found = {name: diagnostics(jnp.asarray(x)) for name, x in columns.items()}
    for name, x in columns.items():
        r_hat, effective = found[name]
        table.add_row(name, f"{x.mean():.2f}", f"{x.std():.2f}", f"{r_hat:.3f}", f"{effective:.0f}")
    console.print(table)
    draw_picture(output, draws)
    console.print(
        f"greatest R-hat {max(float(r) for r, _ in found.values()):.3f}, {float(jnp.mean(accepted)):.0%} accepted, "
        f"{time.perf_counter() - begun:.0f} s; drawn to {output}"
    )


if __name__ == "__main__":
    main()
