"""`corejax verify`."""

from __future__ import annotations

import gc
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import corejax
import corejax_testing
from corejax.base.tables import restore, snapshot
from corejax.cli import main
from corejax.extend import Example, Primitive, ShapedArray, hookimpl, load_everything, registries
from corejax.extend.plugins import isolated_plugins
from corejax_testing.command import progress
from corejax_testing.selection import chosen, faults, notes
from tests.testing_kit import test_mutations as mutations
from tests.testing_kit.toys import CHECKS, same, toy

README = Path(corejax_testing.__file__).resolve().parents[2] / "README.md"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify", *arguments])


def test_table_of_marks() -> None:
    done = run("sin", "lt", "--quick", "--check", "types", "--check", "jvp")
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.output.splitlines()]
    assert lines[:3] == [["primitive", "types", "jvp"], ["lt", "✓", "–"], ["sin", "✓", "✓"]]
    assert "# 2 primitives: ✓ 3 passed, ✗ 0 failed, · 0 missing rule, – 1 not applicable" in done.output


@pytest.mark.slow  # each of its checks is among those of `test_first_party`
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
    assert "toy.mulsin: jvp: tangent 0 of the jvp rule, of operand 1 alone, is" in done.output
    assert "operand 0: float32[1] [1.]" in done.output  # made small and round
    assert "perhaps: it is everywhere -1 times what is right: a sign" in done.output
    assert "look at: the jvp rule, " in done.output


@pytest.mark.parametrize("as_json", [False, True])
def test_an_interrupt_shows_what_was_found(as_json: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from corejax_testing import runner

    verify = runner.verify

    def interrupted(*args: Any, **options: Any) -> Iterator[Any]:
        yield from list(verify(*args, **options))[:2]
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "verify", interrupted)
    result = run("sin", "--check", "types", "--check", "jvp", "--check", "vmap", *["--json"] * as_json)
    assert result.exit_code == 130 and "interrupted: 2 of 3 checks were made" in result.stderr
    if as_json:
        found = json.loads(result.stdout)
        assert found["exit_status"] == 130 and [r["check"] for r in found["results"]] == ["types", "jvp"]
    else:
        assert "sin" in result.stdout and "jvp" in result.stdout


def test_an_interrupt_of_other_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("corejax_testing.selection.planned", interrupted)
    result = run("sin")
    assert result.exit_code == 130 and "interrupted" in result.stderr and not result.stdout


def test_json() -> None:
    done = run("add", "--check", "types", "--json")
    described: dict[str, Any] = json.loads(done.output)
    (result,) = described["results"]
    assert (result["primitive"], result["check"], result["status"]) == ("add", "types", "passed")
    assert described["totals"] == {"passed": 1}
    assert (described["format"], described["version"], described["exit_status"]) == ("corejax-verify", 1, 0)
    assert (described["faults"], described["quick"]) == ([], False)


def test_json_is_as_documented() -> None:
    """A key that goes away makes a new version of the format."""
    described = json.loads(run("add", "--check", "types", "--json").output)
    assert set(described) == {"format", "version", "corejax", "quick", "exit_status", "faults", "results", "totals"}
    text = README.read_text()
    for key in [*described, *described["results"][0]]:
        assert f"`{key}`" in text, f"{key} is not in the kit's README"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sinn"], "there is no plugin and no primitive named 'sinn'; did you mean 'sin'?"),
        (["sin", "--check", "nonsense"], "there is no check named 'nonsense'; the checks are examples, types, "),
        (["sin", "--check", "typo"], "there is no check named 'typo'; did you mean 'types'?"),
    ],
)
def test_wrong_names(arguments: list[str], words: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert words in done.output


def test_single_primitive_is_shown_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("types", "jvp", "transpose", "text", "params", "examples", "effects")
    done = run("sin", "--quick", *(word for name in names for word in ("--check", name)))
    assert done.exit_code == 0
    assert "  ✓ jvp        Check that the jvp rule's tangents agree" in done.output
    assert "  – effects    not applicable: it has no effects" in done.output


def test_long_names_of_checks_have_their_column() -> None:
    names = ("types", "jvp", "transpose", "text", "params", "examples", "derivative_dtypes")
    done = run("sin", "--quick", *(word for name in names for word in ("--check", name)))
    assert "  ✓ derivative_dtypes  Check tangents" in done.output
    assert "  ✓ types              Check that results" in done.output


@contextmanager
def opaque(**declared: Any) -> Iterator[Primitive]:
    """A primitive with an impl and an abstract-eval rule, and no plugin that gives examples of it."""
    before = snapshot()
    try:
        yield Primitive("toy.opaque", impl=np.tanh, abstract_eval=same, tags=("elementwise",), **declared)
    finally:
        restore(before)


def test_without_examples_nothing_is_known() -> None:
    with opaque():
        done = run("toy.opaque", "--check", "examples", "--check", "jvp")
        allowed = run("toy.opaque", "--check", "examples", "--check", "jvp", "--allow-missing-examples")
    assert done.exit_code == 1
    assert "toy.opaque  ✗         –" in done.output
    assert "provides no examples of it: nothing is checked" in done.output
    assert "if primitive == 'toy.opaque':" in done.output
    assert allowed.exit_code == 0
    assert "toy.opaque  –         –" in allowed.output


def test_missing_and_derived_rules_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from corejax_testing import runner

    monkeypatch.setattr(runner, "examples_of", lambda name: [Example((ShapedArray((3,), "float32"),))])
    with opaque():
        done = run("toy.opaque", *(word for name in ("types", "jvp", "vmap") for word in ("--check", name)))
    assert done.exit_code == 0, done.output
    assert "toy.opaque  ✓      ·    ○" in done.output
    assert "toy.opaque: primitive 'toy.opaque'" in done.output and "Not checked: jvp." in done.output
    assert "(○ 1 of these by derived rules)" in done.output


class Broken:
    """A plugin that fails after it has named what it offers."""

    @hookimpl
    def corejax_register_primitives(self) -> None:
        raise OSError("no library")


class Sin:
    """A plugin with the name of another plugin's primitive."""

    @hookimpl
    def corejax_declare_api_version(self) -> int:
        return 1

    @hookimpl
    def corejax_register_primitives(self) -> None:
        Primitive("sin.other", impl=lambda x: x, abstract_eval=lambda x: x)


def test_a_name_of_a_plugin_and_a_primitive_selects_both() -> None:
    with isolated_plugins() as manager:
        manager.register(Sin(), "sin", "1.0")
        load_everything()
        assert [primitive.name for primitive in chosen(["sin"])] == ["sin", "sin.other"]


class Empty:
    """A plugin without primitives."""

    @hookimpl
    def corejax_declare_api_version(self) -> int:
        return 1


def test_plugins_that_failed_or_have_nothing() -> None:
    with isolated_plugins() as manager:
        manager.register(Broken(), "broken", "1.0")
        manager.register(Empty(), "bare", "1.0")
        load_everything()
        assert chosen(["broken"]) == chosen(["bare"]) == []
        assert faults(["broken"]) == faults([]) == ["plugin 'broken' (broken 1.0) failed: OSError: no library"]
        assert faults(["bare"]) == notes(["broken"]) == []
        assert notes(["bare"]) == ["plugin 'bare' (bare 1.0) has no primitives: only its manifest is checked"]
        with pytest.raises(
            KeyError, match=r"named .acme.cube.*; it may belong to a plugin that failed to load: .*broken"
        ):
            chosen(["acme.cube"])
        with pytest.raises(corejax.errors.PluginError, match="OSError: no library"):
            corejax_testing.tests_for("broken")


def test_failed_plugin_is_exit_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    from corejax_testing import selection

    monkeypatch.setattr(selection, "faults", lambda names: ["plugin 'broken' (broken 1.0) failed: OSError: no library"])
    done = run("sin", "--check", "types")
    assert done.exit_code == 1
    assert "failed: plugin 'broken' (broken 1.0) failed: OSError: no library" in done.output
    described = json.loads(run("sin", "--check", "types", "--json").output)
    assert (described["exit_status"], len(described["faults"])) == (1, 1)


def test_plugin_without_primitives_is_no_failure() -> None:
    done = run("numpy_api")
    assert done.exit_code == 0
    assert "has no primitives: only its manifest is checked" in done.output


def test_list_checks() -> None:
    done = run("--list-checks")
    assert done.exit_code == 0
    assert len(done.output.splitlines()) >= 20
    assert all(len(line.split()) > 4 for line in done.output.splitlines())


def test_missing_rule_is_a_mark_and_no_failure() -> None:
    with opaque() as primitive:
        example = Example((ShapedArray((3,), "float32"),))
        found = corejax_testing.verify(primitive, [example], checks=CHECKS, quick=True)
        results = {r.check: r for r in found}
        assert registries["jvp"].find(primitive) is None
    assert not [r.report() for r in results.values() if r.failed]
    assert results["jvp"].status == "missing rule"
    assert results["types"].status == "passed"
    assert results["vmap"].derived == "loop"


def test_over_as_many_devices_as_are_asked_for() -> None:
    command = [sys.executable, "-m", "corejax", "verify", "sin", "--check", "sharded", "--quick", "--devices", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# sharded: on 3 devices" in done.stdout


def test_on_one_device_a_note_says_how_to_have_more() -> None:
    assert "# sharded: on one device: corejax verify --devices 8" in run("sin", "--check", "sharded", "--quick").output


def test_without_the_plugin_of_meshes_it_is_not_applicable(monkeypatch: pytest.MonkeyPatch) -> None:
    from corejax_testing.checks import sharded

    found = importlib.util.find_spec
    monkeypatch.setattr(
        sharded.importlib.util, "find_spec", lambda name: None if name == "corejax_parallel" else found(name)
    )
    (result,) = corejax_testing.verify(chosen(["sin"])[0], checks=["sharded"])
    assert (result.status, result.message) == ("not applicable", "corejax-parallel is not installed")


def test_an_interrupt_in_a_callback_of_the_garbage_collector_is_not_lost() -> None:
    def interrupted(phase: str, info: dict[str, Any]) -> None:
        if phase == "stop":
            raise KeyboardInterrupt

    hook = sys.unraisablehook
    with pytest.raises(KeyboardInterrupt), progress(None) as step:  # which line raises is the question
        step(advance=1)
        gc.callbacks.append(interrupted)
        try:
            gc.collect()  # Python drops the exception
        finally:
            gc.callbacks.remove(interrupted)
        step(advance=1)
        pytest.fail("the interrupt is lost")
    assert sys.unraisablehook is hook
