"""What plugins cost: `python benchmarks/plugins.py [WORD ...] [--rounds N] [--json FILE]`. Needs no jax."""

from __future__ import annotations

import argparse
import json
import pathlib
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import numpy as np
import timing
from rich.console import Console
from rich.table import Table

import corejax
import corejax.lax as lax
from corejax.extend import Primitive, defjvp, defvectorized, xla_translations


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes:
        name: what was measured.
        value: the time in seconds, or a ratio of two times.
        wanted: the most that the project wants.
        unit: "s" or "ratio".
    """

    name: str
    value: float
    wanted: float
    unit: str = "s"


# -- a third party's primitive beside a built-in one -------------------------------------------------------------------


def third_party() -> Callable[[Any], Any]:
    """Sine as anybody would write it: the rules of `sin` of corejax-lax-basic, by way of `corejax.extend`."""
    sin_p = Primitive("acme.sin", impl=np.sin, abstract_eval=lambda x: x, tags=("elementwise",))
    defjvp(sin_p, lambda t, x: lax.mul(t, lax.cos(x)))
    defvectorized(sin_p)
    xla_translations.register(sin_p, lambda ctx, avals, vals: ctx.op("sine", *vals, out=avals[0]))
    return lambda x: sin_p.bind(x)


def built_in() -> Callable[[Any], Any]:
    """Sine of corejax-lax-basic, bound the same way."""
    sin_p = corejax.extend.primitives["sin"]
    return lambda x: sin_p.bind(x)


def chain(f: Callable[[Any], Any], count: int) -> Callable[[Any], Any]:
    """`f` applied over and over."""

    def chained(x: Any) -> Any:
        for _ in range(count):
            x = f(x)
        return x

    return chained


def calls(rounds: int) -> Iterator[Row]:
    """Ratios of one call."""
    x, one = corejax.Array(np.linspace(0, 1, 8, dtype=np.float32)), np.float32(0.5)
    ours, theirs = third_party(), built_in()
    kinds: dict[str, Callable[[Callable[[Any], Any]], Callable[[], Any]]] = {
        "eager": lambda f: lambda: f(x),
        "traced": lambda f: lambda: corejax.make_jaxpr(chain(f, 200))(x),
        "under grad": lambda f: lambda: corejax.grad(chain(f, 50))(one),
        "under vmap": lambda f: lambda: corejax.vmap(chain(f, 50))(x),
    }
    for kind, make in kinds.items():
        a, b = timing.best_of_each((make(ours), make(theirs)), 20 * rounds, 0.002)  # short: seldom interrupted
        yield Row(f"third-party primitive beside a built-in one, {kind}", a / b, 1.1, "ratio")


# -- loading -----------------------------------------------------------------------------------------------------------

PLUGIN = """
from corejax.extend import hookimpl
@hookimpl
def corejax_declare_api_version(): return 1
@hookimpl
def corejax_register_primitives():
    from {package} import ops
@hookimpl
def corejax_register_rules(kind):
    if kind == "xla_translation":
        from {package} import translations
@hookimpl
def corejax_export_namespaces(): return {{"{plugin}": "{package}.ops"}}
"""
OPS = "import numpy as np\nfrom corejax.extend import Primitive, defjvp, defvectorized\n"
OP = """
{op}_p = Primitive("{plugin}.{op}", impl=np.sin, abstract_eval=lambda x: x, tags=("elementwise",))
defjvp({op}_p, lambda t, x: t)
defvectorized({op}_p)
def {op}(x):
    return {op}_p.bind(x)
"""
TRANSLATION = "xla_translations.register(ops.{op}_p, lambda ctx, avals, vals: ctx.op('sine', *vals, out=avals[0]))\n"
LOAD = """
import importlib_metadata, sys, time
sys.path.insert(0, {root!r})
from corejax import extend, plugins
from corejax.plugins._plugin_manager import PluginManager
from corejax.plugins._records import PluginRecord
def find():
    for dist in importlib_metadata.distributions(path=[{root!r}]):
        for entry in dist.entry_points:
            yield PluginRecord(entry.name, entry.value, dist.name, dist.version, dist=dist)
plugins.set_manager(PluginManager(find, plugins._reserved))
start = time.perf_counter()
plugins.load_everything()
print(time.perf_counter() - start)
assert len(extend.primitives) == {count} and not plugins.errors()
"""


def write_plugins(root: pathlib.Path, count: int, each: int) -> None:
    """Distributions `bench00`, ... with primitives that have rules of five kinds."""
    for i in range(count):
        plugin = f"bench{i:02d}"
        package, info = root / f"corejax_{plugin}", root / f"corejax_{plugin}-1.0.dist-info"
        package.mkdir()
        info.mkdir()
        names = {"plugin": plugin, "package": package.name}
        ops = [f"op{j}" for j in range(each)]
        (package / "__init__.py").write_text("")
        (package / "plugin.py").write_text(PLUGIN.format(**names))
        (package / "ops.py").write_text(OPS + "".join(OP.format(op=op, **names) for op in ops))
        translations = "".join(TRANSLATION.format(op=op) for op in ops)
        (package / "translations.py").write_text(
            f"from corejax.extend import xla_translations\nfrom {package.name} import ops\n{translations}"
        )
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: corejax-{plugin}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[corejax.plugins]\n{plugin} = {package.name}.plugin\n")


def loading(rounds: int) -> Iterator[Row]:
    """50 plugins with 20 primitives each, in a fresh process: discovery, hooks, primitives, all rules."""
    with tempfile.TemporaryDirectory() as directory:
        write_plugins(pathlib.Path(directory), 50, 20)
        program = LOAD.format(root=directory, count=1000)
        best = min(float(timing.output_of(program)) for _ in range(rounds + 1))  # the first one compiles
    yield Row("loading 50 plugins with 20 primitives each", best, 0.15)


# -- the command -------------------------------------------------------------------------------------------------------


def commands(rounds: int) -> Iterator[Row]:
    """Wall time of whole processes."""
    quick = ("--version", "--help", "plugins", "list-primitives", "cache --help")
    wanted = {**dict.fromkeys(quick, 0.15), "list-primitives --json": 0.6}
    for arguments, limit in wanted.items():
        program = f"import sys; sys.argv[1:] = {arguments.split()!r}; from corejax.cli import main; main()"
        yield Row(f"corejax {arguments}", timing.process_time(program, rounds), limit)


def verifying(rounds: int) -> Iterator[Row]:
    """The author's kit, once each."""
    from click.testing import CliRunner

    from corejax.cli import main

    for arguments, limit in ((["tanh"], 20.0), (["lax_basic", "--quick"], 300.0)):
        start = time.perf_counter()
        result = CliRunner().invoke(main, ["verify", *arguments])
        took = time.perf_counter() - start
        assert result.exit_code == 0, result.output
        yield Row(f"corejax verify {' '.join(arguments)}", took, limit)


GROUPS = {"calls": calls, "loading": loading, "commands": commands, "verify": verifying}


def main() -> None:
    """Measure, print, and write JSON where asked."""
    parser = argparse.ArgumentParser(description="what plugins cost")
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], help="only these groups of measurements")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each (default 7)")
    parser.add_argument("--json", type=pathlib.Path, help="write the results there too")
    options = parser.parse_args()
    table = Table(title="what plugins cost (best of several)")
    for column in ("case", "measured", "wanted"):
        table.add_column(column, justify="left" if column == "case" else "right")
    rows = [
        row for name, group in GROUPS.items() if name in (options.groups or GROUPS) for row in group(options.rounds)
    ]
    for row in rows:
        mark = "[green]✓[/]" if row.value <= row.wanted else "[red]✗[/]"
        shown = f"{row.value:.3f}{' s' if row.unit == 's' else ''}"
        table.add_row(row.name, f"{shown} {mark}", f"≤ {row.wanted:g}")
    Console().print(table)
    if options.json:
        versions = {"python": platform.python_version(), "corejax": corejax.__version__}
        options.json.write_text(
            json.dumps({"versions": versions, "results": [asdict(r) for r in rows]}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
