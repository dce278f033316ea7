"""An operand that is declared not differentiable: derivative checks check the others."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import corejax.numpy as jnp
from corejax.extend import Example, Primitive, ShapedArray, defjvp, jvp_rules, nondifferentiable
from corejax_testing.fuzzing.session import fuzz
from corejax_testing.runner import verify

pytestmark = pytest.mark.usefixtures("nothing_is_left")

CHECKS = ["weak_results", "programs", "repeatable", "jvp", "linearity", "zeros", "linearize", "vjp", "splits", "cost"]
_numbers = itertools.count()
_X = ShapedArray((3,), np.dtype(np.float32))


def power_type(x: ShapedArray, n: ShapedArray) -> ShapedArray:
    if x.dtype != n.dtype or x.dtype.kind != "f":
        raise TypeError("power takes two operands of one floating-point dtype")
    return x


def power(rule: Any = None) -> Primitive:
    p = Primitive(f"kit_test.power{next(_numbers)}", impl=np.power, abstract_eval=power_type)
    if rule is not None:
        defjvp(p, rule, nondifferentiable("the power is a count"))
    return p


def results(p: Primitive, checks: list[str]) -> dict[str, Any]:
    operand = ShapedArray((3,), np.float32)
    return {r.check: r for r in verify(p, [Example((operand, operand), low=0.5)], checks=checks, quick=True)}


@pytest.mark.filterwarnings("ignore::corejax.errors.DerivedRuleWarning")
def test_the_rest_is_checked() -> None:
    found = results(power(lambda t, x, n: t * n * jnp.power(x, n - 1)), CHECKS)
    assert {name: r.status for name, r in found.items()} == dict.fromkeys(CHECKS, "passed")


def test_a_wrong_rule_of_the_other_operand_is_found() -> None:
    found = results(power(lambda t, x, n: t * jnp.power(x, n - 1)), ["jvp"])
    assert found["jvp"].status == "failed" and "tangent 0" in found["jvp"].message


@pytest.mark.filterwarnings("ignore::corejax.errors.DerivedRuleWarning")
def test_nests_leave_the_operand_alone() -> None:
    p = power(lambda t, x, n: t * n * jnp.power(x, n - 1))
    assert results(p, ["pairs"])["pairs"].status == "passed"


def test_in_all_operands_says_why() -> None:
    p = power()
    jvp_rules.register(p, nondifferentiable("no derivative at all"))
    for result in results(p, ["jvp", "vjp", "linearize"]).values():
        assert result.status == "not applicable" and "no derivative at all" in result.message


def test_with_several_results() -> None:
    p = Primitive(
        f"kit_test.powers{next(_numbers)}",
        multiple_results=True,
        impl=lambda x, n: [np.power(x, n), x + n],
        abstract_eval=lambda x, n: [power_type(x, n)] * 2,
    )

    def rule(primals: Any, tangents: Any) -> Any:
        (x, n), t = primals, tangents[0]
        return p.bind(x, n), [t * n * jnp.power(x, n - 1), t]

    jvp_rules.register(p, rule, nondifferentiable={1: "the power is a count"})
    found = results(p, ["dce", "weak_results", "jvp"])
    assert {r.status for r in found.values()} == {"passed"}


def test_fuzz_asks_for_no_derivative_in_it() -> None:
    p = power(lambda t, x, n: t * n * jnp.power(x, n - 1))
    summary = fuzz([p], programs=8, examples={p.name: [Example((_X, _X), low=0.5, reference=np.power)]})
    assert summary.failures == []
    assert summary.asked["jvp"] > 0


def test_fuzz_finds_a_wrong_rule_of_the_other_operand() -> None:
    p = power(lambda t, x, n: -t * n * jnp.power(x, n - 1))
    summary = fuzz([p], programs=12, examples={p.name: [Example((_X, _X), low=0.5, reference=np.power)]})
    assert "jvp" in {failure.relation for failure in summary.failures}
