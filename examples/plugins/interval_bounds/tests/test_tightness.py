"""Bounds that are as tight as they can be, with rounding to nearest; and what outward rounding adds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from boxes import box, in_double, points

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.interval_bounds import Interval, propagate

LOWER = np.array([-2.0, -0.5, 0.25, 1.0], np.float32)
UPPER = np.array([-1.0, 0.5, 0.75, 3.0], np.float32)


def nearest(fun: Any, *args: Any) -> Any:
    """Bounds without widening."""
    return propagate(fun, rounding="nearest")(*args)


def assert_bounds(interval: Interval, lower: Any, upper: Any, rtol: float = 0) -> None:
    np.testing.assert_allclose(np.asarray(interval.lower), lower, rtol=rtol)
    np.testing.assert_allclose(np.asarray(interval.upper), upper, rtol=rtol)


@pytest.mark.parametrize("name", ["exp", "expm1", "tanh", "logistic", "floor", "ceil", "sign"])
def test_increasing_functions_are_their_values_at_the_ends(name: str) -> None:
    fun = getattr(lax, name)
    assert_bounds(nearest(fun, Interval(LOWER, UPPER)), fun(LOWER), fun(UPPER))


def test_a_network_of_increasing_functions_is_exact() -> None:
    weights = np.abs(np.random.default_rng(0).normal(size=(4, 3))).astype(np.float32)

    def fun(x: Any) -> Any:
        return jnp.tanh(x) @ weights + 1

    assert_bounds(nearest(fun, Interval(LOWER, UPPER)), fun(LOWER), fun(UPPER), rtol=1e-6)


def test_a_known_matrix_reaches_the_corners() -> None:
    weights = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    bounds = nearest(lambda x: x @ weights, Interval(LOWER, UPPER))
    corners = np.stack([np.where([i >> k & 1 for k in range(4)], UPPER, LOWER) @ weights for i in range(16)])
    assert_bounds(bounds, corners.min(0), corners.max(0), rtol=1e-5)


def test_two_open_matrices_reach_the_corners_of_every_product() -> None:
    rng = np.random.default_rng(1)
    x, y = box(rng, (2, 3), -2, 2), box(rng, (3, 2), -2, 2)
    products = [np.asarray(a)[:, :, None] * np.asarray(b)[None] for a in (x.lower, x.upper) for b in (y.lower, y.upper)]
    low, high = np.min(products, axis=0).sum(1), np.max(products, axis=0).sum(1)
    assert_bounds(nearest(jnp.matmul, x, y), low, high, rtol=1e-5)


@pytest.mark.parametrize(
    ("fun", "interval", "lower", "upper"),
    [
        (lambda x: x * x, (-1.0, 2.0), 0, 4),
        (lambda x: x**2, (-3.0, 2.0), 0, 9),
        (lambda x: x**3, (-3.0, 2.0), -27, 8),
        (lambda x: x**-2, (-2.0, 1.0), 0.25, np.inf),
        (lambda x: x**-1, (2.0, 4.0), 0.25, 0.5),
        (lambda x: 1 / x, (-1.0, 1.0), -np.inf, np.inf),
        (lambda x: 1 / x, (0.0, 1.0), -np.inf, np.inf),
        (lambda x: x / x, (1.0, 2.0), 0.5, 2),
        (lambda x: x - x, (1.0, 2.0), -1, 1),
        (abs, (-3.0, 2.0), 0, 3),
        (abs, (-3.0, -2.0), 2, 3),
        (jnp.sin, (0.0, 3.0), 0, 1),
        (jnp.sin, (0.0, 6.5), -1, 1),
        (jnp.sin, (4.65, 4.8), -1, np.sin(4.8)),
        (jnp.sin, (4.75, 4.8), np.sin(4.75), np.sin(4.8)),
        (jnp.sin, (1.5, 1.6), np.sin(1.5), 1),
        (jnp.cos, (6.25, 6.3), np.cos(6.25), 1),
        (jnp.sin, (-np.inf, np.inf), -1, 1),
        (jnp.cos, (3.0, 4.0), -1, np.cos(4.0)),
        (jnp.cos, (1.0, 2.0), np.cos(2.0), np.cos(1.0)),
        (jnp.tan, (1.0, 2.0), -np.inf, np.inf),
        (jnp.log, (0.0, 1.0), -np.inf, 0),
        (jnp.log, (-1.0, 1.0), np.nan, np.nan),
        (jnp.sqrt, (4.0, 9.0), 2, 3),
        (lax.rsqrt, (0.0, 4.0), 0.5, np.inf),
        (lambda x: jnp.power(2.0, x), (1.0, 3.0), 2, 8),
        (lambda x: jnp.power(x, 0.5), (-1.0, 3.0), np.nan, np.nan),
        (lambda x: x % 2.0, (5.0, 9.0), 0, 2),
        (lambda x: jnp.where(x > 0, x, 10.0), (-1.0, 2.0), -1, 10),
        (lambda x: jnp.where(x > 0, x, 10.0), (1.0, 2.0), 1, 2),
        (lambda x: jnp.maximum(x, 0.0), (-1.0, 2.0), 0, 2),
    ],
)
def test_known_answers(fun: Any, interval: tuple[float, float], lower: float, upper: float) -> None:
    assert_bounds(nearest(fun, Interval(*map(np.float32, interval))), lower, upper, rtol=1e-6)


@pytest.mark.parametrize(
    ("fun", "certain", "possible"),
    [
        (lambda x: x > 0, [False, False, True, True], [False, True, True, True]),
        (lambda x: x >= -1, [False, True, True, True], [True, True, True, True]),
        (lambda x: x == 0, [False] * 4, [False, True, False, False]),
        (lambda x: x != 0, [True, False, True, True], [True, True, True, True]),
        (lambda x: jnp.sqrt(x) < 9, [False, False, True, True], [True, True, True, True]),
        (lambda x: lax.is_finite(1 / x), [True, False, True, True], [True] * 4),
    ],
)
def test_truth_has_three_values(fun: Any, certain: list[bool], possible: list[bool]) -> None:
    assert_bounds(nearest(fun, Interval(LOWER, UPPER)), certain, possible)


def test_an_argument_that_is_no_interval_makes_no_interval_of_what_depends_on_it_alone() -> None:
    bounds = propagate(lambda x, y: (x + 1, jnp.exp(y)))(Interval(LOWER, UPPER), UPPER)
    np.testing.assert_array_equal(bounds[1].lower, jnp.exp(UPPER))
    np.testing.assert_array_equal(bounds[1].upper, jnp.exp(UPPER))


def test_a_scan_is_its_program_written_out() -> None:
    xs = np.linspace(-1, 1, 6, dtype=np.float32)

    def step(carry: Any, x: Any) -> Any:
        carry = jnp.tanh(carry * x + 0.5)
        return carry, carry * 2

    def written_out(carry: Any) -> Any:
        ys = []
        for x in xs:
            carry, y = step(carry, x)
            ys.append(y)
        return carry, jnp.stack(ys)

    scanned = nearest(lambda c: lax.scan(step, c, xs), Interval(np.float32(-1), np.float32(2)))
    expected = nearest(written_out, Interval(np.float32(-1), np.float32(2)))
    for got, want in zip(corejax.tree.leaves(scanned), corejax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


# -- outward rounding --------------------------------------------------------------------------------------------


def _programs() -> list[Any]:
    weights = np.random.default_rng(5).normal(size=(64, 64)).astype(np.float32)
    return [lambda x: x * x[::-1] + 0.1, lambda x: jnp.exp(x) / 3, lambda x: (x @ weights) / 7, jnp.sum]


@pytest.mark.parametrize("fun", _programs())
def test_without_widening_the_exact_result_may_be_outside(fun: Any) -> None:
    rng = np.random.default_rng(2)
    outside = {"nearest": 0, "outward": 0}
    for _ in range(30):
        x = rng.normal(size=64).astype(np.float32)
        operand = Interval(x, x.copy())  # two arrays: to be propagated, although there is one number between them
        exact = np.asarray(in_double(fun, [x]))
        for rounding in outside:
            bounds = propagate(fun, rounding=rounding)(operand)
            low, high = (np.asarray(b).astype(np.float64) for b in (bounds.lower, bounds.upper))
            outside[rounding] += int(np.sum((exact < low) | (exact > high)))
    assert outside["nearest"] > 0
    assert outside["outward"] == 0


def test_widening_is_a_matter_of_a_few_ulp() -> None:
    operand = Interval(LOWER, UPPER)
    for fun in (lambda x: x + 1, lambda x: x * 3, jnp.exp, jnp.tanh, jnp.sin):
        tight, wide = nearest(fun, operand), propagate(fun)(operand)
        assert np.all(np.asarray(wide.lower) <= np.asarray(tight.lower))
        assert np.all(np.asarray(wide.upper) >= np.asarray(tight.upper))
        np.testing.assert_allclose(wide.lower, tight.lower, rtol=2e-6, atol=1e-6)
        np.testing.assert_allclose(wide.upper, tight.upper, rtol=2e-6, atol=1e-6)


def test_a_conversion_to_fewer_digits_contains_the_number_that_was_rounded() -> None:
    x = np.linspace(0.1, 0.9, 7, dtype=np.float32)
    bounds = propagate(lambda x: x.astype("float16"))(Interval(x, x.copy()))
    assert bounds.dtype == np.float16
    assert np.all(np.asarray(bounds.lower).astype(np.float32) < x)
    assert np.all(x < np.asarray(bounds.upper).astype(np.float32))


def test_signs_and_zeros_stay() -> None:
    operand = Interval(np.zeros(100, np.float32), np.ones(100, np.float32))
    total = propagate(jnp.sum)(operand)
    assert np.asarray(total.lower) == 0 and np.asarray(total.upper) > 100
    norm = propagate(lambda x: jnp.sqrt(jnp.sum(x * x)))(Interval(-np.ones(9, np.float32), np.ones(9, np.float32)))
    assert np.asarray(norm.lower) == 0 and not np.isnan(np.asarray(norm.upper))


def test_overflow_leaves_a_finite_lower_bound() -> None:
    bounds = propagate(jnp.exp)(Interval(np.float32(80), np.float32(200)))
    assert np.isfinite(bounds.lower) and np.isinf(bounds.upper)
    bounds = propagate(jnp.exp)(Interval(np.float32(100), np.float32(200)))
    assert np.isfinite(bounds.lower) and np.isinf(bounds.upper)


def test_points_of_a_box_stay_inside_through_a_deep_program() -> None:
    rng = np.random.default_rng(8)
    layers = [rng.normal(size=(6, 6)).astype(np.float32) / 3 for _ in range(6)]

    def fun(x: Any) -> Any:
        for weights in layers:
            x = jnp.tanh(x @ weights) + jnp.sin(x)
        return x

    operand = Interval.around(rng.normal(size=6).astype(np.float32), np.float32(0.01))
    bounds = propagate(fun)(operand)
    assert np.max(np.asarray(bounds.width)) < 10
    for x in points(rng, operand, 30):
        assert np.all(bounds.contains(fun(x)))
