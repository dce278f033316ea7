"""`corejax verify`."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from corejax.cli import main
from corejax.extend import registries
from tests.testing_kit import test_mutations as mutations
from tests.testing_kit.toys import same, toy


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify", *arguments])


def test_table_of_marks() -> None:
    done = run("sin", "lt", "--quick", "--check", "types", "--check", "jvp")
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.output.splitlines()]
    assert lines[:3] == [["primitive", "types", "jvp"], ["lt", "✓", "–"], ["sin", "✓", "✓"]]
    assert "# 2 primitives: ✓ 3 passed, ✗ 0 failed, · 0 missing rule, – 1 not applicable" in done.output


def test_one_elementwise_primitive_in_full() -> None:
    done = run("mul")
    assert done.exit_code == 0, done.output


def test_failure_is_shown_with_numbers_and_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    from corejax_testing import runner

    monkeypatch.setattr(runner, "examples_of", lambda name: mutations.EXAMPLES[name])
    with toy("toy.mulsin", {"jvp": mutations.JVP["wrong sign"][1]}):
        done = run("toy.mulsin", "--check", "jvp", "--check", "types")
    assert done.exit_code == 1
    assert "toy.mulsin  ✗    ✓" in done.output
    assert "toy.mulsin: jvp: tangent 0 of the jvp rule is" in done.output
    assert "operand 0: float" in done.output
    assert "look at: the jvp rule, " in done.output


def test_json() -> None:
    done = run("add", "--check", "types", "--json")
    described: dict[str, Any] = json.loads(done.output)
    (result,) = described["results"]
    assert (result["primitive"], result["check"], result["status"]) == ("add", "types", "passed")
    assert described["totals"] == {"passed": 1}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sinn"], "there is no plugin and no primitive named 'sinn'; did you mean 'sin'?"),
        (["sin", "--check", "typo"], "there is no check named 'typo'; there are types, "),
    ],
)
def test_wrong_names(arguments: list[str], words: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert words in done.output


def test_list_checks() -> None:
    done = run("--list-checks")
    assert done.exit_code == 0
    assert len(done.output.splitlines()) >= 20
    assert all(len(line.split()) > 4 for line in done.output.splitlines())


def test_missing_rule_is_a_mark_and_no_failure() -> None:
    from corejax.extend import Example, Primitive, ShapedArray
    from corejax.plugins.contributions import Snapshot, undo
    from corejax_testing import verify

    before = Snapshot()
    try:
        primitive = Primitive("toy.opaque", impl=np.tanh, abstract_eval=same, tags=("elementwise",))
        results = {r.check: r for r in verify(primitive, [Example((ShapedArray((3,), "float32"),))], quick=True)}
    finally:
        undo(before.changes())
    assert registries["jvp"].find(primitive) is None
    assert not [r.report() for r in results.values() if r.failed]
    assert results["jvp"].status == "missing rule"
    assert results["types"].status == "passed"
