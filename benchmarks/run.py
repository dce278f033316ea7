"""Run the benchmarks: `python benchmarks/run.py [WORD ...] [--rounds N] [--json FILE]`."""

from __future__ import annotations

import argparse
import json
import pathlib
import platform
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import cases
import timing
from rich.console import Console
from rich.progress import Progress
from rich.table import Table


def measured(words: list[str], rounds: int, budget: float) -> list[timing.Result]:
    """Results of the cases whose name contains one of the words (all without words)."""

    def wanted(name: str) -> bool:
        return not words or any(word in name for word in words)

    chosen = [c for c in cases.CASES if wanted(c.name)]
    results = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("measuring", total=len(chosen) + 2)
        if wanted("import and first op"):
            ours = timing.process_time(cases.IMPORT_OURS, rounds)
            theirs = timing.process_time(cases.IMPORT_THEIRS, rounds)
            results.append(timing.Result("import and first op", ours, theirs, 0.5))
        progress.advance(task)
        for c in chosen:
            progress.update(task, description=c.name)
            results.append(timing.Result(c.name, *timing.best_of_both(*c.make(), rounds, budget), c.wanted))
            progress.advance(task)
        if wanted("tracing 20,000 against 2,000 equations"):
            small, large = cases.growth()
            results.append(timing.Result("tracing 20,000 against 2,000 equations", large, small, 11.0))
    return results


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def table(results: list[timing.Result]) -> Table:
    """The results for eyes."""
    out = Table(title="corejax beside jax (best of several; ratio corejax / jax)")
    for column, justify in (("case", "left"), ("corejax", "right"), ("jax", "right"), ("ratio", "right")):
        out.add_column(column, justify=justify)  # type: ignore[arg-type]
    out.add_column("wanted", justify="right")
    for r in results:
        mark = {None: "", True: " [green]✓[/]", False: " [red]✗[/]"}[r.reached]
        wanted = "" if r.wanted is None else f"≤ {r.wanted:g}"
        out.add_row(r.name, _seconds(r.ours), _seconds(r.theirs), f"{r.ratio:.3f}{mark}", wanted)
    return out


def main() -> None:
    """Measure, print, and write JSON where asked."""
    parser = argparse.ArgumentParser(description="corejax beside jax")
    parser.add_argument("words", nargs="*", help="only cases whose name contains one of these")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each side (default 7)")
    parser.add_argument("--budget", type=float, default=0.2, help="seconds of one round at most (default 0.2)")
    parser.add_argument("--json", type=pathlib.Path, help="write the results there too")
    options = parser.parse_args()
    results = measured(options.words, options.rounds, options.budget)
    Console().print(table(results))
    if options.json:
        rows = [
            {"case": r.name, "corejax_s": r.ours, "jax_s": r.theirs, "ratio": r.ratio, "wanted": r.wanted}
            for r in results
        ]
        versions = {"python": platform.python_version(), "jax": cases.jax.__version__}
        options.json.write_text(json.dumps({"versions": versions, "results": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
