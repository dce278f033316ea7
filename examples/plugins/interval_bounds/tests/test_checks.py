"""The check that the plugin adds to `corejax verify`: it passes right rules, and finds wrong ones."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import corejax
import corejax_testing
from corejax import lax
from corejax.extend import Example, Primitive, ShapedArray
from corejax.interval_bounds import Bounds, interval_rules

EXAMPLES = [Example([ShapedArray((4,), np.float32)] * 2)]


@contextlib.contextmanager
def rule(given: Any) -> Iterator[Primitive]:
    """A product of two with this rule."""
    p = corejax.extend.find_primitive("checks.mul") or Primitive(
        "checks.mul", impl=lambda x, y: x * y, abstract_eval=lambda x, y: x
    )
    interval_rules.register(p, given)
    try:
        yield p
    finally:
        interval_rules.unregister(p)


def right(x: Bounds, y: Bounds) -> Bounds:
    ends = [lax.mul(a, b) for a in x for b in y]
    lower = lax.min(lax.min(ends[0], ends[1]), lax.min(ends[2], ends[3]))
    return Bounds(lower - 1e-5, lax.max(lax.max(ends[0], ends[1]), lax.max(ends[2], ends[3])) + 1e-5)


WRONG = {
    "signs are forgotten": lambda x, y: Bounds(lax.mul(x.lower, y.lower), lax.mul(x.upper, y.upper)),
    "one end alone": lambda x, y: Bounds.point(lax.mul(x.lower, y.lower)),
    "upside down": lambda x, y: Bounds(*reversed(right(x, y))),
    "too narrow": lambda x, y: Bounds(*(0.9 * b for b in right(x, y))),
    "another operand": lambda x, y: right(x, x),
    "wrong dtype": lambda x, y: Bounds(*(b.astype("float16") for b in right(x, y))),
}


def test_the_rules_of_this_plugin() -> None:
    corejax.extend.load_everything()
    written = [p for p in interval_rules if interval_rules.rule_of(p).derived is None]
    results = [r for p in written for r in corejax_testing.verify(p, checks=["interval"])]
    assert not [r.report() for r in results if r.failed]
    assert sum(r.status == "passed" for r in results) >= 55


def test_a_right_rule_passes() -> None:
    with rule(right) as p:
        (result,) = corejax_testing.verify(p, EXAMPLES, checks=["interval"])
    assert result.status == "passed", result.report()


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rules_fail(name: str) -> None:
    with rule(WRONG[name]) as p:
        (result,) = corejax_testing.verify(p, EXAMPLES, checks=["interval"])
    assert result.failed and result.rule == "interval", name


def test_without_a_rule_there_is_nothing_to_check() -> None:
    p = Primitive("checks.opaque", impl=np.sort, abstract_eval=lambda x: x)
    (result,) = corejax_testing.verify(p, [Example([ShapedArray((4,), np.float32)])], checks=["interval"])
    assert (result.status, result.message) == ("not applicable", "no interval rule")
