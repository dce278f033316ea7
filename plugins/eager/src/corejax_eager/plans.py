"""Programs on NumPy arrays: a Python function is generated for one that runs a few times.

The first runs, programs that are long or large, and those whose function raises, which then say where, go through the
kernel's loop over equations; large equations are compiled if that is quicker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import Jaxpr, impl_rules
from corejax.extend.messages import observe
from corejax.extend.speed import evaluation
from corejax_eager import codegen, large

RUNS = 3  # of a program, before a function is generated


def run_generated(jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
    """Evaluate a program on NumPy arrays; as `evaluation.run_program`."""
    function = _function_of(jaxpr)
    if function is not None:
        try:
            return function(*values)
        except Exception:  # the loop says where
            pass
    return evaluation.run_program(jaxpr, values, large.run_equation)


def _function_of(jaxpr: Jaxpr) -> Callable[..., list[Any]] | None:
    """Return the function generated with the rules in force; None before the program has run a few times."""
    changes, runs, function = jaxpr.memo.get("generated", (_changes, 0, None))
    if changes != _changes:
        runs, function = 0, None
    if runs < RUNS:
        runs += 1
        if runs == RUNS and not observe.watched:
            function = codegen.generate(jaxpr)
        jaxpr.memo["generated"] = (_changes, runs, function)
    return function  # type: ignore[no-any-return]


_changes = 0  # of impl rules, and of who is watched


def _note_change(*_: Any) -> None:
    global _changes
    _changes += 1


impl_rules.changed.connect(_note_change)
observe.watched_changed.connect(_note_change)
