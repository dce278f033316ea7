"""What the plugin adds to `corejax verify`: it passes right rules, and finds wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax_testing
from corejax import lax
from corejax.checkify import NaNError, checkify_rules
from corejax.extend import Example, Primitive, ShapedArray, find_primitive

EXAMPLES = [Example([ShapedArray((4,), np.float32)])]


def log_p() -> Primitive:
    return find_primitive("checkify_tests.log") or Primitive(
        "checkify_tests.log", impl=np.log, abstract_eval=lambda x: x.strip_weak_type()
    )


RULES: dict[str, tuple[Any, str | None]] = {
    "right": (lambda checks, x: right(checks, x), None),
    "other values": (lambda checks, x: log_p().bind(x) * 2, "without"),
    "always": (lambda checks, x: right(checks, x, np.True_), "but no result has NaN"),
}


def right(checks: Any, x: Any, fails: Any = None) -> Any:
    out = log_p().bind(x)
    checks.add(lax.reduce_or(lax.ne(out, out), (0,)) if fails is None else fails, NaNError, "log")
    return out


@pytest.mark.parametrize("name", RULES)
def test_rules(name: str) -> None:
    given, said = RULES[name]
    p = log_p()
    examples = [Example([ShapedArray((4,), np.float32)], low=0.5)] if said else EXAMPLES
    checkify_rules.register(p, given)
    try:
        (result,) = corejax_testing.verify(p, examples, checks=["checkify"])
    finally:
        checkify_rules.unregister(p)
    assert result.failed is (said is not None), result.report()
    assert said is None or said in result.report()


def test_without_a_rule_there_is_nothing_to_check() -> None:
    (result,) = corejax_testing.verify(log_p(), EXAMPLES, checks=["checkify"])
    assert (result.status, result.message) == ("not applicable", "it has no checkify rule, or a derived one")


@pytest.mark.parametrize("name", ["cond", "scan", "while", "remat2", "custom_jvp_call", "xla_call", "div", "gather"])
def test_rules_of_this_plugin(name: str) -> None:
    results = corejax_testing.verify(find_primitive(name), checks=["checkify"])
    assert results and all(result.status == "passed" for result in results), [r.report() for r in results]


def test_examples_of_check() -> None:
    for name, checks in (("check", []), ("debug_check", ["xla", "pairs"])):
        for result in corejax_testing.verify(find_primitive(name), checks=["values", "vmap", "splits", *checks]):
            assert result.status == "passed", result.report()
