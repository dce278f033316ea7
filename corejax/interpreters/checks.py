"""The seam of checks that settings turn on: `debug_nans`, `debug_infs`, `check_tracer_leaks`, and plugins' own.

A plugin exports a `Checks` as `corejax.debug_checks`. The kernel imports it when one of the settings is turned on; it
then puts layers in front of evaluation, so that evaluation pays nothing for checks that are off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from corejax.base.seams import Slot
from corejax.base.tables import Table
from corejax.core.array import Array
from corejax.core.primitive import Primitive
from corejax.core.trace import Trace
from corejax.ir.jaxpr import Jaxpr
from corejax.settings.config import config


class Checks(NamedTuple):
    """What a plugin that checks provides.

    Attributes:
        follow_settings: sets or removes the layers of evaluation as the settings say; called after each change.
        check_values: raises FloatingPointError if a result has a NaN or an infinity and the settings forbid it.
        refuse_leaks: raises UnexpectedTracerError if a tracer of a trace that has ended is still held.
    """

    follow_settings: Callable[[], None]
    check_values: Callable[[Primitive, Sequence[Any], dict[str, Any], Sequence[Array]], None]
    refuse_leaks: Callable[[Trace], None]


class EvaluationCheck(NamedTuple):
    """A check of a plugin's, of what runs and what is staged while a setting is on.

    Attributes:
        call: called with `(primitive, args, params)` before a primitive is applied to arrays; what it raises is the
            user's error. Returns None, or a function that is called with the results, or with None after an error.
        program: called with each program that has been staged (a `Jaxpr`); what it raises is the user's error.
    """

    call: Callable[[Primitive, Sequence[Any], dict[str, Any]], Callable[[Sequence[Any] | None], None] | None]
    program: Callable[[Jaxpr], None]


# Finds the plugin's checks for settings that are on, or raises an error that names the distribution to install.
find_checks: Slot[Callable[[Sequence[str]], Checks]] = Slot("what finds the checks that settings turn on")
_checks: Checks | None = None


def checks_values() -> bool:
    """Tell whether results are checked: `config.debug_nans` or `config.debug_infs` is on."""
    return config.debug_nans or config.debug_infs


def check_values(primitive: Primitive, args: Sequence[Any], params: dict[str, Any], outs: Sequence[Array]) -> None:
    """Check the results of an operation, if a setting asks for it.

    Raises:
        FloatingPointError: a result has a NaN or an infinity. The error names the primitive and the user's line: of a
            program, those of its equation that makes it.
    """
    if _checks is not None:
        _checks.check_values(primitive, args, params, outs)


def refuse_leaks(trace: Trace) -> None:
    """Check that nothing but running frames holds a tracer of a trace that has ended, if the setting asks for it.

    Raises:
        UnexpectedTracerError: names a tracer, its line, and its holder.
    """
    if config.check_tracer_leaks and _checks is not None:
        _checks.refuse_leaks(trace)


def follow_settings() -> None:
    """Find the plugin's checks if a setting asks for one, and have them follow the settings."""
    global _checks
    names = ("debug_nans", "debug_infs", "check_tracer_leaks", *evaluation_checks)
    on = [name for name in names if config.values().get(name)]
    if on and _checks is None and find_checks.value is not None:
        _checks = find_checks.value(on)
    if _checks is not None:
        _checks.follow_settings()


evaluation_checks: Table[str, EvaluationCheck] = Table(
    "evaluation check", changed=lambda setting, check: follow_settings()
)
config.changed.connect(follow_settings)
