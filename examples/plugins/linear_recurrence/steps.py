"""Time the recurrence as rules are added one by one: `python steps.py` prints the table of README.md.

Each row is a separate primitive, with the rules of the row above it and one more.
"""

from __future__ import annotations

import timeit
import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

import corejax
from corejax.extend import Primitive, jvp_rules, transpose_rules, vmap_rules, xla_translations
from corejax_linear_recurrence import kernels, recurrence, translations

LENGTH, BATCH = 2_000, 64
SECONDS = 0.2  # duration of each of the five measurements


def primitives() -> dict[str, Primitive]:
    """Return the primitives, keyed by the rule that was added."""
    rules: list[Callable[[Primitive], Any]] = [
        lambda p: vmap_rules.register(p, rebound(recurrence._vmap, p)),
        lambda p: (
            jvp_rules.register(p, rebound(recurrence._jvp, p), symbolic_zeros=True),
            transpose_rules.register(p, rebound(recurrence._transpose, p)),
        ),
        lambda p: xla_translations.register(p, translations.recurrence_translation),
    ]
    steps = {"impl in NumPy, type": (kernels.in_numpy, 0)}
    if kernels.COMPILED:
        steps["impl in C"] = (kernels.in_c, 0)
    fastest = kernels.in_c if kernels.COMPILED else kernels.in_numpy
    steps |= {"vmap": (fastest, 1), "jvp, transpose": (fastest, 2), "StableHLO": (fastest, 3)}
    made = {}
    for number, (name, (impl, count)) in enumerate(steps.items()):
        made[name] = Primitive(f"steps.{number}", impl=impl, abstract_eval=recurrence._abstract_eval, linear_in=(1,))
        for rule in rules[:count]:
            rule(made[name])
    return made


def rebound(rule: Any, primitive: Primitive) -> Callable[..., Any]:
    """Copy a rule of the plugin, with the primitive that it binds replaced."""
    return FunctionType(rule.__code__, {**vars(recurrence), "recurrence_p": primitive})


def uses(p: Primitive) -> dict[str, Callable[..., Any]]:
    """Return the functions to time, keyed by column."""

    def apply(a: Any, x: Any) -> Any:
        return p.bind(a, x, reverse=False)

    def grad(a: Any, x: Any) -> Any:
        return corejax.grad(lambda a, x: apply(a, x).sum())(a, x)

    batched = corejax.vmap(apply)
    return {"one row": apply, "vmap": batched, "jit of vmap": corejax.jit(batched),
            "vmap of grad": corejax.vmap(grad), "jit of that": corejax.jit(corejax.vmap(grad))}  # fmt: skip


def milliseconds(f: Callable[..., Any], *args: Any) -> str:
    """Return the time of the fastest of several calls, in milliseconds."""
    try:
        np.asarray(f(*args))
    except NotImplementedError:
        return "–"
    timer = timeit.Timer(lambda: np.asarray(f(*args)))
    number = max(1, int(SECONDS / max(timer.timeit(1), 1e-6)))
    return f"{min(timer.repeat(5, number)) / number * 1e3:.3g}"


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore", corejax.errors.DerivedRuleWarning)  # derived rules are measured on purpose
    rng = np.random.default_rng(0)
    a, x = (rng.uniform(-1, 1, (BATCH, LENGTH)).astype(np.float32) for _ in range(2))
    for number, (name, primitive) in enumerate(primitives().items()):
        columns = uses(primitive)
        if number == 0:
            print("| rules | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|", sep="\n")
        times = [milliseconds(f, *((a[0], x[0]) if c == "one row" else (a, x))) for c, f in columns.items()]
        print(f"| {'+ ' if number else ''}{name} | " + " | ".join(times) + " |", flush=True)


if __name__ == "__main__":
    main()
