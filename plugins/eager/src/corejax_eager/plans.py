"""Programs on NumPy arrays: a Python function is generated for one that runs a few times.

The first runs, programs that are long or large, and those whose function raises, which then say where, go through the
kernel's loop over equations; large equations are compiled if that is quicker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import Jaxpr, observe
from corejax.extend.speed import evaluation
from corejax_eager import codegen, large

RUNS = 3  # of a program, before a function is generated


class _Generated:
    """What is known of a program, in its memo.

    Attributes:
        runs: how often it has run, up to `RUNS`.
        function: the generated function, if there is one.
        rules: the impl rules that it was generated with, and their version.
    """

    __slots__ = ("function", "rules", "runs")

    def __init__(self) -> None:
        self.runs = 0
        self.function: Callable[..., list[Any]] | None = None
        self.rules: tuple[Any, int] = (None, 0)

    def get(self, jaxpr: Jaxpr) -> Callable[..., list[Any]] | None:
        """Return the function generated with the rules in force; None before the program has run a few times."""
        rules = (evaluation.host_rules, evaluation.rules_version)
        if self.rules[0] is not rules[0] or self.rules[1] != rules[1]:
            self.runs, self.function, self.rules = 0, None, rules
        if self.runs < RUNS:
            self.runs += 1
            if self.runs == RUNS and not observe.watched:
                self.function = codegen.generate(jaxpr)
        return self.function


def run_generated(jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
    """Evaluate a program on NumPy arrays; as `evaluation.run_program`."""
    generated = jaxpr.memo.get("generated")
    if generated is None:
        generated = jaxpr.memo["generated"] = _Generated()
    function = generated.get(jaxpr)
    if function is not None:
        try:
            return function(*values)
        except Exception:  # the loop says where
            pass
    return evaluation.run_program(jaxpr, values, large.run_equation)
