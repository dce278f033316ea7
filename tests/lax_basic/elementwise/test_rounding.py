"""round and nextafter: every float format, against NumPy and JAX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import dtypes
from corejax.ir import parse_jaxpr, same_jaxpr
from tests.lax_basic.support import assert_same, check_vmap, dtypes_of, jax

__all__ = ["jax"]

HALFWAY = [-2.5, -1.5, -1.0, -0.5, -0.4, -0.0, 0.0, 0.4, 0.5, 1.0, 1.5, 2.5, 3.5]


def test_what_is_halfway(jax: Any) -> None:
    for dtype in dtypes_of("f"):
        x = np.array([*HALFWAY, 0.49999997, 200.5, np.inf, -np.inf, np.nan], dtype)
        for method in lax.RoundingMethod:
            expected = np.asarray(jax.lax.round(x, jax.lax.RoundingMethod(int(method))))
            got = np.asarray(lax.round(x, method))
            assert_same(got, expected)
            np.testing.assert_array_equal(np.signbit(got[:-1]), np.signbit(expected[:-1]))
    for name in ("float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3b11fnuz", "float4_e2m1fn"):
        x = np.array(HALFWAY).astype(dtypes.dtype(name))
        for method, expected in (
            (1, np.rint(x.astype(float))),
            (0, np.sign(x) * np.floor(np.abs(x.astype(float)) + 0.5)),
        ):
            np.testing.assert_array_equal(np.asarray(lax.round(x, method)).astype(float), expected.astype(float))


def test_the_method_is_a_param() -> None:
    program = corejax.make_jaxpr(lambda x: lax.round(x, 1))(0.5)
    assert "rounding_method=RoundingMethod.TO_NEAREST_EVEN" in str(program)
    assert same_jaxpr(parse_jaxpr(str(program)), program)
    assert corejax.grad(lambda x: lax.round(x) * x)(1.4) == 1.0
    check_vmap(lambda x: lax.round(x), (3,))
    assert lax.round(1.5).weak_type
    with pytest.raises(ValueError, match=r"round: `rounding_method` has to be .*TO_NEAREST_EVEN, got 7"):
        lax.round(1.5, 7)
    with pytest.raises(TypeError, match="round does not accept dtype int32"):
        lax.round(jnp.arange(3))


def test_next_numbers(jax: Any) -> None:
    for dtype in dtypes_of("f"):
        info = dtypes.finfo(dtype)
        values = np.array([0.0, -0.0, 1.0, -1.0, float(info.max), float(info.min), np.inf, -np.inf, np.nan], dtype)
        x, y = np.repeat(values, values.size), np.tile(values, values.size)
        got, expected = np.asarray(lax.nextafter(x, y)), np.asarray(jax.lax.nextafter(x, y))
        np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))
        there = ~np.isnan(got)
        np.testing.assert_array_equal(np.signbit(got[there]), np.signbit(expected[there]))
    check_vmap(lax.nextafter, (2,), ())
    assert corejax.grad(lambda x: lax.nextafter(x, 2.0) * x)(1.0) == np.nextafter(np.float32(1), np.float32(2))
    with pytest.raises(TypeError, match=r"nextafter requires .* got float32"):
        lax.nextafter(jnp.ones(2), jnp.ones(2, "float16"))
