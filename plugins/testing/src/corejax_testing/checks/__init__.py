"""The checks, one small function each: `check_xxx(call, rng)` raises `CheckFailure` if a rule is wrong."""

from __future__ import annotations

import importlib

from corejax.extend.messages import PluginError
from corejax_testing.checks.registry import CHECKS as _REGISTERED
from corejax_testing.checks.registry import Check as Check
from corejax_testing.contributions import provided_checks

# The modules in the order of a report's columns: a check comes after those that it depends on.
_ROOMS = (
    *("examples", "evaluation", "bad_types", "programs", "derivatives", "dtypes", "points"),
    *("transposition", "batching", "indices", "splits", "empties", "effects", "compiled"),
    *("conversions", "extremes", "turns", "compositions", "costs", "sharded"),
)
for _room in _ROOMS:
    importlib.import_module(f"{__name__}.{_room}")
CHECKS: dict[str, Check] = {
    name: check
    for room in _ROOMS
    for name, check in _REGISTERED.items()
    if check.run.__module__ == f"{__name__}.{room}"
}


def all_checks() -> dict[str, Check]:
    """Return the kit's checks, followed by those that plugins provide for their own kinds of rules.

    Raises:
        PluginError: a plugin's hook raises an error, or returns an object that is no `Check` of the given name.
    """
    return {**CHECKS, **{name: check for name, (check, _) in _provided().items()}}


def checks_of(plugin: str) -> list[str]:
    """Return the names of the checks that a plugin provides."""
    return [name for name, (_, owner) in _provided().items() if owner == plugin]


def _provided() -> dict[str, tuple[Check, str]]:
    found = provided_checks()
    for name, (check, plugin) in found.items():
        if not isinstance(check, Check) or check.name != name or name in CHECKS:
            raise PluginError(
                f"plugin {plugin}: corejax_provide_checks must return for {name!r} a corejax_testing.Check of that "
                f"name, different from the kit's own checks; got {check!r}"
            )
    return found
