"""Checks that plugins have of what is evaluated and staged, each while a setting is on: `config.debug_key_reuse`, say.

A check is told of each application of a primitive that the user asks for, before it runs, and of its results; not of
those that a rule makes on its way. Of a compiled program's call it sees the primitive and its program. While one is on,
nothing takes a shorter way than primitives. The checks are a layer of evaluation, which is there while one is on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from corejax import observe
from corejax.config import config
from corejax.interpreters import evaluation
from corejax.interpreters.staging import program_staged
from corejax.ir.jaxpr import Jaxpr
from corejax.primitive import Primitive
from corejax.tables import Table

Finish = Callable[["Sequence[Any] | None"], None]


class EvaluationCheck(NamedTuple):
    """What a check does.

    Attributes:
        call: told `(primitive, args, params)` before arrays are given to a primitive; what it raises is the user's
            error. Gives None, or a function that is called with the results, or with None if there are none: an error.
        program: told each program that has been staged (a `Jaxpr`); what it raises is the user's error.
    """

    call: Callable[[Primitive, Sequence[Any], dict[str, Any]], Finish | None]
    program: Callable[[Jaxpr], None]


def checks_calls() -> bool:
    """Whether a check is on that has to see each call, those of jitted functions included."""
    return observe.checking


class _State(threading.local):
    inside = False  # whether a rule runs, whose applications nobody is told of


_state = _State()
_checks: tuple[EvaluationCheck, ...] = ()


def _telling(below: evaluation.Evaluate) -> evaluation.Evaluate:
    def process(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        if _state.inside:
            return below(primitive, args, params)
        finishing: list[Finish] = []
        outs = None
        try:
            _state.inside = True
            for check in _checks:
                finish = check.call(primitive, args, params)
                if finish is not None:
                    finishing.append(finish)
            outs = below(primitive, args, params)
        finally:
            _state.inside = False
            for finish in finishing:
                finish(outs)
        return outs

    return process


@program_staged.connect
def _on_program_staged(jaxpr: Jaxpr) -> None:
    for check in _checks:
        check.program(jaxpr)


def _follow_settings() -> None:
    global _checks
    _checks = tuple(check for setting, check in evaluation_checks.items() if config.values().get(setting))
    on = bool(_checks)
    if on is not observe.checking:
        observe.set_checking(on)
    evaluation.set_layer("checks", evaluation.Layer(_telling) if on else None)


evaluation_checks: Table[str, EvaluationCheck] = Table(
    "evaluation check", changed=lambda setting, check: _follow_settings()
)
config.changed.connect(_follow_settings)
