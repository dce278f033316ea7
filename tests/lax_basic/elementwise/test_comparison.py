"""Comparisons against NumPy and jax: values of every dtype, NaN, promotion, batching, compiled, no derivative."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import corejax
from corejax_lax_basic import lax
from corejax_lax_basic.lax import mul
from tests.lax_basic.support import assert_same, check_vmap, compiled, dtypes_of, extremes, few_dtypes, kind_of, sample

ROWS = {
    "eq": (np.equal, "biufc"),
    "ne": (np.not_equal, "biufc"),
    "lt": (np.less, "biuf"),
    "le": (np.less_equal, "biuf"),
    "gt": (np.greater, "biuf"),
    "ge": (np.greater_equal, "biuf"),
}
each_row = pytest.mark.parametrize("name", ROWS)


def every_pair(dtype: np.dtype[Any]) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of extreme values."""
    values = extremes(dtype)
    x, y = zip(*itertools.product(values, values), strict=True)
    return np.array(x, dtype), np.array(y, dtype)


@each_row
def test_values_of_every_dtype(name: str) -> None:
    reference, kinds = ROWS[name]
    function = getattr(lax, name)
    for dtype in dtypes_of(kinds):
        x, y = every_pair(dtype)
        with np.errstate(invalid="ignore"):
            assert_same(function(x, y), reference(x, y))
            assert_same(function(x, y[3]), reference(x, y[3]))
        assert function(x[:0], y[:0]).shape == (0,)


def test_compiled_agrees_with_eager() -> None:
    for dtype in few_dtypes("biufc"):
        functions = [getattr(lax, name) for name, (_, kinds) in ROWS.items() if kind_of(dtype) in kinds]
        x, y = every_pair(dtype)
        got = compiled(lambda x, y, fs=functions: [f(x, y) for f in fs])(x, y)
        for function, value in zip(functions, got, strict=True):
            assert_same(value, np.asarray(function(x, y)))


@each_row
def test_vmap(name: str) -> None:
    for shapes in [((2,), (2,)), ((), (2,)), ((), ())]:
        check_vmap(getattr(lax, name), *shapes, dtypes=np.int32)


@each_row
def test_derivative_is_zero(name: str) -> None:
    x = np.float32(1.5)
    out, tangent = corejax.jvp(lambda x: getattr(lax, name)(x, 1.0), (x,), (x,))
    assert out.dtype == bool and np.asarray(tangent).dtype == corejax.float0
    assert float(corejax.grad(lambda x: mul(x, 1.0 if getattr(lax, name)(x, 1.5) else 2.0))(x)) in (1.0, 2.0)


def test_result_is_never_weak() -> None:
    assert not lax.lt(1, 2).weak_type
    assert not lax.eq(1.0, 2.0).weak_type


def test_scalars_yield() -> None:
    assert_same(lax.lt(np.arange(3, dtype=np.uint8), 2), np.array([True, True, False]))
    assert_same(lax.ge(1, np.arange(3, dtype=np.float32)), np.array([True, True, False]))
    jaxpr = corejax.make_jaxpr(lambda x: lax.gt(x, 1))(sample(np.float32, (3,)))
    assert "gt a 1.0:f32[]" in str(jaxpr)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (
            np.complex64(1),
            np.complex64(1),
            "lt does not accept dtype complex64 .* a boolean, integer or floating.* abs",
        ),
        (np.float32(1), np.int32(1), "lt requires .* got float32 .* and int32 .*corejax.numpy.less"),
        (np.ones(2), np.ones(3), r"lt: operands have shapes \(2,\) \(first\) and \(3,\) \(second\)"),
        (np.ones(2), "text", "not an array"),
    ],
)
def test_errors(x: Any, y: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        lax.lt(x, y)
