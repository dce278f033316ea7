"""Run the benchmarks: `python benchmarks/run.py [WORD ...] [--rounds N] [--json FILE]`."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parent))
os.environ["COREJAX_COMPILATION_CACHE_DIR"] = ""  # compile times are measured; `alone.cached_results` sets a directory

import alone
import growth
import jax
import timing
from cases import CASES, Case
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

import corejax


def wanted(name: str, words: list[str]) -> bool:
    """Whether a name contains one of the words, or there are none."""
    return not words or any(word in name for word in words)


def measured(words: list[str], rounds: int, budget: float) -> list[timing.Result]:
    """Results of the cases whose name contains one of the words (all without words)."""
    chosen = [c for c in CASES if wanted(c.name, words) and c.devices == 1 and not c.apart]
    results = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("measuring", total=len(chosen) + len(alone.CASES))
        for name, measure in alone.CASES.items():
            progress.update(task, description=name)
            if wanted(name, words):
                results += measure(max(2, rounds // 2))
            progress.advance(task)
        for c in chosen:
            progress.update(task, description=c.name)
            results.append(result_of(c, rounds, budget))
            progress.advance(task)
        results += each_alone(words, rounds, budget)
        if wanted("memory of 20,000 equations", words):
            ours, theirs = growth.mebibytes(corejax), growth.mebibytes(jax)
            results.append(timing.Result("memory of 20,000 equations", ours, theirs, 1.0, unit="MiB"))
    return results


def result_of(c: Case, rounds: int, budget: float) -> timing.Result:
    """One case measured."""
    ours, theirs, *numpy = timing.best_of_each(c.make(), *((10 * rounds, 0.002) if c.short else (rounds, budget)))
    return timing.Result(c.name, ours, theirs, c.wanted, *numpy)


def each_alone(words: list[str], rounds: int, budget: float) -> list[timing.Result]:
    """Results of the cases whose sides are timed in processes of their own, several for each side, in turn."""
    chosen = [c for c in CASES if c.apart and wanted(c.name, words)]
    best: dict[str, dict[int, float]] = {c.name: {} for c in chosen}
    for _ in range(3 if chosen else 0):
        for side in range(3):
            options = ["--side", str(side), "--rounds", str(rounds), "--budget", str(budget)]
            for name, found in _from_process(words, options, dict(os.environ)).items():
                best[name][side] = min(found, best[name].get(side, found))
    return [timing.Result(c.name, t[0], t[1], c.wanted, t.get(2)) for c in chosen for t in (best[c.name],)]


def measure_side(words: list[str], rounds: int, budget: float, side: int, file: pathlib.Path) -> None:
    """Measure one side of the cases that want processes of their own, in this process; times by name as JSON."""
    found = {}
    for c in CASES:
        if c.apart and wanted(c.name, words) and len(sides := c.make()) > side:
            how = (10 * rounds, 0.002) if c.short else (rounds, budget)
            [found[c.name]] = timing.best_of_each([sides[side]], *how)
    file.write_text(json.dumps(found))


def _from_process(words: list[str], options: list[str], environment: dict[str, str]) -> Any:
    """What this program writes as JSON, run in a process of its own."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([sys.executable, __file__, *words, *options, "--json", file.name], check=True, env=environment)
        return json.loads(pathlib.Path(file.name).read_text())


def over_devices(words: list[str], rounds: int, budget: float) -> list[timing.Result]:
    """Results of the cases that want several devices, from a process where both libraries have them."""
    counts = sorted({c.devices for c in CASES if c.devices > 1 and wanted(c.name, words)})
    results = []
    for count in counts:
        flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}"
        environment = os.environ | {"COREJAX_NUM_CPU_DEVICES": str(count), "XLA_FLAGS": flags}
        options = ["--devices", str(count), "--rounds", str(rounds), "--budget", str(budget)]
        results += [timing.Result(**row) for row in _from_process(words, options, environment)]
    return results


def measure_here(words: list[str], rounds: int, budget: float, devices: int, file: pathlib.Path) -> None:
    """Measure the cases that want so many devices, in this process, which has them; results as JSON."""
    chosen = [c for c in CASES if c.devices == devices and wanted(c.name, words)]
    results = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        for c in progress.track(chosen, description=f"measuring on {devices} devices"):
            results.append(dataclasses.asdict(result_of(c, rounds, budget)))
    file.write_text(json.dumps(results))


def _amount(value: float, unit: str) -> str:
    return _seconds(value) if unit == "s" else f"{value:.3g} {unit}"


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def table(results: list[timing.Result]) -> Table:
    """The results for eyes."""
    out = Table(title="corejax beside jax (best of several; ratio corejax / jax, or the better of jax and NumPy)")
    for column, justify in (
        ("case", "left"),
        ("corejax", "right"),
        ("jax", "right"),
        ("NumPy", "right"),
        ("ratio", "right"),
    ):
        out.add_column(column, justify=justify)  # type: ignore[arg-type]
    out.add_column("wanted", justify="right")
    for r in results:
        mark = {None: "", True: " [green]✓[/]", False: " [red]✗[/]"}[r.reached]
        wanted = "" if r.wanted is None else f"≤ {r.wanted:g}"
        numpy = "" if r.numpy is None else _seconds(r.numpy)
        out.add_row(
            escape(r.name), _amount(r.ours, r.unit), _amount(r.theirs, r.unit), numpy, f"{r.ratio:.3f}{mark}", wanted
        )
    return out


def curve_table(curve: growth.Curve) -> Table:
    """Times against depth, with a bar for each, relative to the largest of its side."""
    out = Table(title=f"{curve.name} nested scans, by depth")
    for column, justify in (("depth", "right"), ("corejax", "right"), ("", "left"), ("jax", "right"), ("", "left")):
        out.add_column(column, justify=justify)  # type: ignore[arg-type]
    sides = (curve.ours, curve.theirs)
    for i, depth in enumerate(growth.DEPTHS):
        cells = [(_seconds(t[i]), "█" * max(1, round(20 * t[i] / max(t)))) for t in sides]
        out.add_row(str(depth), *cells[0], *cells[1])
    ratios = [f"{curve.doubling(t):.2f}" for t in sides]
    out.add_row("6 / 3", ratios[0], "", ratios[1], "", style="bold")
    out.caption = "6 / 3: time at depth 6 over time at depth 3; 2 is linear growth, 8 a doubling by each level"
    return out


def memory_table(found: dict[str, tuple[int, int]]) -> Table:
    """Bytes of temporaries, beside the plain ones."""
    out = Table(title="temporaries of the compiled gradient of 64 layers")
    for column, justify in (("layers", "left"), ("corejax", "right"), ("jax", "right"), ("ratio", "right")):
        out.add_column(column, justify=justify)  # type: ignore[arg-type]
    for name, (ours, theirs) in found.items():
        out.add_row(name, f"{ours / 2**20:.1f} MiB", f"{theirs / 2**20:.1f} MiB", f"{ours / theirs:.3f}")
    return out


def main() -> None:
    """Measure, print, and write JSON where asked."""
    parser = argparse.ArgumentParser(description="corejax beside jax")
    parser.add_argument("words", nargs="*", help="only cases whose name contains one of these")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each side (default 7)")
    parser.add_argument("--budget", type=float, default=0.2, help="seconds of one round at most (default 0.2)")
    parser.add_argument("--json", type=pathlib.Path, help="write the results there too")
    parser.add_argument("--devices", type=int, default=1, help=argparse.SUPPRESS)  # in the process that has them
    parser.add_argument("--side", type=int, help=argparse.SUPPRESS)  # in a process of that side
    options = parser.parse_args()
    how = (options.words, options.rounds, options.budget)
    if options.devices > 1:
        measure_here(*how, options.devices, options.json)
        return
    if options.side is not None:
        measure_side(*how, options.side, options.json)
        return
    results = measured(*how) + over_devices(*how)
    console = Console()
    if results:
        console.print(table(results))
    curves = growth.depths(options.rounds) if wanted("nested scans by depth", options.words) else []
    for curve in curves:
        console.print(curve_table(curve))
    memory = growth.memory() if wanted("memory of 64 layers", options.words) else {}
    if memory:
        console.print(memory_table(memory))
    if options.json:
        rows = [
            {
                "case": r.name,
                "corejax_s": r.ours,
                "jax_s": r.theirs,
                "numpy_s": r.numpy,
                "ratio": r.ratio,
                "wanted": r.wanted,
            }
            for r in results
        ]
        versions = {"python": platform.python_version(), "jax": jax.__version__}
        grown = {
            "nested_scans": [{"case": c.name, "corejax_s": c.ours, "jax_s": c.theirs} for c in curves],
            "temporaries": {name: {"corejax_bytes": a, "jax_bytes": b} for name, (a, b) in memory.items()},
        }
        options.json.write_text(json.dumps({"versions": versions, "results": rows, **grown}, indent=2) + "\n")


if __name__ == "__main__":
    main()
