"""Fixtures of the tests of callbacks."""

from __future__ import annotations

import pytest


@pytest.fixture
def slow_runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of programs that are run from Python, one for each run."""
    from corejax_xla_backend._xla.executable import XlaExecutable

    runs: list[str] = []
    run = XlaExecutable.run
    monkeypatch.setattr(XlaExecutable, "run", lambda self, buffers: (runs.append(self.name), run(self, buffers))[1])
    return runs
