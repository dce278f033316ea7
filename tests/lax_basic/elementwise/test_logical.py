"""Bitwise operations against NumPy: every dtype, batching, compiled, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
from corejax_lax_basic import lax
from corejax_lax_basic.lax import mul
from tests.lax_basic.support import assert_same, check_vmap, compiled, dtypes_of, extremes, few_dtypes, sample

BINARY = ["bitwise_and", "bitwise_or", "bitwise_xor"]


@pytest.mark.parametrize("name", BINARY)
def test_binary_values(name: str) -> None:
    function, reference = getattr(lax, name), getattr(np, name)
    for dtype in dtypes_of("biu"):
        x, y = sample(dtype, (20,)), sample(dtype, (20,), seed=1)
        assert_same(function(x, y), reference(x, y))
        assert_same(function(x, y[0]), reference(x, y[0]))
        assert_same(function(x[:0], y[:0]), x[:0])
    check_vmap(function, (2,), (2,), dtypes=bool)
    check_vmap(function, (), (2,), dtypes=np.int32)


def test_not() -> None:
    for dtype in dtypes_of("biu"):
        x = extremes(dtype)
        assert_same(lax.bitwise_not(x), ~x)
    check_vmap(lax.bitwise_not, (2,), dtypes=np.int8)


def test_compiled_agrees_with_eager() -> None:
    def everything(x: Any, y: Any) -> list[Any]:
        return [*(getattr(lax, name)(x, y) for name in BINARY), lax.bitwise_not(x)]

    for dtype in few_dtypes("biu"):
        x, y = sample(dtype, (20,)), sample(dtype, (20,), seed=1)
        for got, expected in zip(compiled(everything)(x, y), everything(x, y), strict=True):
            assert_same(got, expected)


def test_scalars_yield() -> None:
    got = lax.bitwise_and(np.arange(4, dtype=np.uint8), 1)
    assert_same(got, np.array([0, 1, 0, 1], np.uint8))
    assert lax.bitwise_or(1, 2).weak_type


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.float32(1), np.float32(1), r"and does not accept dtype float32 \(first operand\); expects a boolean or"),
        (np.int32(1), np.int8(1), "and requires .* same dtypes, got int32 .* and int8 .*corejax.numpy.bitwise_and"),
        (np.ones(2, bool), np.ones(3, bool), r"and: operands have shapes \(2,\) .* and \(3,\)"),
        (np.ones(2, bool), 1, "and requires arguments to have the same dtypes, got bool"),
    ],
)
def test_errors(x: Any, y: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        lax.bitwise_and(x, y)


def test_inside_a_differentiated_function() -> None:
    def function(x: Any) -> Any:
        bits = lax.bitwise_xor(np.int32(3), np.int32(1))
        return mul(x, float(np.asarray(bits)))

    assert float(corejax.grad(function)(1.0)) == 2.0
