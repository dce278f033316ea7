"""How a step of examples/sharded_transformer.py scales: on the cores there are, and compiled for far more devices.

    python benchmarks/scale.py                          # both tables
    python benchmarks/scale.py --write docs/how-to/scaling.md

The devices of a CPU are threads of one process. Here each computes on one core (`xla_cpu_multi_thread_eigen` is off,
and the table says how many cores were busy); beyond the cores there are they would take turns, so nothing is timed
there. Programs for larger meshes are compiled for devices that are not there, and read.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples"))

import sharded_transformer as model  # noqa: E402

import corejax  # noqa: E402
from corejax.experimental import topologies  # noqa: E402

ONE_CORE = {"xla_cpu_multi_thread_eigen": False}
SMALL = model.Sizes(letters=64, width=256, blocks=2, heads=4, length=64, batch=8)
LARGE = {
    (8, 8): model.Sizes(letters=256, width=2048, blocks=24, heads=16, length=512, batch=16),
    (16, 16): model.Sizes(letters=256, width=4096, blocks=32, heads=32, length=512, batch=32),
    (64, 64): model.Sizes(letters=256, width=8192, blocks=48, heads=64, length=512, batch=128),
}


# -- on the cores there are ----------------------------------------------------------------------------------------


class Timed(NamedTuple):
    """Steps on some devices.

    Attributes:
        axes: devices along "data" and along "model".
        batch: texts in a step.
        seconds: of one, the best.
        cores: how many were busy meanwhile.
    """

    axes: tuple[int, int]
    batch: int
    seconds: float
    cores: float

    @property
    def rate(self) -> float:
        """Texts a second."""
        return self.batch / self.seconds


class Run:
    """Steps on the first devices, timed one by one.

    Args:
        axes: devices along "data" and along "model".
        batch: texts in a step.
    """

    def __init__(self, axes: tuple[int, int], batch: int) -> None:
        sizes = SMALL._replace(batch=batch)
        mesh = corejax.make_mesh(axes, ("data", "model"))
        where, at = model.shardings(mesh)
        rng = np.random.default_rng(0)
        self._call = model.lowered(mesh, sizes).compile(ONE_CORE)
        self._state = corejax.device_put(model.begun(model.init(rng, sizes)), where)
        self._texts = corejax.device_put(rng.integers(0, sizes.letters, (batch, sizes.length + 1)).astype(np.int32), at)
        self.best = Timed(axes, batch, float("inf"), 0.0)
        self.step()
        self.best = self.best._replace(seconds=float("inf"))  # that was the first

    def step(self) -> None:
        """One more."""
        wall, cpu = time.perf_counter(), time.process_time()
        self._state, _ = corejax.block_until_ready(self._call(self._state, self._texts))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        if wall < self.best.seconds:
            self.best = self.best._replace(seconds=wall, cores=cpu / wall)


def measured_table(cores: int, steps: int) -> list[str]:
    """Strong scaling, by data and by model, and weak scaling, as Markdown."""
    counts = [n for n in (1, 2, 4, 8) if n <= cores]
    runs = [("one device", Run((1, 1), SMALL.batch))]
    for n in counts[1:]:
        runs.append(("strong, by data", Run((n, 1), SMALL.batch)))
        runs.append(("strong, by model", Run((1, n), SMALL.batch)))
        runs.append(("weak, by data", Run((n, 1), SMALL.batch * n)))
    for _ in range(steps):
        for _, run in runs:  # in turn, so that a slow spell of the machine hits all
            run.step()
    one = runs[0][1].best
    rows = ["| scaling | data × model | texts a step | ms a step | texts a second | of the ideal | cores busy |"]
    rows.append("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for name, run in runs:
        axes, batch, seconds, cores = run.best
        share = run.best.rate / one.rate / (axes[0] * axes[1])
        rows.append(
            f"| {name} | {axes[0]} × {axes[1]} | {batch} | {1e3 * seconds:.0f} | {run.best.rate:.1f} | {share:.0%} | "
            f"{cores:.1f} |"
        )
    return rows


# -- beyond them ---------------------------------------------------------------------------------------------------


class Ahead(NamedTuple):
    """A step compiled for devices that are not there.

    Attributes:
        pencil, found: what it costs each device, by hand and in the program.
        seconds: that tracing and compiling took.
    """

    pencil: Any
    found: Any
    seconds: float


def ahead(axes: tuple[int, int], sizes: Any) -> Ahead:
    """Compile a step for a mesh, and read what it costs."""
    begun = time.perf_counter()
    topology = topologies.get_topology_desc("x".join(map(str, axes)), "cpu")
    compiled = model.lowered(topologies.make_mesh(topology, axes, ("data", "model")), sizes).compile()
    return Ahead(model.costs(sizes, *axes), model.measured(compiled), time.perf_counter() - begun)


def parameters(sizes: Any) -> int:
    """How many numbers a model has."""
    whole = model.costs(sizes._replace(batch=1), 1, 1)
    return (whole.state_bytes // 4 - 1) // 3


ROWS = ('sums over "model"', "their bytes", 'bytes summed over "data"', "bytes of the state", "temporary bytes")


def ahead_table(meshes: Sequence[tuple[int, int]]) -> list[str]:
    """Every cost by hand and in the program, a mesh in two columns, as Markdown."""
    runs = {axes: ahead(axes, LARGE[axes]) for axes in meshes}
    titles = [f"{a} × {b}, by hand | in the program" for a, b in runs]
    rows = [f"| on each device, a step | {' | '.join(titles)} |", "| --- |" + " ---: |" * (2 * len(runs))]
    for i, name in enumerate(ROWS):
        cells = [f"{x.pencil[i]:,} | {x.found[i]:,}" for x in runs.values()]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    for axes, run in runs.items():
        click.echo(f"{axes}: {parameters(LARGE[axes]):,} parameters, compiled in {run.seconds:.1f} s", err=True)
    return rows


def written(page: str, name: str, rows: Sequence[str]) -> str:
    """A page with other rows between the marks of a table."""
    mark = re.compile(rf"(<!-- {name} -->\n\n).*?(\n\n<!-- end -->)", re.DOTALL)
    if not mark.search(page):
        raise click.ClickException(f"the page has no <!-- {name} --> and <!-- end -->")
    return mark.sub(lambda found: found[1] + "\n".join(rows) + found[2], page)


@click.command()
@click.option("--steps", default=40, type=click.IntRange(1), help="Timed for each, the best counts.", show_default=True)
@click.option("--only", type=click.Choice(["measured", "ahead"]), help="One of the two tables.")
@click.option("--write", "page", type=click.Path(exists=True, path_type=Path), help="A page to write the tables into.")
def main(steps: int, only: str | None, page: Path | None) -> None:
    """Print both tables, or one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    corejax.config.update("num_cpu_devices", max(cores, 1))
    tables = {}
    if only != "ahead":
        tables["measured"] = measured_table(cores, steps)
    if only != "measured":
        tables["ahead"] = ahead_table(list(LARGE))
    for rows in tables.values():
        click.echo("\n".join(rows) + "\n")
    if page is not None:
        text = page.read_text()
        for name, rows in tables.items():
            text = written(text, name, rows)
        page.write_text(text)


if __name__ == "__main__":
    main()
