"""The toy plugin, with this plugin's choice of what is computed again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from corejax_control_flow.programs.recomputation import RECOMPUTATION
from tests.kernel import toys as toy_plugin


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No other plugin, for one test."""
    for module in ("partial_eval_jaxpr", "call"):
        monkeypatch.setattr(f"corejax.programs.{module}.find_recomputation", lambda: RECOMPUTATION)
    with toy_plugin.installed():
        toy_plugin.printed.clear()
        yield
