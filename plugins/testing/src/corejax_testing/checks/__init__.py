"""Checks, one small function each: `check_xxx(call, rng)` raises `CheckFailure`, or all is well."""

from __future__ import annotations

from corejax_testing.checks import batching as batching
from corejax_testing.checks import compiled as compiled
from corejax_testing.checks import compositions as compositions
from corejax_testing.checks import derivatives as derivatives
from corejax_testing.checks import evaluation as evaluation
from corejax_testing.checks import programs as programs
from corejax_testing.checks import splits as splits
from corejax_testing.checks import transposition as transposition
from corejax_testing.checks.registry import CHECKS as _REGISTERED
from corejax_testing.checks.registry import Check as Check

# The order of a report's columns: what later checks rest on comes first.
_ROOMS = (evaluation, programs, derivatives, transposition, batching, splits, compiled, compositions)
CHECKS: dict[str, Check] = {
    name: check for room in _ROOMS for name, check in _REGISTERED.items() if check.run.__module__ == room.__name__
}
