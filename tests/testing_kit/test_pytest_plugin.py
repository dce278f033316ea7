"""What authors use in their test files, run as they would run it."""

from __future__ import annotations

import re
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest

import corejax
import corejax_testing
from corejax.extend import Example, Primitive, ShapedArray, hookimpl, primitives
from corejax_testing.contributions import examples_of

pytest_plugins = ["pytester"]

test_rules = corejax_testing.tests_for("neg", checks=["types", "jvp", "transpose"], quick=True)

ACME = """
import numpy as np
import corejax
import corejax_testing
from corejax.extend import Example, Primitive, ShapedArray

corejax.plugins.load_everything()
cube_p = Primitive("acme.cube", decomposition=lambda x: x * x * x)
wrong_p = Primitive("acme.wrong", decomposition=lambda x: x * x)
corejax.extend.jvp_rules.register(wrong_p, lambda primals, tangents: (primals[0] * primals[0], tangents[0]))
examples = dict.fromkeys(("acme.cube", "acme.wrong"), [Example((ShapedArray((3,), "float32"),))])
test_rules = corejax_testing.tests_for(
    "acme.cube", "acme.wrong", checks=["types", "jvp"], examples=examples, expected_failures={REASONS}
)
"""


def test_one_line_gives_a_test_for_each_check(pytester: pytest.Pytester) -> None:
    """Expected failures have a reason, and are strict; a primitive without examples is a failure like any other."""
    without = ACME.replace('"acme.wrong", checks=["types", "jvp"]', 'checks=["examples", "types"]')
    without = without.replace("examples=examples, ", "")
    files = {
        "plain": (ACME, "{}"),
        "known": (ACME, '{("acme.wrong", "jvp"): "known"}'),
        "strict": (ACME, '{("acme.wrong", "jvp"): "known", ("acme.cube", "jvp"): "mistaken"}'),
        "without": (without, "{}"),
        "later": (without, '{("acme.cube", "examples"): "later"}'),
    }
    # Each has primitives of its own: one process runs all.
    pytester.makepyfile(**{n: text.replace("{REASONS}", r).replace("acme.", f"{n}.") for n, (text, r) in files.items()})
    done = pytester.run(
        sys.executable,
        "-m",
        "pytest",
        "-v",
        "-rs",
        "-p",
        "no:cacheprovider",
        "-W",
        "error",
        *(f"{n}.py" for n in files),
    )
    outcomes = Counter(re.findall(r"^(\w+)\.py::\S+ (PASSED|FAILED|XFAIL|SKIPPED)", done.stdout.str(), re.MULTILINE))
    assert outcomes == {
        **{("plain", "PASSED"): 3, ("plain", "FAILED"): 1},
        **{("known", "PASSED"): 3, ("known", "XFAIL"): 1},
        **{("strict", "PASSED"): 2, ("strict", "XFAIL"): 1, ("strict", "FAILED"): 1},
        **{("without", "FAILED"): 1, ("without", "SKIPPED"): 1},
        **{("later", "XFAIL"): 1, ("later", "SKIPPED"): 1},
    }
    done.stdout.fnmatch_lines(["*no plugin provides examples*"])


WRONG: list[dict[str, Any]] = [
    {"checks": ["typo"]},
    {"expected_failures": {("neg", "typo"): ""}},
    {"expected_failures": {("no", "jvp"): ""}},
]


@pytest.mark.parametrize("wrong", WRONG)
def test_names_that_do_not_exist_are_errors(wrong: dict[str, Any]) -> None:
    with pytest.raises(KeyError, match=r"typo|jvp"):
        corejax_testing.tests_for("neg", **wrong)


class Plugin:
    """A plugin of a test's own."""

    @hookimpl
    def corejax_register_primitives(self) -> None:
        Primitive("mine.twice", decomposition=lambda x: x + x)

    @hookimpl
    def corejax_export_names(self) -> dict[str, str]:
        return {"acme_name": "math:pi"}

    @hookimpl
    def corejax_provide_examples(self, primitive: str) -> list[Example] | None:
        return [Example((ShapedArray((2,), "float32"),))] if primitive == "mine.twice" else None


def test_isolated_plugins(isolated_plugins: Any) -> None:
    isolated_plugins.register(Plugin(), "mine")
    isolated_plugins.load_primitives()
    assert "mine.twice" in primitives
    assert corejax.acme_name > 3
    assert [record.name for record in isolated_plugins.records.values()] == ["mine"]
    (example,) = examples_of("mine.twice")
    assert example.operands[0].shape == (2,)
    assert examples_of("sin") == []


def test_nothing_is_left_of_isolated_plugins() -> None:
    with corejax.extend.plugins.isolated_plugins() as manager:
        manager.register(Plugin(), "mine")
        manager.load_primitives()
        assert corejax.acme_name > 3
    assert "mine.twice" not in primitives
    assert "acme_name" not in vars(corejax)
    assert "mine" not in corejax.plugins.manager().records
    assert float(corejax.lax.sin(0.0)) == 0.0


def test_a_plugin_that_fails_to_give_examples_is_named() -> None:
    class Broken:
        @hookimpl
        def corejax_provide_examples(self, primitive: str) -> list[Example]:
            raise OSError("no file")

    with corejax.extend.plugins.isolated_plugins() as manager:
        manager.register(Broken(), "broken")
        with pytest.raises(corejax.errors.PluginError, match=r"plugin 'broken' .* fails to provide examples of 'sin'"):
            examples_of("sin")


# -- checks that plugins provide ---------------------------------------------------------------------------------


def _is_even(call: corejax_testing.Call, rng: Any) -> None:
    """Twice an integer is even."""
    if any(np.any(np.asarray(y) % 2) for y in call(*(np.round(x) for x in call.values))):
        raise corejax_testing.CheckFailure("it is odd")


EVEN = corejax_testing.Check("even", _is_even)
OTHER_NAME = corejax_testing.Check("odd", _is_even)


class WithCheck(Plugin):
    """A plugin with a check of its own."""

    target = "EVEN"

    @hookimpl
    def corejax_provide_checks(self) -> dict[str, str]:
        return {"even": f"{__name__}:{self.target}"}


def test_checks_of_plugins_are_run(isolated_plugins: Any) -> None:
    isolated_plugins.register(WithCheck(), "mine")
    isolated_plugins.load_primitives()
    results = {r.check: r.status for r in corejax_testing.verify(primitives["mine.twice"], quick=True)}
    assert list(results)[-1] == "even" and results["even"] == "passed"
    marks = corejax_testing.tests_for("mine", checks=["even"]).pytestmark  # type: ignore[attr-defined]
    assert [case.id for case in marks[0].args[1]] == ["mine.twice-even"]
    with corejax.extend.plugins.isolated_plugins() as manager:
        manager.register(Plugin(), "mine")
        with pytest.raises(KeyError, match="even"):
            corejax_testing.tests_for("mine", checks=["even"])


@pytest.mark.parametrize(
    ("target", "words"),
    [("nothing", "plugin 'mine' .*fails to provide checks: AttributeError"), ("OTHER_NAME", "plugin mine: .*'even'")],
)
def test_checks_that_are_none(isolated_plugins: Any, target: str, words: str) -> None:
    plugin = WithCheck()
    plugin.target = target
    isolated_plugins.register(plugin, "mine")
    isolated_plugins.load_primitives()
    with pytest.raises(corejax.errors.PluginError, match=words):
        list(corejax_testing.verify(primitives["mine.twice"]))


def test_the_cpu_passes_for_several_devices(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import corejax\n\n\ndef test_count():\n    assert corejax.device_count('cpu') == 3\n")
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--corejax-devices", "3")
    assert pytester.run(*command).parseoutcomes() == {"passed": 1}
    assert corejax.device_count("cpu") == 1, "without the option"
