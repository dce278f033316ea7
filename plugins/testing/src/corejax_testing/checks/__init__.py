"""Checks, one small function each: `check_xxx(call, rng)` raises `CheckFailure`, or all is well."""

from __future__ import annotations

from corejax.extend import PluginError, provided_checks
from corejax_testing.checks import bad_types as bad_types
from corejax_testing.checks import batching as batching
from corejax_testing.checks import compiled as compiled
from corejax_testing.checks import compositions as compositions
from corejax_testing.checks import conversions as conversions
from corejax_testing.checks import costs as costs
from corejax_testing.checks import dead_code as dead_code
from corejax_testing.checks import derivatives as derivatives
from corejax_testing.checks import dtypes as dtypes
from corejax_testing.checks import effects as effects
from corejax_testing.checks import empties as empties
from corejax_testing.checks import evaluation as evaluation
from corejax_testing.checks import examples as examples
from corejax_testing.checks import extremes as extremes
from corejax_testing.checks import indices as indices
from corejax_testing.checks import kept_effects as kept_effects
from corejax_testing.checks import points as points
from corejax_testing.checks import programs as programs
from corejax_testing.checks import repeatable as repeatable
from corejax_testing.checks import sharded as sharded
from corejax_testing.checks import shared as shared
from corejax_testing.checks import splits as splits
from corejax_testing.checks import transposition as transposition
from corejax_testing.checks import turns as turns
from corejax_testing.checks import weak as weak
from corejax_testing.checks.registry import CHECKS as _REGISTERED
from corejax_testing.checks.registry import Check as Check

# The order of a report's columns: what later checks rest on comes first.
_ROOMS = (
    *(examples, evaluation, bad_types, weak, programs, repeatable, derivatives, dtypes, points, transposition),
    *(batching, indices, splits, dead_code, empties, effects, kept_effects, compiled, conversions, extremes),
    *(turns, compositions, costs, shared, sharded),
)
CHECKS: dict[str, Check] = {
    name: check for room in _ROOMS for name, check in _REGISTERED.items() if check.run.__module__ == room.__name__
}


def all_checks() -> dict[str, Check]:
    """The kit's checks, then those that plugins provide for rules of their own kinds.

    Raises:
        PluginError: a plugin fails to give them, or gives something else or a check under another name.
    """
    return {**CHECKS, **{name: check for name, (check, _) in _provided().items()}}


def checks_of(plugin: str) -> list[str]:
    """Names of the checks that a plugin provides."""
    return [name for name, (_, owner) in _provided().items() if owner == plugin]


def _provided() -> dict[str, tuple[Check, str]]:
    found = provided_checks()
    for name, (check, plugin) in found.items():
        if not isinstance(check, Check) or check.name != name or name in CHECKS:
            raise PluginError(
                f"plugin {plugin}: corejax_provide_checks gives for {name!r} a corejax_testing.Check of that name, "
                f"which is none of the kit's own; got {check!r}"
            )
    return found
