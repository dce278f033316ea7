"""Functions of integers: shifts, bits, common divisors, in every integer dtype."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corejax
import corejax.numpy as jnp
from tests.numpy_api.oracle import check, check_types

DTYPES = ["int8", "int16", "int32", "uint8", "uint16", "uint32"]


def extremes(dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.array([0, 1, 2, 7, 12, 18, 100, info.max, info.min, info.min + 1], dtype)


@pytest.mark.parametrize("dtype", [*DTYPES, "int64", "uint64"])
def test_every_dtype(dtype: str) -> None:
    x, y = (v.ravel() for v in np.meshgrid(extremes(dtype), extremes(dtype)))
    with np.errstate(all="ignore"):
        for name in ("gcd", "lcm"):
            ours = getattr(jnp, name)(x, y)
            assert ours.dtype == dtype
            np.testing.assert_array_equal(ours, getattr(np, name)(x, y))
            np.testing.assert_array_equal(corejax.jit(getattr(jnp, name))(x, y), ours)
        count = jnp.bitwise_count(extremes(dtype))
        assert count.dtype == np.uint8
        np.testing.assert_array_equal(count, np.bitwise_count(extremes(dtype)))
        for name in ("left_shift", "right_shift"):
            by = np.arange(np.iinfo(dtype).bits, dtype=dtype)
            for z in extremes(dtype):
                np.testing.assert_array_equal(getattr(jnp, name)(z, by), getattr(np, name)(z, by))


@given(st.lists(st.tuples(st.integers(-(2**31) + 1, 2**31 - 1), st.integers(-1000, 1000)), min_size=1, max_size=5))
def test_gcd(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, np.int32).T
    np.testing.assert_array_equal(jnp.gcd(x, y), np.gcd(x, y))


def test_types_and_shapes() -> None:
    for name in ("gcd", "lcm", "left_shift", "right_shift", "bitwise_left_shift"):
        check_types(lambda xp, x, n=name: getattr(xp, n)(x, 2), np.arange(3, dtype=np.int8))
        check_types(lambda xp, x, y, n=name: getattr(xp, n)(x, y), np.ones((2, 1), np.int8), np.ones(3, np.uint8))
        check_types(lambda xp, n=name: getattr(xp, n)(12, 2))
    check(lambda xp, x: xp.bitwise_count(x), np.zeros((0, 3), np.int32))
    check_types(lambda xp, x: xp.bitwise_count(x), np.ones(2, bool))
    check_types(lambda xp, x: xp.left_shift(x, x), np.ones(2, bool))


def test_transformed() -> None:
    x = np.array([12, 18, 0], np.int32)
    np.testing.assert_array_equal(corejax.vmap(lambda a: jnp.gcd(a, 8))(x), np.gcd(x, 8))
    np.testing.assert_array_equal(corejax.jit(jnp.lcm)(x, x + 3), np.lcm(x, x + 3))


def test_what_is_refused() -> None:
    for f in (jnp.gcd, jnp.lcm):
        with pytest.raises(ValueError, match=r"takes integers, got f32\[2\]"):
            f(jnp.ones(2), 2)
        with pytest.raises(ValueError, match="broadcast"):
            f(jnp.arange(2), jnp.arange(3))
    for f in (jnp.left_shift, jnp.right_shift):
        with pytest.raises(TypeError, match=r"shift takes integers, got"):
            f(jnp.ones(2), 2)
    with pytest.raises(TypeError, match="bitwise_count takes integers"):
        jnp.bitwise_count(1.0)
