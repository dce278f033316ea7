"""A small transformer sharded over devices: the texts over one axis of a mesh, the matrices over the other.

The first matrix of a layer is split by columns and the second by rows (Shoeybi et al., Megatron-LM, 2019), so that the
values between them stay on their device, and one sum over "model" after the second completes the layer. Each
coordinate of "data" has its own texts, and the gradients are summed. The program only declares the shardings of its
arguments. XLA's partitioner inserts the collectives; they are counted and compared with a calculation by hand.

    python examples/sharded_transformer.py --devices 8
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.table import Table

import corejax
import corejax.numpy as jnp
from corejax import Array, NamedSharding, P, lax, nn

LICENSE = Path(__file__).resolve().parents[1] / "LICENSE"
Params = dict[str, Any]


class Sizes(NamedTuple):
    """Sizes of a model and of a batch; heads are split over "model", texts over "data"."""

    letters: int
    width: int
    blocks: int
    heads: int
    length: int
    batch: int


# -- the model, written as for one device --------------------------------------------------------------------------


def shapes(sizes: Sizes) -> Params:
    """Return the shapes of the parameters; the parameters of the blocks are stacked."""
    letters, width, blocks, heads = sizes[:4]
    return {
        "letters": (letters, width),
        "blocks": {
            "norms": (blocks, 2, width),
            "attention": (blocks, width, 3, heads, width // heads),
            "joined": (blocks, heads, width // heads, width),
            "wide": (blocks, width, 4 * width),
            "narrow": (blocks, 4 * width, width),
        },
        "norm": (width,),
        "scores": (width, letters),
    }


def init(rng: np.random.Generator, sizes: Sizes) -> Params:
    """Initialise the parameters."""

    def drawn(name: str, shape: tuple[int, ...]) -> np.ndarray:
        if name.startswith("norm"):
            return np.ones(shape, np.float32)
        fan_in = {"attention": sizes.width, "joined": sizes.width}.get(name, shape[-2])
        return (rng.normal(size=shape) / (2 if name == "letters" else math.sqrt(fan_in))).astype(np.float32)

    given = shapes(sizes)
    blocks = {name: drawn(name, shape) for name, shape in given.pop("blocks").items()}
    return {name: drawn(name, shape) for name, shape in given.items()} | {"blocks": blocks}


def normalized(x: Array, scale: Array) -> Array:
    """Normalise each vector to a root mean square of 1, and scale it."""
    return scale * x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6)


def block(x: Array, params: Params) -> Array:
    """Apply one block to `x` of shape (batch, length, width)."""
    q, k, v = jnp.moveaxis(jnp.einsum("blw,wkhs->bklhs", normalized(x, params["norms"][0]), params["attention"]), 1, 0)
    near = jnp.einsum("blhs,bmhs->bhlm", q, k) / math.sqrt(q.shape[-1])
    seen = jnp.tril(jnp.ones(near.shape[-2:], bool))
    taken = jnp.einsum("bhlm,bmhs->blhs", nn.softmax(jnp.where(seen, near, -1e9)), v)
    x = x + jnp.einsum("blhs,hsw->blw", taken, params["joined"])
    return x + nn.gelu(normalized(x, params["norms"][1]) @ params["wide"]) @ params["narrow"]


def loss(params: Params, texts: Array) -> Array:
    """Return the mean cross entropy of the next character, in bits; texts is int32 of shape (batch, length + 1)."""
    known = params["letters"][texts[:, :-1]]
    x, _ = lax.scan(lambda x, layer: (block(x, layer), None), known, params["blocks"])
    chances = nn.log_softmax(normalized(x, params["norm"]) @ params["scores"])
    return -jnp.mean(jnp.take_along_axis(chances, texts[:, 1:, None], axis=-1)) / math.log(2)


def step(state: Params, texts: Array) -> tuple[Params, Array]:
    """Run one step of Adam; the state has the parameters, and running means of gradients and squared gradients."""
    value, gradient = corejax.value_and_grad(loss)(state["params"], texts)
    count = state["count"] + 1
    mean = corejax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], gradient)
    square = corejax.tree.map(lambda s, g: 0.98 * s + 0.02 * g * g, state["square"], gradient)
    rate, first, second = 1e-2, 1 - 0.9**count, 1 - 0.98**count
    params = corejax.tree.map(
        lambda p, m, s: p - rate * (m / first) / (jnp.sqrt(s / second) + 1e-8), state["params"], mean, square
    )
    return {"params": params, "mean": mean, "square": square, "count": count}, value


def begun(params: Params) -> Params:
    """Return the optimiser's state before the first step."""
    zeros = corejax.tree.map(np.zeros_like, params)
    return {"params": params, "mean": zeros, "square": zeros, "count": np.float32(0)}


# -- shardings -----------------------------------------------------------------------------------------------------

WHERE: Params = {
    "letters": P(),
    "blocks": {
        "norms": P(),
        "attention": P(None, None, None, "model"),
        "joined": P(None, "model"),
        "wide": P(None, None, "model"),
        "narrow": P(None, "model"),
    },
    "norm": P(),
    "scores": P(),
}


def shardings(mesh: Any) -> tuple[Params, NamedSharding]:
    """Return the shardings of the state and of the texts."""
    params = corejax.tree.map(lambda spec: NamedSharding(mesh, spec), WHERE, is_leaf=lambda x: isinstance(x, P))
    alone = NamedSharding(mesh, P())
    return {"params": params, "mean": params, "square": params, "count": alone}, NamedSharding(mesh, P("data"))


def lowered(mesh: Any, sizes: Sizes) -> Any:
    """Lower the step for a mesh from shapes alone; the devices of the mesh need not exist."""
    state, texts = shardings(mesh)

    def typed(shape: tuple[int, ...], sharding: Any) -> Any:
        return corejax.ShapeDtypeStruct(shape, np.float32, sharding=sharding)

    params = corejax.tree.map(typed, shapes(sizes), state["params"], is_leaf=lambda x: isinstance(x, tuple))
    given = {"params": params, "mean": params, "square": params, "count": typed((), state["count"])}
    words = corejax.ShapeDtypeStruct((sizes.batch, sizes.length + 1), np.int32, sharding=texts)
    return corejax.jit(step, donate_argnums=0, out_shardings=(state, state["count"])).lower(given, words)


# -- expected costs ------------------------------------------------------------------------------------------------


class Costs(NamedTuple):
    """Costs of one step on each device: number of sums, bytes sent, and bytes of memory."""

    over_model: int
    over_model_bytes: int
    over_data_bytes: int
    state_bytes: int
    temporary_bytes: int


def costs(sizes: Sizes, data: int, model: int) -> Costs:
    """Calculate the costs from the sizes.

    Sums over "model" add the results of attention and of the two-layer network in the forward pass, and the gradients
    of their inputs in the backward pass: 4 vectors per block and position. Sums over "data" add the gradient of each
    parameter, and the loss. The state has three numbers per parameter, and a count. Temporary memory holds the
    gradients and the residuals. The residuals of each block are, per position, 3 vectors, 12 vectors that are split
    over devices, 2 numbers, and one number per head; per pair of positions, one number per head. The block that is
    being differentiated also needs its gradients; per position 8 vectors and 16 split vectors; and per pair of
    positions 2 numbers per head.
    """
    letters, width, blocks, heads, length, texts = sizes
    places = texts // data * length
    split = 12 * blocks * width * width // model
    whole = 2 * letters * width + (2 * blocks + 1) * width
    kept = places * (3 * width + 12 * width // model + 2 + heads // model * (length + 1))
    at_work = 12 * width * width // model + places * (8 * width + 16 * width // model + 2 * heads // model * length)
    return Costs(
        4 * blocks if model > 1 else 0,
        4 * 4 * blocks * places * width if model > 1 else 0,
        4 * (split + whole + 1) if data > 1 else 0,
        4 * (3 * (split + whole) + 1),
        4 * (split + whole + blocks * kept + at_work),
    )


def measured(compiled: Any) -> Costs:
    """Return the costs of a compiled step, from its collectives and XLA's memory analysis."""
    found, memory = corejax.debug.collectives(compiled), compiled.memory_analysis()
    over_model, over_data = found.of("all-reduce", "model"), found.of("all-reduce", "data")
    if len(over_model) + len(over_data) != len(found):
        raise AssertionError(f"there are other collectives:\n{found}")
    if over_model.times is None or over_model.nbytes is None or over_data.nbytes is None:
        raise AssertionError(f"there are collectives in loops of unknown length:\n{found}")
    return Costs(
        over_model.times, over_model.nbytes, over_data.nbytes, memory.alias_size_in_bytes, memory.temp_size_in_bytes
    )


# -- learning ------------------------------------------------------------------------------------------------------


def batches(sizes: Sizes, steps: int, rng: np.random.Generator) -> tuple[list[np.ndarray], int]:
    """Return training texts, and the number of different characters."""
    text = LICENSE.read_text()
    alphabet = "".join(sorted(set(text)))
    numbers = np.array([alphabet.index(c) for c in text], np.int32)
    starts = rng.integers(0, len(text) - sizes.length, (steps, sizes.batch))
    return [np.stack([numbers[s : s + sizes.length + 1] for s in row]) for row in starts], len(alphabet)


def learn(call: Any, state: Params, given: list[Any]) -> tuple[Params, list[float]]:
    """Return the last state, and the loss of each step."""
    losses = []
    for texts in given:
        state, value = call(state, texts)
        losses.append(float(value))
    return state, losses


def table(pencil: Costs, found: Costs) -> Table:
    """Return a table with the calculated and the measured costs."""
    made = Table("on each device, a step", "by hand", "in the program")
    rows = (
        'sums over "model"',
        "    bytes",
        'bytes summed over "data"',
        "bytes of the state",
        "temporary bytes, about",
    )
    for name, a, b in zip(rows, pencil, found, strict=True):
        made.add_row(name, f"{a:,}", f"{b:,}")
    for column in made.columns[1:]:
        column.justify = "right"
    return made


def draw_parts(panel: Any, name: str, array: Array) -> None:
    """Draw the shards of a matrix, each labelled with its devices."""
    from matplotlib import colormaps, patches

    held: dict[Any, list[int]] = {}
    for shard in array.addressable_shards:
        place = tuple(s.indices(n)[:2] for s, n in zip(shard.index, array.shape, strict=True))
        held.setdefault(place, []).append(shard.device.id)
    for ((top, bottom), (left, right)), ids in held.items():
        color = (*colormaps["turbo"]((np.mean(ids) + 0.5) / len(array.sharding.device_set))[:3], 0.55)
        panel.add_patch(patches.Rectangle((left, top), right - left, bottom - top, facecolor=color, edgecolor="white"))
        listed = ",".join(map(str, ids)) if len(ids) < 5 else f"{min(ids)} to {max(ids)}"
        panel.text((left + right) / 2, (top + bottom) / 2, listed, ha="center", va="center", fontsize=8)
    panel.set(xlim=(0, array.shape[1]), ylim=(array.shape[0], 0), xticks=[], yticks=[])
    panel.set_title(name, fontsize=9)


def draw(path: Path, state: Params, texts: Array, alone: list[float], shared: list[float]) -> None:
    """Plot the shards of a few arrays, and the losses on one device and on all devices."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    blocks = corejax.tree.map(lambda x: x[0], state["params"]["blocks"])
    count = len(texts.sharding.device_set)
    figure, panels = plt.subplot_mosaic(
        [["texts", "letters", "attention"], ["joined", "wide", "narrow"], ["loss", "loss", "loss"]],
        figsize=(5, 6),
        layout="constrained",
        height_ratios=[1, 1, 1.5],
    )
    draw_parts(panels["texts"], "texts", texts)
    draw_parts(panels["letters"], "letters", state["params"]["letters"])
    draw_parts(panels["attention"], "attention, its heads", blocks["attention"][:, 0, :, 0])
    draw_parts(panels["joined"], "joined, its heads", blocks["joined"][:, 0])
    draw_parts(panels["wide"], "wide", blocks["wide"])
    draw_parts(panels["narrow"], "narrow", blocks["narrow"])
    curve = panels["loss"]
    curve.plot(alone, color="0.3", lw=1, label="one device")
    curve.plot(shared, "o", ms=3, color="tab:orange", label=f"{count} devices")
    curve.set(xlabel="step", ylim=(0, None))
    curve.set_ylabel("surprise per character (bits)")
    curve.legend(fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    figure.savefig(path, dpi=130)
    plt.close(figure)


@click.command()
@click.option("--devices", default=8, type=click.IntRange(1, 64), help="How many, of the CPU's.", show_default=True)
@click.option("--steps", default=20, type=click.IntRange(1), help="Batches to learn from.", show_default=True)
@click.option("--seed", default=0, help="Of parameters and batches.", show_default=True)
@click.option("--output", default="sharded_transformer.png", type=Path, help="The picture.", show_default=True)
def main(devices: int, steps: int, seed: int, output: Path) -> None:
    """Learn on a mesh and on one device, and list what the mesh's devices send each other."""
    output.parent.mkdir(parents=True, exist_ok=True)
    console, begun_at, rng = Console(), time.perf_counter(), np.random.default_rng(seed)
    corejax.config.update("num_cpu_devices", devices)
    model = math.gcd(devices, 4)
    data = devices // model
    sizes = Sizes(letters=0, width=64, blocks=2, heads=4, length=32, batch=4 * data)
    given, letters = batches(sizes, steps, rng)
    sizes = sizes._replace(letters=letters)
    first = begun(init(rng, sizes))

    mesh = corejax.make_mesh((data, model), ("data", "model"))
    where, texts = shardings(mesh)
    compiled = lowered(mesh, sizes).compile()
    state, shared = learn(compiled, corejax.device_put(first, where), corejax.device_put(given, texts))
    last, alone = learn(corejax.jit(step), first, given)

    found, pencil = measured(compiled), costs(sizes, data, model)
    console.print(str(corejax.debug.collectives(compiled)), highlight=False, markup=False, soft_wrap=True)
    console.print(table(pencil, found))
    if found[:4] != pencil[:4]:
        raise click.ClickException("the partitioner made another program than the pencil")
    np.testing.assert_allclose(shared, alone, rtol=1e-4)
    apart = max(
        float(np.max(np.abs(np.asarray(a) - np.asarray(b))))
        for a, b in zip(corejax.tree.leaves(state["params"]), corejax.tree.leaves(last["params"]), strict=True)
    )
    draw(output, state, corejax.device_put(given[0], texts), alone, shared)
    console.print(
        f"{shared[-1]:.2f} bits per character after {steps} steps on {data} x {model} devices, {alone[-1]:.2f} on one; "
        f"parameters differ by {apart:.1e} at most; {time.perf_counter() - begun_at:.0f} s; drawn to {output}"
    )


if __name__ == "__main__":
    main()
