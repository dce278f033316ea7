"""Sweep of the bridges: every installed primitive, under twenty nests of transformations, in JAX or in PyTorch.

    python -m tools.sweep_bridges jax|torch|torch-kernel [--names a,b] [--seed 0] [--seconds 600] [--record FILE]

It prints how many applications are right, wrong, or not comparable, and a line for each that is wrong. An application
is one primitive under one nest, for the primitive's first example that the framework can hold. It is not comparable if
corejax itself refuses it, or if its values are not finite. Most of the time goes into compiling some ten thousand small
programs, so XLA does not optimise them. With `--record`, a sweep goes on where an earlier one stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import corejax_testing.frameworks as frameworks
from corejax.extend import load_everything, primitives
from corejax_testing.calls import Call
from corejax_testing.contributions import examples_of
from corejax_testing.outcomes import CheckFailure, NotApplicable

# XLA reads them when jaxlib starts. Fusions by MLIR take longest.
QUICK = (
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_use_fusion_emitters=false",
)


def framework_of(name: str) -> frameworks.Framework:
    """Return a framework by its name on the command line."""
    if name == "jax":
        from corejax_to_jax.verification import FRAMEWORK

        return FRAMEWORK
    from corejax_to_torch.framework import framework

    return framework(as_kernel=name == "torch-kernel")


class Sweep:
    """Counts of applications: right, wrong, not comparable; and of primitives that cannot be bridged."""

    def __init__(self, framework: frameworks.Framework) -> None:
        self.framework = framework
        self.counts: Counter[str] = Counter()

    def primitive(self, name: str) -> None:
        """Apply one primitive under all nests."""
        rng = np.random.default_rng(0)
        reason = "no example fits"
        for example in examples_of(name)[:6]:
            try:
                call = Call.of(primitives[name], example, rng)
                call.require_alone()
                if call.closed().effects:
                    reason = "effects"
                    continue
                wide = frameworks.widened(call)
                with self.framework.context():
                    frameworks.require_dtypes(self.framework, wide)
                nests = frameworks.applicable_nests(wide)
            except NotApplicable as error:
                reason = str(error)
                continue
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                continue
            if not wide.values:
                reason = "no operands"
                continue
            with self.framework.context():
                for nest in nests:
                    self._nest(name, wide, nest, rng)
            return
        self.counts["primitives not bridged"] += 1
        print(f"  not bridged: {name}: {reason[:100]}", flush=True)

    def _nest(self, name: str, call: Call, nest: Any, rng: np.random.Generator) -> None:
        compared = self.counts["compared"]
        try:
            frameworks.check_nest(self.framework, call, nest, rng)
        except CheckFailure as error:
            self.counts["wrong"] += 1
            names = " of ".join(t.name for t in reversed(nest)) or "eager"
            print(f"  WRONG: {name}, {names}: {error}", flush=True)
        except NotApplicable:
            self.counts["not comparable"] += 1
        else:
            self.counts["right" if self.counts["compared"] > compared else "not comparable"] += 1


def main(arguments: list[str]) -> int:
    """Run the sweep; the exit status is 1 if an application is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.sweep_bridges", description=__doc__)
    parser.add_argument("framework", choices=("jax", "torch", "torch-kernel"))
    parser.add_argument("--names", help="primitives, separated by commas")
    parser.add_argument("--seed", type=int, help="take the primitives in a random order")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--record", type=Path, help="a file of counts by primitive; those in it are not repeated")
    options = parser.parse_args(arguments)
    os.environ["XLA_FLAGS"] = " ".join([*QUICK, os.environ.get("XLA_FLAGS", "")])
    warnings.simplefilter("ignore")
    load_everything()
    names = sorted(name for name in primitives if examples_of(name))
    if options.names:
        names = options.names.split(",")
    if options.seed is not None:
        random.Random(options.seed).shuffle(names)
    sweep = Sweep(framework_of(options.framework))
    compare = frameworks.compare_each

    def counted(*args: Any, **kwargs: Any) -> None:
        compare(*args, **kwargs)
        sweep.counts["compared"] += 1

    frameworks.compare_each = counted
    started = time.monotonic()
    recorded = {} if options.record is None or not options.record.exists() else _recorded(options.record)
    for name in sorted(recorded.keys() & set(names)):
        sweep.counts.update(recorded[name])
    names = [name for name in names if name not in recorded]
    for done, name in enumerate(names, 1):
        if time.monotonic() - started > options.seconds:
            break
        before = sweep.counts.copy()
        sweep.counts["primitives"] += 1
        sweep.primitive(name)
        if options.record is not None:
            with options.record.open("a") as file:
                file.write(json.dumps([name, sweep.counts - before]) + "\n")
        if done % 10 == 0:
            print(f"  {done}/{len(names)} {time.monotonic() - started:.0f} s {_shown(sweep.counts)}", flush=True)
    print(f"{options.framework}: {_shown(sweep.counts)}")
    return 1 if sweep.counts["wrong"] else 0


def _recorded(path: Path) -> dict[str, dict[str, int]]:
    """Return the counts of the primitives in a file, of which the last entries hold."""
    return dict(json.loads(line) for line in path.read_text().splitlines())


def _shown(counts: Counter[str]) -> str:
    keys = ("primitives", "primitives not bridged", "right", "wrong", "not comparable")
    return ", ".join(f"{counts[key]} {key}" for key in keys)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
