"""Right rules pass every check."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from corejax.extend import (
    Example,
    Primitive,
    ShapedArray,
    impl_rules,
    is_undef_primal,
    transpose_rules,
    xla_translations,
)
from corejax_testing import CheckFailure, verify
from corejax_testing.checks import points
from tests.testing_kit.toys import CHECKS, EXAMPLES, toy

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.mark.parametrize("name", EXAMPLES)
def test_right_rules_pass(name: str) -> None:
    with toy(name) as primitive:
        results = list(verify(primitive, EXAMPLES[name], checks=CHECKS, quick=name != "toy.mulsin"))
    assert not [result.report() for result in results if result.failed]
    assert sum(result.status == "passed" for result in results) >= 15


def test_failures_by_design_have_to_fail() -> None:
    (example, *_) = EXAMPLES["toy.mulsin"]
    with toy("toy.mulsin") as primitive:
        wrong = replace(example, reference=lambda x, y: x, fails={"values": "the reference is another function"})
        (result,) = verify(primitive, [wrong], checks=["values"])
        assert (result.status, result.message) == (
            "not applicable",
            "fails, as it should: the reference is another function",
        )
        (result,) = verify(primitive, [replace(example, fails={"values": "by mistake"})], checks=["values"])
        assert result.failed and "but the example declares that it fails: by mistake" in result.message


def test_terms_that_cancel_may_be_rounded_otherwise_when_compiled() -> None:
    def logcosh(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
        (aval,), (x,) = in_avals, in_vals
        twice = ctx.op("abs", ctx.op("add", x, x, out=aval), out=aval)
        small = ctx.op("exponential", ctx.op("negate", twice, out=aval), out=aval)
        rest = ctx.op("log_plus_one", small, out=aval)
        total = ctx.op("add", ctx.op("abs", x, out=aval), rest, out=aval)
        return ctx.op("subtract", total, ctx.full(aval, float(np.log(2))), out=aval)

    def abstract_eval(x: ShapedArray) -> ShapedArray:
        if x.dtype.name not in ("float32", "float64"):
            raise TypeError(f"toy.logcosh takes float32 and float64, got {x.str_short()}")
        return x

    name = "toy.logcosh"
    impl = lambda x: (np.logaddexp(x, -x) - np.log(2)).astype(x.dtype)
    primitive = Primitive(name, impl=impl, abstract_eval=abstract_eval, tags=("elementwise",))
    xla_translations.register(primitive)(logcosh)
    (result,) = verify(primitive, [Example([ShapedArray((3,), np.float32)])], checks=["extremes"])
    assert result.status == "passed", result.report()


def test_what_an_impl_rule_is_prepared_to_be_is_compared_with_it() -> None:
    def prepared(avals: Any, *, right: bool) -> Any:
        return np.negative if right else np.positive

    def abstract_eval(x: ShapedArray, *, right: bool) -> ShapedArray:
        if x.dtype.kind != "f":
            raise TypeError(f"toy.prepared takes floating-point numbers, got {x.str_short()}")
        return x

    p = Primitive("toy.prepared", abstract_eval=abstract_eval)
    impl_rules.register(p, lambda x, *, right: -x, prepared=prepared)
    type_of_x = ShapedArray((3,), np.float32)
    (result,) = verify(p, [Example([type_of_x], {"right": True})], checks=["types"])
    assert result.status == "passed", result.report()
    (result,) = verify(p, [Example([type_of_x], {"right": False})], checks=["types"])
    assert result.failed and "the prepared impl returns" in result.message


def test_products_that_are_zero_are_not_linear_in_both_operands() -> None:
    """A window of a convolution that has nothing but padding in it."""

    def abstract_eval(x: ShapedArray, y: ShapedArray, *, factor: float) -> ShapedArray:
        if x is not y or x.dtype.kind != "f":
            raise TypeError(f"toy.scaled takes two floating-point arrays of one type, got {x.str_short()}")
        return x

    def transpose(ct: Any, x: Any, y: Any, *, factor: float) -> list[Any]:
        if is_undef_primal(x):
            return [p.bind(ct, y, factor=factor), None]
        return [None, p.bind(x, ct, factor=factor)]

    p = Primitive("toy.scaled", abstract_eval=abstract_eval, linear_in=(0, 1))
    impl_rules.register(p, lambda x, y, *, factor: np.asarray(factor, x.dtype) * x * y)
    transpose_rules.register(p, transpose)
    type_of_x = ShapedArray((3,), np.float32)
    for factor in (2.0, 0.0):
        (result,) = verify(p, [Example([type_of_x] * 2, params={"factor": factor})], checks=["transpose"])
        assert result.status == "passed", result.report()


def test_sums_of_tangents_near_overflow_are_not_compared() -> None:
    """An iteration whose tangents diverge stops at a different step for each direction."""
    along_each = [[np.array([3e300])], [np.array([2e300])]]
    points._require_sum(along_each, [np.array([3.4e300])], "")
    with pytest.raises(CheckFailure, match="the sum of those along each is 5"):
        points._require_sum([[np.array([3.0])], [np.array([2.0])]], [np.array([3.4])], "")
