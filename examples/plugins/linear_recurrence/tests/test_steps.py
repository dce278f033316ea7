"""The steps of README.md: each of them works."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "steps.py"


def test_steps(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("corejax_xla_backend")
    spec = importlib.util.spec_from_file_location("steps", PROGRAM)
    steps = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(steps)
    steps.LENGTH, steps.BATCH, steps.SECONDS = 10, 3, 0.0
    steps.main()
    header, _, *rows = capsys.readouterr().out.splitlines()
    assert header.count("|") == 7 and len(rows) == 4 + steps.kernels.COMPILED
    assert [row.count("–") for row in rows] == [2] * (len(rows) - 2) + [0, 0]
