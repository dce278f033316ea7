"""Shifts, counts of bits and upper halves of products, against JAX and Python's integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import dtypes
from tests.lax_basic.support import assert_same, check_vmap, dtypes_of, extremes

INTEGERS = [*dtypes_of("iu"), *map(dtypes.dtype, ("int2", "uint2", "int4", "uint4"))]
SHIFTS = ("shift_left", "shift_right_logical", "shift_right_arithmetic")


def all_of(dtype: Any) -> np.ndarray:
    info = dtypes.iinfo(dtype)
    if info.bits <= 4:
        return np.arange(int(info.min), int(info.max) + 1).astype(dtype)
    return np.concatenate([extremes(dtype), np.array([5, 7, info.bits - 1, info.bits, 100], dtype)])


def unsigned(x: Any, bits: int) -> int:
    return int(x) % 2**bits


def wrapped(value: int, dtype: Any) -> int:
    bits, low = int(dtypes.iinfo(dtype).bits), int(dtypes.iinfo(dtype).min)
    return (value - low) % 2**bits + low


def shifted(name: str, x: Any, y: Any, dtype: Any) -> int:
    """By the specification of StableHLO: the number of bits is unsigned, and may be too large."""
    bits = int(dtypes.iinfo(dtype).bits)
    count = min(unsigned(y, bits), bits)
    if name == "shift_right_arithmetic":
        return wrapped(wrapped(unsigned(x, bits), np.dtype(f"int{bits}") if bits >= 8 else dtype) >> count, dtype)
    value = unsigned(x, bits)
    return wrapped(value << count if name == "shift_left" else value >> count, dtype)


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.name)
def test_every_pair(dtype: Any) -> None:
    values = all_of(dtype)
    x, y = np.repeat(values, values.size), np.tile(values, values.size)
    bits = int(dtypes.iinfo(dtype).bits)
    pairs = [(int(a), int(b)) for a, b in zip(x, y, strict=True)]
    for name in SHIFTS if bits >= 8 else SHIFTS[:2]:
        expected = np.array([shifted(name, a, b, dtype) for a, b in pairs], object)
        np.testing.assert_array_equal(np.asarray(getattr(lax, name)(x, y)).astype(object), expected)
    high = np.array([wrapped((a * b) >> bits, dtype) for a, b in pairs], object)
    np.testing.assert_array_equal(np.asarray(lax.mulhi(x, y)).astype(object), high)
    counts = [bin(unsigned(v, bits)).count("1") for v in values]
    zeros = [bits - unsigned(v, bits).bit_length() for v in values]
    assert_same(lax.population_count(values), np.array(counts).astype(dtype))
    assert_same(lax.clz(values), np.array(zeros).astype(dtype))


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_mulhi_of_64_bits(a: int, b: int) -> None:
    assert int(np.asarray(lax.mulhi(np.int64(a), np.int64(b)))) == (a * b) >> 64
    a, b = a % 2**64, b % 2**64
    assert int(np.asarray(lax.mulhi(np.uint64(a), np.uint64(b)))) == (a * b) >> 64


def test_vmap_scalars_and_weak_types() -> None:
    for name in (*SHIFTS, "mulhi"):
        check_vmap(getattr(lax, name), (2,), (), dtypes=np.int32)
        assert getattr(lax, name)(jnp.arange(3, dtype="uint8"), 1).dtype == np.uint8
    assert lax.shift_left(3, 2).weak_type
    assert lax.population_count(jnp.asarray(7)).weak_type


def test_programs_and_derivatives() -> None:
    """Bits have no derivatives: what depends on them alone counts as constant."""

    def f(x: Any) -> Any:
        return x * lax.convert_element_type(lax.population_count(lax.bitcast_convert_type(x, "int32")), "float32")

    assert corejax.jit(corejax.grad(f))(3.0) == corejax.grad(f)(3.0) == bin(np.float32(3).view(np.int32)).count("1")


def test_errors() -> None:
    with pytest.raises(TypeError, match=r"shift_left does not accept dtype float32.*expects an integer dtype"):
        lax.shift_left(jnp.ones(2), jnp.ones(2))
    with pytest.raises(TypeError, match="clz does not accept dtype bool"):
        lax.clz(jnp.ones(2, bool))
    with pytest.raises(TypeError, match=r"shift_right_logical requires .* got int32.*numpy.right_shift"):
        lax.shift_right_logical(jnp.arange(2), jnp.arange(2, dtype="uint8"))
    with pytest.raises(TypeError, match=r"mulhi: operands have shapes \(2,\) .* and \(3,\)"):
        lax.mulhi(jnp.arange(2), jnp.arange(3))
    with pytest.raises(OverflowError):
        lax.shift_left(jnp.arange(2, dtype="uint8"), -1)
