"""A small transformer that learns to write this repository's licence, character by character.

Each block is attention and a two-layer network with residual connections, and normalises before both (Vaswani et al.,
Attention Is All You Need, 2017; Xiong et al., On Layer Normalization in the Transformer Architecture, 2020). The
blocks' parameters are stacked, and `lax.scan` loops over them. A whole step, including Adam, is one compiled program.

    python examples/transformer.py
"""

from __future__ import annotations

import functools
import math
import textwrap
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import track

import corejax
import corejax.numpy as jnp
from corejax import Array, lax, nn, random
from corejax.example_libraries import optimizers

LICENSE = Path(__file__).resolve().parents[1] / "LICENSE"
Params = dict[str, Any]

# -- the model, for one text ---------------------------------------------------------------------------------------


def init(key: Array, letters: int, width: int = 64, blocks: int = 2) -> Params:
    """Initialise the parameters for texts of `letters` different characters."""
    keys = iter(random.split(key, 6))

    def dense(*shape: int) -> Array:
        return random.normal(next(keys), shape) / math.sqrt(shape[-2])

    return {
        "letters": 0.5 * random.normal(next(keys), (letters, width)),
        "blocks": {
            "norms": jnp.ones((blocks, 2, width)),
            "attention": dense(blocks, width, 3 * width),
            "joined": 0.5 * dense(blocks, width, width),
            "wide": dense(blocks, width, 4 * width),
            "narrow": 0.5 * dense(blocks, 4 * width, width),
        },
        "norm": jnp.ones(width),
        "scores": dense(width, letters),
    }


def normalized(x: Array, scale: Array) -> Array:
    """Normalise each vector to a root mean square of 1, and scale it."""
    return scale * x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6)


def turned(x: Array) -> Array:
    """Rotate the vectors of each position by an angle proportional to the position; x has shape (length, heads, size).

    The product of two rotated vectors depends on their distance (Su et al., RoFormer, 2021).
    """
    length, _, size = x.shape
    angles = jnp.arange(length)[:, None, None] / 100 ** (2 * jnp.arange(size // 2) / size)
    a, b = jnp.split(x, 2, axis=-1)
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def block(x: Array, params: Params, heads: int = 4) -> Array:
    """Apply one block to `x` of shape (length, width): causal self-attention, then the two-layer network."""
    length, width = x.shape
    q, k, v = jnp.split(normalized(x, params["norms"][0]) @ params["attention"], 3, axis=-1)
    q, k, v = (a.reshape(length, heads, width // heads) for a in (q, k, v))
    taken = nn.dot_product_attention(turned(q), turned(k), v, is_causal=True).reshape(length, width)
    x = x + taken @ params["joined"]
    return x + nn.gelu(normalized(x, params["norms"][1]) @ params["wide"]) @ params["narrow"]


def scores(params: Params, text: Array) -> Array:
    """Return unnormalised log-probabilities of the character after each position; text is int32 of shape (length,)."""
    x, _ = lax.scan(lambda x, layer: (block(x, layer), None), params["letters"][text], params["blocks"])
    return normalized(x, params["norm"]) @ params["scores"]


# -- learning ------------------------------------------------------------------------------------------------------


def loss(params: Params, texts: Array) -> Array:
    """Return the mean cross entropy of the next character, in bits; texts has shape (batch, length + 1)."""
    chances = nn.log_softmax(corejax.vmap(scores, in_axes=(None, 0))(params, texts[:, :-1]))
    return -jnp.mean(jnp.take_along_axis(chances, texts[:, 1:, None], axis=-1)) / math.log(2)


def make_step(steps: int, rate: float) -> tuple[Any, Any, Any]:
    """Return functions that create the optimiser's state, run one step, and get the parameters from a state."""
    opt_init, opt_update, get_params = optimizers.adam(
        lambda i: rate * jnp.minimum((i + 1) / 20, 1 - i / steps), b2=0.98
    )

    @functools.partial(corejax.jit, static_argnames=("batch", "length"))
    def step(i: Array, state: Any, key: Array, text: Array, batch: int, length: int) -> tuple[Any, Array]:
        starts = random.randint(key, (batch,), 0, len(text) - length)
        texts = corejax.vmap(lambda start: lax.dynamic_slice(text, (start,), (length + 1,)))(starts)
        value, gradient = corejax.value_and_grad(loss)(get_params(state), texts)
        return opt_update(i, optimizers.clip_grads(gradient, 1.0), state), value

    return opt_init, step, get_params


# -- writing -------------------------------------------------------------------------------------------------------


@functools.partial(corejax.jit, static_argnames="count")
def write(params: Params, key: Array, text: Array, count: int, temperature: float = 0.5) -> Array:
    """Sample `count` characters after `text`; each is appended to the context, and the first character is dropped."""

    def one(text: Array, key: Array) -> tuple[Array, Array]:
        letter = random.categorical(key, scores(params, text)[-1] / temperature)
        return jnp.append(text[1:], letter), letter

    return lax.scan(one, text, random.split(key, count))[1]


def encode(text: str) -> tuple[np.ndarray, str]:
    """Return the text as character numbers, and the alphabet that they index."""
    alphabet = "".join(sorted(set(text)))
    return np.array([alphabet.index(c) for c in text], np.int32), alphabet


def draw(path: Path, losses: np.ndarray, simple: float, sample: str) -> None:
    """Plot the loss, and show the sampled text."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, (curve, page) = plt.subplots(2, 1, figsize=(5, 6.5), layout="constrained", height_ratios=[1.2, 1])
    curve.plot(losses, lw=0.5, alpha=0.4, color="tab:blue")
    window = max(1, len(losses) // 25)
    curve.plot(np.arange(window - 1, len(losses)), np.convolve(losses, np.ones(window) / window, "valid"), lw=2)
    curve.axhline(simple, color="0.4", ls=":", lw=1)
    curve.text(len(losses), simple, "frequencies of characters alone", ha="right", va="bottom", fontsize=9, color="0.4")
    curve.set(xlabel="step", ylabel="surprise per character (bits)", ylim=(0, None))
    page.set_axis_off()
    page.set_title("what it writes", fontsize=10)
    page.text(
        0,
        1,
        textwrap.fill(" ".join(sample.split()), 56),
        family="monospace",
        fontsize=9,
        va="top",
        transform=page.transAxes,
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)


@click.command()
@click.option("--steps", default=600, type=click.IntRange(1), help="Batches to learn from.", show_default=True)
@click.option("--batch", default=12, type=click.IntRange(1), help="Texts in one.", show_default=True)
@click.option(
    "--length", default=64, type=click.IntRange(2, 1000), help="Characters that the model sees.", show_default=True
)
@click.option("--rate", default=1e-2, help="Greatest step size of Adam.", show_default=True)
@click.option("--seed", default=0, help="Of parameters, batches and what is written.", show_default=True)
@click.option("--output", default="transformer.png", type=Path, help="The picture.", show_default=True)
def main(steps: int, batch: int, length: int, rate: float, seed: int, output: Path) -> None:
    """Learn the text of the licence, then write some."""
    output.parent.mkdir(parents=True, exist_ok=True)
    console = Console()
    begun = time.perf_counter()
    text, alphabet = encode(LICENSE.read_text())
    params_key, key, write_key = random.split(random.key(seed), 3)
    opt_init, step, get_params = make_step(steps, rate)
    state = opt_init(init(params_key, len(alphabet)))
    losses = []
    for i in track(range(steps), "learning", console=console):
        state, value = step(i, state, random.fold_in(key, i), text, batch, length)
        losses.append(float(value))

    written = write(get_params(state), write_key, jnp.asarray(text[400 : 400 + length]), 700)
    sample = "".join(alphabet[i] for i in np.asarray(written))
    shares = np.bincount(text) / len(text)
    simple = -np.sum(shares * np.log2(shares))
    console.print(sample, highlight=False, markup=False)
    draw(output, np.array(losses), float(simple), sample)
    console.print(
        f"{np.mean(losses[-50:]):.2f} bits per character after {steps} steps ({simple:.2f} without context), "
        f"{time.perf_counter() - begun:.0f} s; drawn to {output}"
    )


if __name__ == "__main__":
    main()
