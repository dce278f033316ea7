"""`corejax accuracy`: errors of a few functions, run and compiled, and the command."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from corejax.cli import main
from corejax_scipy.accuracy.measure import measure, names
from corejax_scipy.special._rows import ROWS

names()  # imports every function


@pytest.mark.parametrize("name", ["dawsn", "erfcx", "exp1", "gamma", "spence", "wofz"])
def test_float32_is_rounded_once(name):
    """Other functions are measured in `special/test_float32.py`."""
    found = measure(name, "float32", "compiled", 2000)
    assert found.most < 1.0 and not found.lost


def test_an_error_is_found(monkeypatch):
    primitive, oracle = ROWS["dawsn"]
    monkeypatch.setitem(ROWS, "dawsn", (primitive, lambda x: np.where(x > 5, 1.001 * oracle(x), oracle(x))))
    found = measure("dawsn", "float64", "run", 500)
    assert found.most > 1e11 and found.where[0] > 5 and found.median < 10


def test_every_row_can_be_measured():
    for name in names():
        assert measure(name, "float64", "run", 200).mode == "run"


def test_command():
    run = CliRunner().invoke(main, ["accuracy", "erfcx", "ndtri", "--dtype", "float32", "--points", "100"])
    assert (
        run.exit_code == 0
        and [line.split()[0] for line in run.output.splitlines()[1:]] == ["erfcx"] * 2 + ["ndtri"] * 2
    )
    run = CliRunner().invoke(main, ["accuracy", "erfcx", "--points", "50", "--format", "json"])
    assert {row["mode"] for row in json.loads(run.output)} == {"run", "compiled"}
    run = CliRunner().invoke(main, ["accuracy", "erfc2"])
    assert run.exit_code == 2 and "there is no function 'erfc2' to measure" in run.output
