"""What the plugin adds to the command and to what others see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np

import corejax
from corejax.extend import find_primitive, load_everything, primitives, registries


def run(*arguments: str) -> Any:
    """The command's output."""
    environment = {**os.environ, "COREJAX_PLUGINS": ""}
    environment.pop("COREJAX_PLUGINS")
    command = [sys.executable, "-m", "corejax", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_column_in_list_primitives() -> None:
    found = json.loads(run("list-primitives", "--json"))
    assert "interval" in found["rule_kinds"]
    rules = {row["name"]: row["rules"]["interval"] for row in found["primitives"]}
    assert sum(status == "own" for status in rules.values()) >= 60
    assert rules["exp"] == rules["scan"] == rules["xla_call"] == "own"
    assert rules["complex"] == "not_required"
    assert "interval" in run("list-primitives").splitlines()[0].split()


def test_the_row_in_show() -> None:
    rows = run("show", "dot_general").splitlines()
    [row] = [row for row in rows if row.split()[:1] == ["interval"]]
    assert "own" in row and "plugin interval_bounds" in row and "contraction.py:" in row
    assert "(ulps=8)" in run("show", "exp")


def test_every_rule_belongs_to_this_plugin_and_no_primitive_does() -> None:
    load_everything()
    registry = registries["interval"]
    written = [p for p in registry if registry.rule_of(p).derived is None]
    assert {registry.rule_of(p).provenance.plugin for p in written} == {"interval_bounds"}
    assert {p.provenance.plugin for p in primitives.values()}.isdisjoint({"interval_bounds"})
    owners = {find_primitive(p.name).provenance.plugin for p in written}
    assert {"lax_basic", "control_flow", "xla_backend"} <= owners


def test_explain_names_the_interpreter_and_the_rules() -> None:
    from corejax.interval_bounds import Interval, propagate

    explained = corejax.explain(propagate(corejax.numpy.exp))(Interval(np.float32(0), np.float32(1)))
    use = explained.primitive("exp")
    assert use.interpreters["interval"] == 1
    assert use.rule("interval").plugin == "interval_bounds"


def test_nothing_is_imported_before_it_is_needed() -> None:
    program = (
        "import sys, corejax, corejax.numpy as jnp; jnp.exp(1.0);"
        "import corejax.interval_bounds as ib;"
        "print([m for m in sys.modules if m.startswith('corejax_interval_bounds.rules')]);"
        "ib.propagate(jnp.exp)(ib.Interval(0.0, 1.0));"
        "print('corejax_interval_bounds.rules.powers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "True"]
