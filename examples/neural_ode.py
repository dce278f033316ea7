"""A neural ODE: learn the motion of a pendulum with friction from observations.

The right-hand side of a differential equation is a small network. `odeint` solves it between observations, and its
gradient solves the adjoint equation backwards (Chen et al., Neural Ordinary Differential Equations, 2018). Each
observation starts a short piece, and `vmap` solves all pieces at once. In the end the network predicts a motion from a
new start, for twice as long as the observed motions.

    python examples/neural_ode.py
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import track

import corejax
import corejax.numpy as jnp
from corejax import Array, random
from corejax.example_libraries import optimizers, stax
from corejax.experimental.ode import odeint

init_network, network = stax.serial(stax.Dense(32), stax.Tanh, stax.Dense(32), stax.Tanh, stax.Dense(2))


def pendulum(state: Array, t: Array) -> Array:
    """Return the time derivative of angle and angular velocity, by gravity and friction."""
    angle, velocity = state
    return jnp.stack([velocity, -4.0 * jnp.sin(angle) - 0.25 * velocity])


def learnt(state: Array, t: Array, params: Any) -> Array:
    """Return the derivative that the network predicts."""
    return network(params, state)


@corejax.jit
def observe(key: Array, starts: Array, times: Array, noise: float) -> Array:
    """Return noisy observations of a pendulum from each start, of shape (starts, times, 2)."""
    states = corejax.vmap(lambda start: odeint(pendulum, start, times, rtol=1e-6, atol=1e-6))(starts)
    return states + noise * random.normal(key, states.shape)


@corejax.jit
def predict(params: Any, start: Array, times: Array) -> Array:
    """Return the predicted motion from a start, of shape (times, 2)."""
    return odeint(learnt, start, times, params, rtol=1e-5, atol=1e-5)


def pieces_of(paths: np.ndarray, length: int) -> np.ndarray:
    """Return all runs of `length` consecutive observations of all paths, of shape (pieces, length, 2)."""
    windows = np.lib.stride_tricks.sliding_window_view(paths, length, axis=1)
    return np.moveaxis(windows, -1, 2).reshape(-1, length, paths.shape[-1])


def loss(params: Any, pieces: Array, times: Array) -> Array:
    """Return the mean squared error of the predicted motions that start at the first observation of each piece."""

    def solution(start: Array) -> Array:
        return odeint(learnt, start, times, params, rtol=1e-3, atol=1e-3)

    return jnp.mean((corejax.vmap(solution)(pieces[:, 0]) - pieces) ** 2)


def make_step(steps: int, rate: float) -> tuple[Any, Any, Any]:
    """Return functions that create the optimiser's state, run one step, and get the parameters from a state."""
    opt_init, opt_update, get_params = optimizers.adam(lambda i: 0.5 * rate * (1 + jnp.cos(math.pi * i / steps)))

    @corejax.jit
    def step(i: Array, state: Any, pieces: Array, times: Array) -> tuple[Any, Array]:
        value, gradient = corejax.value_and_grad(loss)(get_params(state), pieces, times)
        return opt_update(i, gradient, state), value

    return opt_init, step, get_params


def draw(path: Path, seen: Any, truth: Any, guess: np.ndarray, field: Any) -> None:
    """Plot the motion from a new start, and the learnt vector field with the observations."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    (seen_times, paths), (times, true) = seen, truth
    figure, (motion, plane) = plt.subplots(2, 1, figsize=(5, 7.5), layout="constrained", height_ratios=[1, 1.3])
    motion.plot(times, true[:, 0], color="0.6", lw=3, label="the pendulum")
    motion.plot(times, guess[:, 0], color="tab:blue", label="the network")
    motion.axvspan(seen_times[-1], times[-1], color="tab:orange", alpha=0.12, lw=0)
    motion.text(seen_times[-1] + 0.1, motion.get_ylim()[0] + 0.1, "longer than anything it saw", fontsize=9)
    motion.set(xlabel="time (s)", ylabel="angle (rad)")
    title = "from a start that it never saw"
    motion.legend(fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, title=title)

    angles, velocities, slopes = field
    plane.streamplot(
        angles, velocities, slopes[..., 0], slopes[..., 1], color="tab:blue", linewidth=0.5, density=0.6, arrowsize=0.7
    )
    plane.scatter(*np.moveaxis(paths, -1, 0), s=3, color="tab:red", lw=0, zorder=3, label="observed")
    plane.set(xlabel="angle (rad)", ylabel="angular velocity (rad/s)", xlim=(-3, 3))
    plane.legend(fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1), title="the learnt flow")
    figure.savefig(path, dpi=130)
    plt.close(figure)


@click.command()
@click.option("--steps", default=500, type=click.IntRange(1), help="Steps of Adam.", show_default=True)
@click.option("--paths", default=16, type=click.IntRange(1), help="How many motions are observed.", show_default=True)
@click.option("--noise", default=0.03, help="Standard deviation of an observation's error.", show_default=True)
@click.option("--rate", default=2e-2, help="First step size of Adam.", show_default=True)
@click.option("--seed", default=0, help="Of observations and parameters.", show_default=True)
@click.option("--output", default="neural_ode.png", type=Path, help="The picture.", show_default=True)
def main(steps: int, paths: int, noise: float, rate: float, seed: int, output: Path) -> None:
    """Learn how a pendulum moves from noisy observations."""
    output.parent.mkdir(parents=True, exist_ok=True)
    console = Console()
    begun = time.perf_counter()
    start_key, noise_key, params_key, batch_key = random.split(random.key(seed), 4)
    times = jnp.linspace(0, 5, 51)
    starts = random.uniform(start_key, (paths, 2), minval=-1) * np.array([2.2, 1.5], np.float32)
    seen = np.asarray(observe(noise_key, starts, times, noise))
    pieces = jnp.asarray(pieces_of(seen, 8))

    opt_init, step, get_params = make_step(steps, rate)
    state = opt_init(init_network(params_key, (-1, 2))[1])
    value = math.inf
    for i in track(range(steps), "learning", console=console):
        chosen = random.randint(random.fold_in(batch_key, i), (64,), 0, len(pieces))
        state, value = step(i, state, pieces[chosen], times[:8])

    params = get_params(state)
    long, start = jnp.linspace(0, 10, 201), jnp.array([2.2, 0.0])
    true = np.asarray(observe(noise_key, start[None], long, 0.0)[0])
    guess = np.asarray(predict(params, start, long))
    axes = np.linspace(-3, 3, 25, dtype=np.float32), np.linspace(-5, 5, 25, dtype=np.float32)
    slopes = np.asarray(network(params, np.stack(np.meshgrid(*axes), -1)))
    draw(output, (times, seen), (long, true), guess, (*axes, slopes))
    error = np.sqrt(np.mean((guess - true)[:, 0] ** 2))
    console.print(
        f"{len(pieces)} pieces, last loss {float(value):.5f} (noise {noise**2:.5f}); off by {error:.3f} rad on average "
        f"over {long[-1]:.0f} s from a new start, {time.perf_counter() - begun:.0f} s; drawn to {output}"
    )


if __name__ == "__main__":
    main()
