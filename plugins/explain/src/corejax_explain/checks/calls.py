"""Plugins' checks of evaluated and staged operations, such as `config.debug_key_reuse`; a setting turns each on.

A check sees each application of a primitive by the user's code, before it runs, and its results. It does not see those
inside a rule. For a call of a compiled program it sees the primitive and the program. The checks are a layer of
evaluation; fast paths are disabled while it is there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import Jaxpr, Primitive, config
from corejax.extend.devices import EvaluationCheck, evaluation_checks
from corejax.extend.messages import observe
from corejax.extend.speed import Evaluate, Layer, program_staged, set_layer


class _State(threading.local):
    inside = False  # whether a checked application runs; applications inside it are not checked


_state = _State()
_checks: tuple[EvaluationCheck, ...] = ()


def _checking(below: Evaluate) -> Evaluate:
    def process(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        if _state.inside:
            return below(primitive, args, params)
        finishing: list[Callable[[Sequence[Any] | None], None]] = []
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


def follow_settings() -> None:
    """Add the layer to evaluation if a setting turns a check on, and remove it otherwise."""
    global _checks
    _checks = tuple(check for setting, check in evaluation_checks.items() if config.values().get(setting))
    on = bool(_checks)
    if on is not observe.checking:
        observe.set_checking(on)
    set_layer("checks", Layer(_checking) if on else None)
