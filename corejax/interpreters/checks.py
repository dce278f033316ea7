"""The interface of checks that settings turn on: `debug_nans`, `debug_infs`, `check_tracer_leaks`, and others.

A plugin exports a `Checks` as `corejax.debug_checks`. The kernel imports it when one of the settings is turned on. The
plugin then sets layers in front of evaluation, so that checks cost nothing while they are off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from corejax.arrays.array import Array
from corejax.base.plugin_access import missing_name, plugin_access
from corejax.base.tables import Table
from corejax.core.avals import Operands, Params
from corejax.core.primitive import Primitive
from corejax.core.trace import Trace
from corejax.ir.jaxpr import Jaxpr
from corejax.settings.config import config


class Checks(NamedTuple):
    """The functions of a plugin that implements the checks.

    Attributes:
        follow_settings: sets or removes the layers of evaluation according to the settings; called after each change.
        check_values: raises FloatingPointError if a result has a NaN or an infinity and the settings forbid it.
        refuse_leaks: raises UnexpectedTracerError if a tracer of a trace that has ended is still referenced.
    """

    follow_settings: Callable[[], None]
    check_values: Callable[[Primitive, Sequence[Any], dict[str, Any], Sequence[Array]], None]
    refuse_leaks: Callable[[Trace], None]


class EvaluationCheck(NamedTuple):
    """A plugin's check of operations and staged programs, active while a setting is on.

    Attributes:
        call: called with `(primitive, args, params)` before a primitive is applied to arrays; its exceptions reach the
            user. Returns None, or a function that is called with the results, or with None after an error.
        program: called with each program that has been staged (a `Jaxpr`); its exceptions reach the user.
    """

    call: Callable[[Primitive, Sequence[Any], dict[str, Any]], Callable[[Sequence[Any] | None], None] | None]
    program: Callable[[Jaxpr], None]


_checks: Checks | None = None


def checks_values() -> bool:
    """Whether results are checked: `config.debug_nans` or `config.debug_infs` is on."""
    return config.debug_nans or config.debug_infs


def check_values(primitive: Primitive, args: Operands, params: Params, outs: Sequence[Array]) -> None:
    """Check the results of an operation, if a setting asks for it.

    Raises:
        FloatingPointError: a result has a NaN or an infinity. The message names the primitive and the user's line, in
            a program those of the equation.
    """
    if _checks is not None:
        _checks.check_values(primitive, args, params, outs)


def refuse_leaks(trace: Trace) -> None:
    """Check that only running frames reference tracers of a trace that has ended, if the setting asks for it.

    Raises:
        UnexpectedTracerError: another object references one; the message names the tracer, its line and the object.
    """
    if _checks is not None and config.check_tracer_leaks:
        _checks.refuse_leaks(trace)


def follow_settings() -> None:
    """Import the plugin's checks if a setting asks for one, and update their layers."""
    global _checks
    names = ("debug_nans", "debug_infs", "check_tracer_leaks", *evaluation_checks)
    on = [name for name in names if config.values().get(name)]
    if on and _checks is None:
        _checks = plugin_access().exported_to_kernel("debug_checks")
        if _checks is None:
            error = missing_name.get()("debug_checks")
            message = f"the check that the setting {' or '.join(on)} turns on is missing"
            raise type(error)(str(error).replace("module 'corejax' has no attribute 'debug_checks'", message))
    if _checks is not None:
        _checks.follow_settings()


evaluation_checks: Table[str, EvaluationCheck] = Table(
    "evaluation check", changed=lambda setting, check: follow_settings()
)
config.changed.connect(follow_settings)
