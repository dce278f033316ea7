"""`ragged_dot_general` in its three modes, and `scaled_dot`: against jax and against loops over groups."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
from corejax import lax
from tests.lax_basic.structural_checks import assert_same, data

SIZES = np.array([2, 0, 3], np.int32)  # of 6 rows: the last one belongs to no group
TWO = np.stack([SIZES, SIZES[::-1]])


def numbers(api: Any, contract: Any, batch: Any, ragged: int, group: Any = ()) -> Any:
    return api.RaggedDotDimensionNumbers((contract, batch), [ragged], group)


CASES = {
    "rows": (lambda m: numbers(m, ((1,), (1,)), ((), ()), 0, (0,)), (6, 4), (3, 4, 5), SIZES),
    "rows, group last": (lambda m: numbers(m, ((1,), (0,)), ((), ()), 0, (2,)), (6, 4), (4, 5, 3), SIZES),
    "rows in a batch": (
        lambda m: numbers(m, ((2,), (2,)), ((0,), (1,)), 1, (0,)), (2, 6, 4), (3, 2, 4, 5), TWO
    ),
    "rows behind a free axis": (
        lambda m: numbers(m, ((2,), (1,)), ((), ()), 1, (0,)), (2, 6, 4), (3, 4, 5), TWO
    ),
    "contracted": (lambda m: numbers(m, ((1,), (0,)), ((), ()), 1), (4, 6), (6, 5), SIZES),
    "contracted in a batch": (lambda m: numbers(m, ((1,), (1,)), ((0,), (0,)), 1), (2, 6, 4), (2, 6, 5), SIZES),
    "batch": (lambda m: numbers(m, ((2,), (1,)), ((0,), (0,)), 0), (6, 4, 2), (6, 2, 5), SIZES),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_values_and_derivatives_are_jaxs(case: Any) -> None:
    jax = pytest.importorskip("jax")
    make, a, b, sizes = case
    x, y = data(*a), data(*b, seed=1)
    expected = jax.jit(lambda x, y: jax.lax.ragged_dot_general(x, y, sizes, make(jax.lax)))(x, y)
    f = lambda x, y, sizes: lax.ragged_dot_general(x, y, sizes, make(lax))
    assert_same(f(x, y, sizes), expected)
    assert_same(corejax.jit(f)(x, y, sizes), expected)
    batched = corejax.jit(corejax.vmap(f, in_axes=(None, 0, None)))(x, np.stack([y, 2 * y]), sizes)
    assert_same(batched, np.stack([expected, 2 * np.asarray(expected)]))
    # It is bilinear, so that its derivative by one operand along itself is the product again.
    moved = corejax.jvp(lambda x: f(x, y, sizes), (x,), (x,))[1]
    assert_same(moved, expected)
    ct = data(*np.shape(expected), seed=3)
    bars = corejax.jit(lambda x, y: corejax.vjp(lambda x, y: f(x, y, sizes), x, y)[1](ct))(x, y)
    for bar, operand in zip(bars, (x, y), strict=True):
        assert_same((np.asarray(bar) * operand).sum(), (np.asarray(expected) * ct).sum().astype("f4"), 1e-3)


def test_ragged_dot_is_a_loop_over_groups() -> None:
    x, y = data(6, 4), data(3, 4, 5, seed=1)
    rows = np.repeat(np.arange(4), [2, 0, 3, 1])
    expected = np.stack([row @ y[g] if g < 3 else np.zeros(5, "f4") for row, g in zip(x, rows, strict=True)])
    assert_same(lax.ragged_dot(x, y, SIZES), expected)
    assert_same(lax.ragged_dot(x, y, SIZES.astype(np.uint8), precision="highest"), expected)
    assert lax.ragged_dot(x.astype("i1"), y.astype("i1"), SIZES, preferred_element_type=np.int32).dtype == np.int32


ROWS = CASES["rows"][0]
ERRORS = [
    (lambda x, y: lax.ragged_dot(x, y, SIZES[:2]), r"be 2, got 3: .* rhs f32\[3,4,5\]"),
    (lambda x, y: lax.ragged_dot(x, y, SIZES * 1.0), "group_sizes must be integers"),
    (lambda x, y: lax.ragged_dot(x, y[:, :3], SIZES), "contracting axes"),
    (lambda x, y: lax.ragged_dot(x, y, np.stack([SIZES, SIZES])), r"have shape \(3,\)"),
    (
        lambda x, y: lax.ragged_dot_general(x, y, SIZES, numbers(lax, ((1,), (1,)), ((), ()), 2, (0,))),
        "one axis of lhs",
    ),
    (
        lambda x, y: lax.ragged_dot_general(x, y, SIZES, numbers(lax, ((1,), (1,)), ((), ()), 0)),
        "exactly one rhs",
    ),
    (
        lambda x, y: lax.ragged_dot_general(x, y, SIZES, numbers(lax, ((1,), (1,)), ((), ()), 1, (0,))),
        "zero group dim",
    ),
    (
        lambda x, y: lax.ragged_dot_general(x, y, SIZES, numbers(lax, ((1,), (1,)), ((), ()), 0, (1,))),
        "distinct from",
    ),
]


@pytest.mark.parametrize(("f", "text"), ERRORS)
def test_errors(f: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        f(data(6, 4), data(3, 4, 5))
    with pytest.raises(NotImplementedError, match="group_offset"):
        lax.ragged_dot(data(6, 4), data(3, 4, 5), SIZES, group_offset=np.array([1]))


def test_scaled_dot_is_jaxs() -> None:
    jax = pytest.importorskip("jax")
    f8, e8 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu
    x, y = data(2, 3, 8).astype(f8), data(2, 8, 5, seed=1).astype(f8)
    scales = np.array([0.5, 2.0, 4.0, 1.0])
    x_scale = np.broadcast_to(scales[:2], (2, 3, 2)).astype(e8)
    y_scale = np.broadcast_to(scales[:4, None], (2, 4, 5)).astype(e8)
    for given in ({}, {"lhs_scale": x_scale, "rhs_scale": y_scale}, {"rhs_scale": y_scale}):
        for dtype in (None, np.float32):
            expected = jax.jit(partial(jax.lax.scaled_dot, preferred_element_type=dtype, **given))(x, y)
            f = partial(lax.scaled_dot, preferred_element_type=dtype, **given)
            assert_same(f(x, y), expected)
            assert_same(corejax.jit(f)(x, y), expected)
            assert_same(corejax.vmap(f, in_axes=(0, None))(np.stack([x, x]), y)[1], expected)
    with pytest.raises(TypeError, match="contracted axis 2 must have a scale for each block of at least 2 elements"):
        lax.scaled_dot(x, y, lhs_scale=np.ones(x.shape, e8))
    with pytest.raises(TypeError, match="axis 1 is not contracted"):
        lax.scaled_dot(x, y, lhs_scale=x_scale[:, :1])
    with pytest.raises(TypeError, match="at least two axes"):
        lax.scaled_dot(x[0, 0], y[0, 0])
