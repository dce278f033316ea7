"""The short way of eager calls: what `bind` gives, and nothing passed over that somebody wants to see."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import (
    Array,
    Primitive,
    ShapedArray,
    config,
    impl_rules,
    observe,
    quick_array,
    quick_bind,
    quick_host_value,
)

_numbers = itertools.count()
X = np.linspace(-2, 3, 6, dtype=np.float32).reshape(2, 3)


def ufunc(rule: Callable[..., Any]) -> Primitive:
    """A primitive of one or two operands, of the type of the first one."""
    p = Primitive(f"quick_test.p{next(_numbers)}", abstract_eval=lambda x, *others: x)
    impl_rules.register(p, rule)
    return p


def test_it_gives_what_bind_gives() -> None:
    p, q = ufunc(np.negative), ufunc(np.add)
    one, two = quick_bind(p, 1), quick_bind(q, 2)
    for x in (X, X[:0], np.float64(2), np.int8([1, -128])):
        x = jnp.asarray(x)
        for _ in range(4):
            for got, wanted in ((one(x), p.bind(x)), (two(x, x), q.bind(x, x))):
                assert type(got) is Array and got.aval is wanted.aval
                assert np.asarray(got).tobytes() == np.asarray(wanted).tobytes()
                assert not np.asarray(got).flags.writeable
    weak = jnp.asarray(2.0)
    assert all(two(weak, weak).weak_type for _ in range(3))


def test_other_rules_and_other_operands() -> None:
    calls = []

    def rule(x: Any) -> Any:
        calls.append(1)
        return x * 2

    one = quick_bind(ufunc(rule), 1)
    two = quick_bind(ufunc(np.add), 2)
    for _ in range(3):
        np.testing.assert_array_equal(one(jnp.asarray(X)), 2 * X)
        np.testing.assert_array_equal(two(X, jnp.asarray(X)), 2 * X)
        np.testing.assert_array_equal(two(corejax.jit(lambda x: x * 1)(X), jnp.asarray(X)), 2 * X)
    assert "add a b" in str(corejax.make_jaxpr(quick_bind(lax.add_p, 2))(X, X))
    assert len(calls) == 3


def test_errors_are_those_of_bind() -> None:
    one = quick_bind(ufunc(np.negative), 1)
    masks = jnp.asarray([True])
    for _ in range(3):
        with pytest.raises(TypeError, match="negative") as found:
            one(masks)
        assert any("quick_test" in note for note in found.value.__notes__)


def test_a_rule_that_changes_is_seen() -> None:
    p = ufunc(np.negative)
    one, x = quick_bind(p, 1), jnp.asarray(X)
    for _ in range(3):
        np.testing.assert_array_equal(one(x), -X)
    impl_rules.register(p, np.exp, override=True)
    for _ in range(3):
        np.testing.assert_array_equal(one(x), np.exp(X))


def test_who_watches_sees_it() -> None:
    p = ufunc(np.negative)
    one, x = quick_bind(p, 1), jnp.asarray(X)
    for _ in range(3):
        one(x)
    seen = []
    with observe.watching(lambda step, begins: seen.append(step.primitive)):
        one(x)
        assert quick_host_value(x) is None
    assert p in seen
    assert quick_host_value(x) is not None


def test_nans_are_looked_for() -> None:
    one, x = quick_bind(ufunc(np.sqrt), 1), jnp.asarray(X)
    for _ in range(3):
        one(x)
    with config.override(debug_nans=True):
        for _ in range(2):
            with pytest.raises(FloatingPointError):
                one(x)
        assert quick_host_value(x) is None
    assert np.isnan(one(x)).any()


def test_values_that_need_no_operation() -> None:
    x = jnp.asarray(2.0) * jnp.ones(3)
    part = quick_array(quick_host_value(x)[1], x)
    assert type(part) is Array and part.aval is ShapedArray((), np.float32)
    weak = quick_array(quick_host_value(jnp.asarray(2.0)), jnp.asarray(2.0))
    assert weak.weak_type
    assert quick_host_value(X) is None
    assert corejax.jit(lambda y: y + (quick_host_value(x) is not None))(1.0) == 1.0
