"""Integers of less than 8 bits, and floats of 8, in primitives that NumPy or XLA has nothing for: run as compiled."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
from corejax import lax

INTEGERS = {name: np.dtype(getattr(ml_dtypes, name)) for name in ("int2", "uint2", "int4", "uint4")}


def every(x: Any, y: Any) -> list[Any]:
    """Results for a vector and a matrix."""
    least = lax.reduce_min(x, (0,))
    reductions = (lax.reduce_max, lax.reduce_min, lax.reduce_sum, lax.reduce_prod, lax.reduce_and, lax.reduce_or)
    return [
        *(f(v, (0,)) for f in (*reductions, lax.reduce_xor) for v in (x, x[:0], y)),
        *(f(x, 0) for f in (lax.cummax, lax.cummin, lax.cumsum, lax.cumprod, lax.cumsum)),
        *(f(x, 0, np.int32) for f in (lax.argmax, lax.argmin)),
        *(lax.reduce_window(x, i, f, (2,), (1,), ((1, 0),)) for f, i in ((lax.max, least), (lax.add, least * 0))),
        lax.dot(y, y.T),
        lax.dot(x, x, preferred_element_type=np.int32),
        lax.conv(y[None], y[None, :, :2], (1,), "VALID"),
    ]


@pytest.mark.parametrize("name", INTEGERS)
def test_small_integers(name: str) -> None:
    dtype = INTEGERS[name]
    info = ml_dtypes.iinfo(dtype)
    x = np.resize(np.arange(int(info.min), int(info.max) + 1), 6).astype(np.int64)
    y = x[::-1].reshape(2, 3)
    small = [corejax.device_put(v.astype(np.int8).astype(dtype)) for v in (x, y)]
    run, program = every(*small), corejax.jit(every)(*small)
    for i, (a, b) in enumerate(zip(run, program, strict=True)):
        assert a.aval is b.aval
        np.testing.assert_array_equal(np.asarray(a).astype(int), np.asarray(b).astype(int), err_msg=str(i))
    mod = 2 ** int(info.bits)
    sums = [(int(v.sum()), int(np.asarray(r).astype(int).sum())) for v, r in ((x, run[6]),)]
    assert all((a - b) % mod == 0 for a, b in sums)
    assert int(np.asarray(run[0]).astype(int)) == x.max() and int(np.asarray(run[3]).astype(int)) == x.min()
    np.testing.assert_array_equal((np.asarray(run[-3]).astype(int) - y @ y.T) % mod, 0)
    assert int(run[-2]) == x @ x


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3b11fnuz", "float4_e2m1fn"])
def test_windows_of_small_floats(name: str) -> None:
    x = np.arange(12.0).reshape(3, 4).astype(getattr(ml_dtypes, name))
    numbers = lax.GatherDimensionNumbers((1,), (0,), (1, 0))
    places = np.array([[1, 0], [0, 2]])

    def gathered(x: Any) -> Any:
        return lax.gather(x, places, numbers, (1, 2), mode="clip")

    wanted = np.stack([np.asarray(x)[0, 1:3], np.asarray(x)[2, 0:2]])
    np.testing.assert_array_equal(np.asarray(gathered(x)), wanted)
    np.testing.assert_array_equal(np.asarray(corejax.jit(gathered)(x)), wanted)


def test_nan_of_types_without_a_negative_zero() -> None:
    x = np.array([np.nan, 0.0, 1.5, 2.0]).astype(ml_dtypes.float8_e4m3b11fnuz)
    for f in (lax.approx_max_k, lax.approx_min_k, lax.top_k):
        run, program = f(x, 2), corejax.jit(lambda x, f=f: f(x, 2))(x)
        for a, b in zip(run, program, strict=True):
            np.testing.assert_array_equal(np.asarray(a).astype(np.float32), np.asarray(b).astype(np.float32))
