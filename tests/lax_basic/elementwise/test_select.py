"""select_n, select and clamp: values, derivatives, batching, compiled, errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import corejax
from corejax_lax_basic import lax
from corejax_lax_basic.elementwise.select import clamp, select_n
from tests.lax_basic.support import (
    assert_same,
    check_derivatives,
    check_vmap,
    compiled,
    dtypes_of,
    few_dtypes,
    jax,
    sample,
)

__all__ = ["jax"]

# -- select_n ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", dtypes_of("biufc"), ids=str)
def test_boolean_select(dtype: Any) -> None:
    x, y = sample(dtype, (2, 3)), sample(dtype, (2, 3), seed=1)
    which = sample(bool, (2, 3), seed=2)
    assert_same(select_n(which, x, y), np.where(which, y, x))
    assert_same(select_n(np.bool_(True), x, y), y)
    assert_same(select_n(which, x[0, 0], y), np.where(which, y, x[0, 0]))
    assert_same(select_n(which, x[0, 0], y[0, 0]), np.where(which, y[0, 0], x[0, 0]))
    assert_same(select_n(which[:0], x[:0], y[:0]), x[:0])
    assert_same(lax.select(which, x, y), np.where(which, x, y))


@pytest.mark.parametrize("dtype", dtypes_of("biufc"), ids=str)
def test_boolean_select_of_many(dtype: Any) -> None:
    """Which is done by bits: each case keeps its own, those of NaN too."""
    x, y = (np.resize(sample(dtype, (60,), seed=seed), (60, 90)) for seed in range(2))
    which = sample(bool, (60, 90), seed=2)
    for on_false, on_true in ((x, y), (x[0, 0], y), (x, y[0, 0]), (x[0, 0], y[0, 0]), (x[::-1], y.T.reshape(60, 90))):
        got = np.asarray(select_n(which, on_false, on_true))
        assert got.tobytes() == np.where(which, on_true, on_false).tobytes()
    turned = np.asarray(select_n(which.T, x.T, y.T))
    assert turned.tobytes() == np.where(which, y, x).T.tobytes()


def test_indices_outside_count_as_the_nearest(jax: Any) -> None:
    which = np.array([-5, -1, 0, 1, 2, 3, 100], np.int32)
    cases = [np.full(7, float(i)) for i in range(3)]
    expected = jax.lax.select_n(which, *cases)
    assert_same(select_n(which, *cases), expected)
    assert_same(compiled(select_n)(which, *cases), expected)
    assert_same(select_n(2, *cases), cases[2])


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_compiled_agrees_with_eager(count: int, shape: tuple[int, ...]) -> None:
    cases = [sample(np.float32, (3,), seed=i) for i in range(count)]
    which = np.asarray(np.random.default_rng(0).integers(-1, count + 1, shape), np.int32)
    assert_same(compiled(select_n)(which, *cases), select_n(which, *cases))
    if count <= 2:
        mask = np.asarray(which > 0)
        assert_same(compiled(select_n)(mask, *cases), select_n(mask, *cases))


def test_select_derivatives(jax: Any) -> None:
    x, y, z = (sample(np.float64, (4,), seed=i) for i in range(3))
    mask, which = np.array([True, False, True, True]), np.array([0, 2, 1, 2], np.int32)
    check_derivatives(jax, lambda x, y: select_n(mask, x, y), lambda x, y: jax.lax.select_n(mask, x, y), x, y)
    check_derivatives(jax, lambda *c: select_n(which, *c), lambda *c: jax.lax.select_n(which, *c), x, y, z)
    # one case constant, and a scalar case
    check_derivatives(jax, lambda x: select_n(mask, x, y), lambda x: jax.lax.select_n(mask, x, y), x)
    check_derivatives(
        jax,
        lambda s, y: select_n(mask, s, y),
        lambda s, y: jax.lax.select_n(mask, jax.numpy.broadcast_to(s, (4,)), y),
        x[0],
        y,
    )


def test_scalar_case_beside_a_constant_array() -> None:
    """The tangent of the result has its shape, though the moving case is a scalar."""
    y = np.ones(3)
    out, tangent = corejax.jvp(lambda s: select_n(np.bool_(False), s, y), (np.float64(2),), (np.float64(1),))
    assert_same(out, np.full(3, 2.0))
    assert_same(tangent, np.ones(3))


def test_select_vmap() -> None:
    for shapes in [((2,), (2,), (2,)), ((), (2,), (2,)), ((), (), ()), ((2,), (), (2,))]:
        check_vmap(select_n, *shapes, dtypes=(bool, np.float32, np.float32))
    check_vmap(select_n, (), (2,), (2,), dtypes=(np.int32, np.float32, np.float32))


def test_select_weak_types() -> None:
    assert select_n(True, 1, 2).weak_type
    assert select_n(True, 1.0, np.float16(2)).dtype == np.float16
    assert not select_n(True, 1.0, np.float16(2)).weak_type


SELECT_ERRORS = [
    ((np.float32(1), 1.0, 2.0), "select_n: `which` has to be bool or int32, got float32"),
    ((np.bool_(1), 1.0, 2.0, 3.0), "a boolean `which` chooses between two cases, got 3"),
    ((np.bool_(1),), "takes at least 2 operands, got 1"),
    ((np.bool_(1), np.ones(2), np.ones(3)), r"select_n: operands have shapes \(2,\) \(second\) and \(3,\) \(third\)"),
    ((np.ones(3, bool), np.ones(2), np.ones(2)), r"select_n: operands have shapes \(3,\) \(first\) and \(2,\)"),
    ((np.bool_(1), np.float32(1), np.int32(1)), r"got float32 \(second\) and int32 \(third\)"),
]


@pytest.mark.parametrize(("operands", "message"), SELECT_ERRORS)
def test_select_errors(operands: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        select_n(*operands)


# -- clamp -------------------------------------------------------------------------------------------------------


def test_clamp_values() -> None:
    for dtype in dtypes_of("iuf"):
        low, x, high = (np.array(v, dtype) for v in (2, [0, 2, 3, 5, 9], 5))
        for bounds in [(low, high), (np.full(5, low), np.full(5, high))]:
            assert_same(clamp(bounds[0], x, bounds[1]), np.minimum(np.maximum(x, low), high))
    for dtype in few_dtypes("iuf"):
        x = np.array([0, 2, 3, 5, 9], dtype)
        low, high = dtype.type(2), dtype.type(5)
        assert_same(compiled(clamp)(low, x, high), clamp(low, x, high))
    assert_same(clamp(np.bool_(True), np.array([True, False]), np.bool_(True)), np.array([True, True]))


def test_clamp_propagates_nan(jax: Any) -> None:
    values = [np.nan, 0.0, 1.0, 2.0]
    low, x, high = (np.array(v) for v in zip(*itertools.product(values, repeat=3), strict=True))
    assert_same(clamp(low, x, high), jax.lax.clamp(low, x, high))
    assert_same(compiled(clamp)(low, x, high), jax.lax.clamp(low, x, high))


def test_clamp_scalars_yield() -> None:
    assert_same(clamp(0, np.array([-1.0, 0.5, 7.0], np.float32), 1), np.array([0, 0.5, 1], np.float32))
    assert_same(clamp(0, np.array([-1, 5, 7], np.int8), 6), np.array([0, 5, 6], np.int8))


def test_clamp_derivatives(jax: Any) -> None:
    x = np.array([-2.0, -1.0, 0.3, 0.7, 2.0])
    low, high = np.float64(-1), np.float64(1)
    check_derivatives(jax, lambda x: clamp(low, x, high), lambda x: jax.lax.clamp(low, x, high), x)
    lows, highs = np.full(5, -0.5), np.full(5, 0.5)
    check_derivatives(jax, clamp, jax.lax.clamp, lows, x, highs)

    def with_scalars(low: Any, x: Any, high: Any) -> Any:
        return jax.lax.clamp(jax.numpy.broadcast_to(low, (5,)), x, jax.numpy.broadcast_to(high, (5,)))

    check_derivatives(jax, clamp, with_scalars, low, x, high)


def test_upper_bound_wins_where_bounds_cross() -> None:
    assert float(clamp(3.0, 0.0, 1.0)) == 1.0
    slopes = corejax.grad(clamp, argnums=(0, 1, 2))(3.0, 0.0, 1.0)
    assert [float(s) for s in slopes] == [0.0, 0.0, 1.0]


def test_clamp_vmap() -> None:
    for shapes in [((), (2,), ()), ((2,), (2,), (2,)), ((), (), ())]:
        check_vmap(clamp, *shapes)


def test_clamp_errors() -> None:
    message = r"clamp: operands have shapes \(2,\) \(first\) and \(3,\) \(second\).*corejax.numpy.clip"
    with pytest.raises(TypeError, match=message):
        clamp(np.ones(2), np.ones(3), 1.0)
    with pytest.raises(TypeError, match="clamp does not accept dtype complex64"):
        clamp(np.complex64(1), np.complex64(1), np.complex64(1))
