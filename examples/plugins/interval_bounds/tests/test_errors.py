"""Refusals: they name what was given, and leave no trace behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import MissingRuleError, Primitive
from corejax.extend.plugins import isolated_plugins
from corejax.extend.transforms import trace_stack
from corejax.interval_bounds import Bounds, Interval, interval_rules, propagate


@pytest.fixture(autouse=True)
def _stack_is_clean() -> Iterator[None]:
    yield
    assert len(trace_stack()) == 1


X = Interval(np.float32(0), np.float32(1))


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Interval(1.0, 0.0), ValueError, "the lower bound 1.0 is above the upper bound 0.0"),
        (lambda: Interval(np.ones((2, 2)), np.eye(2)), ValueError, r"at index \(0, 1\), and at 1 more"),
        (lambda: Interval.around(0.0, -1.0), ValueError, "above"),
        (lambda: Interval("a", 1.0), TypeError, "the lower bound is an array or a number, got 'a' of type str"),
        (lambda: Interval(1j, 2j), TypeError, r"complex numbers have no order, got complex64\[\] as the lower bound"),
        (lambda: Interval(np.ones(2), np.ones(3)), ValueError, r"shapes \(2,\) and \(3,\) do not broadcast"),
    ],
)
def test_intervals_that_are_none(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_bounds_broadcast_and_promote() -> None:
    interval = Interval(0, np.ones(3, np.float32))
    assert interval.shape == (3,) and interval.dtype == np.float32
    assert "Interval(Array([0., 0., 0.]" in repr(interval)
    np.testing.assert_array_equal(interval.midpoint, [0.5] * 3)
    np.testing.assert_array_equal(interval.contains(np.array([0, 0.5, 2], np.float32)), [True, True, False])


def test_arguments_of_propagate() -> None:
    with pytest.raises(TypeError, match="propagate transforms a function, got 3 of type int"):
        propagate(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rounding is one of 'outward', 'nearest', got 'up'"):
        propagate(abs, rounding="up")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"propagate of function f: argument x\['a'\] is 'text' of type str"):
        propagate(_f)({"a": "text"})
    broken = Interval.of(np.ones(2), np.ones(3))
    with pytest.raises(ValueError, match=r"propagate of f: argument x: Interval: bounds of shapes"):
        propagate(_f)(broken)


def f(x: Any) -> Any:
    return x


_f = f


def test_a_result_that_is_no_array() -> None:
    with pytest.raises(TypeError, match="returns 'text' of type str"):
        propagate(lambda x: "text")(X)


def test_python_control_flow_on_an_interval() -> None:
    def branch(x: Any) -> Any:
        return x if x > 0 else -x

    with pytest.raises(corejax.errors.TracerBoolConversionError) as caught:
        propagate(branch)(X)
    text = str(caught.value)
    assert "tracing the function branch" in text and "for propagate" in text
    assert "Only bounds of the value are known, and they differ" in text
    assert float(propagate(branch)(Interval(np.float32(2), np.float32(3))).lower) == 2
    assert float(propagate(branch)(Interval(np.float32(-3), np.float32(-2))).lower) == 2
    slope = corejax.grad(lambda x: propagate(branch)(Interval(x, x + 1)).upper)(np.float32(-3))
    assert slope == pytest.approx(-1, rel=1e-6)
    with pytest.raises(corejax.errors.TracerBoolConversionError):
        corejax.jit(propagate(branch))(Interval(np.float32(2), np.float32(3)))


def test_a_tracer_that_escapes() -> None:
    kept = []
    propagate(lambda x: kept.append(x + 1) or x)(X)
    with pytest.raises(corejax.errors.UnexpectedTracerError, match="for propagate"):
        kept[0] + 1


def test_a_missing_rule_names_primitive_line_and_remedy() -> None:
    with isolated_plugins():
        primitive = Primitive("opaque", impl=lambda x: x, abstract_eval=lambda x: x)
        with pytest.raises(MissingRuleError) as caught:
            propagate(primitive.bind)(X)
        text = str(caught.value)
        assert "primitive 'opaque'" in text and "has no interval rule" in text and "test_errors.py" in text
        assert "@interval_rules.register(opaque_p)" in text and "a decomposition" in text
        assert caught.value.kind == "interval"


def test_a_rule_from_a_decomposition() -> None:
    explain = corejax.explain  # a plugin's, which the block leaves out
    with isolated_plugins():
        primitive = Primitive("gaussian", decomposition=lambda x: jnp.exp(-(x * x)))
        bounds = propagate(primitive.bind, rounding="nearest")(Interval(np.float32(-1), np.float32(2)))
        np.testing.assert_allclose([bounds.lower, bounds.upper], [np.exp(-4), 1], rtol=1e-6)
        [use] = explain(propagate(primitive.bind))(X).primitives[:1]
        assert use.name == "gaussian" and use.rule("interval").derived == "decomposition"


def test_a_rule_of_a_third_party() -> None:
    with isolated_plugins():
        primitive = Primitive("cube", impl=lambda x: x**3, abstract_eval=lambda x: x)

        @interval_rules.register(primitive, ulps=2)
        def rule(x: Bounds) -> Bounds:
            return Bounds(x.lower**3, x.upper**3)

        tight = propagate(primitive.bind, rounding="nearest")(Interval(np.float32(0.3), np.float32(0.7)))
        wide = propagate(primitive.bind)(Interval(np.float32(0.3), np.float32(0.7)))
        assert wide.lower < tight.lower < tight.upper < wide.upper


def test_a_rule_that_gives_the_wrong_thing() -> None:
    with isolated_plugins():
        primitive = Primitive("odd", impl=lambda x: x, abstract_eval=lambda x: x)
        interval_rules.register(primitive, lambda x: (x.lower, x.upper))
        with pytest.raises(TypeError, match="interval rule of primitive 'odd' gives Bounds, got"):
            propagate(primitive.bind)(X)
        interval_rules.unregister(primitive)
        interval_rules.register(primitive, lambda x: Bounds(x.lower, jnp.stack([x.upper, x.upper])))
        with pytest.raises(TypeError, match=r"rule of primitive 'odd': the upper bound is f32\[2\], the primitive"):
            propagate(primitive.bind)(X)


def test_what_has_no_bounds() -> None:
    with pytest.raises(TypeError, match="complex numbers have no order"):
        propagate(lambda x: x.astype("complex64"))(X)
    with pytest.raises(TypeError, match=r"'xor' has an interval rule for bool operands only, got int32\[\]"):
        propagate(lambda x: x ^ 3)(Interval(np.int32(0), np.int32(5)))
    with pytest.raises(MissingRuleError, match="primitive 'complex'"):
        propagate(lambda x: lax.complex(x, x))(X)


def test_effects_are_not_run_for_branches_that_are_only_possible() -> None:
    cond = lax.cond  # in an isolated registry no plugin exports it
    with isolated_plugins():
        noisy = Primitive(
            "noisy", impl=lambda x: x, abstract_eval=lambda x: x, effects=("print",), decomposition=lambda x: x
        )
        interval_rules.register(noisy, lambda x: x)

        def fun(x: Any) -> Any:
            return cond(x > 0.5, noisy.bind, lambda y: y, x)

        with pytest.raises(NotImplementedError, match=r"a branch has effects \(print\)"):
            propagate(fun)(X)
        assert float(propagate(fun)(Interval(np.float32(2), np.float32(2))).lower) == 2
