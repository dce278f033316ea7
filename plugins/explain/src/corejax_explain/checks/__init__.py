"""Checks that settings turn on: of values (`values`), of operations and programs (`calls`), of tracers (`leaks`)."""

from __future__ import annotations

from corejax.extend.speed import Checks
from corejax_explain.checks import calls, leaks, values


def _follow_settings() -> None:
    values.follow_settings()
    calls.follow_settings()


DEBUG_CHECKS = Checks(_follow_settings, values.check_values, leaks.refuse_leaks)
