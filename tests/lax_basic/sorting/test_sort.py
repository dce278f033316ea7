"""`sort` and `sort_key_val`: against jax, run and compiled, in every dtype; permutations of tangents."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corejax
from corejax import lax
from tests.lax_basic.structural_checks import (
    Case,
    assert_same,
    check_compiled,
    check_derivatives,
    check_values,
    check_vmap,
    data,
    parametrize,
)

SPECIAL = [-0.0, 0.0, -0.0, np.nan, -np.nan, 1, np.inf, -np.inf, 0.0, np.nan, -np.nan, -1, 2, 1]
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
INTEGERS = [bool, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
NARROW = [ml_dtypes.int2, ml_dtypes.int4, ml_dtypes.uint2, ml_dtypes.uint4, ml_dtypes.float4_e2m1fn]
FNUZ = [ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz, ml_dtypes.float8_e4m3b11fnuz]


def distinct(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    """Values that are all different, in no order."""
    size = int(np.prod(shape))
    return (np.random.default_rng(seed).permutation(size).reshape(shape) / 4 - 1).astype(dtype)


def of_dtype(dtype: Any) -> np.ndarray:
    """Ties, zeros of both signs and NaNs; all values of small integers."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b" or dtype.name.lstrip("u").startswith("int"):
        return (np.arange(-6, 8) * 5 % 9).astype(np.int8).astype(dtype)
    return np.array(SPECIAL if dtype.name != "float4_e2m1fn" else np.arange(6) % 4, np.float64).astype(dtype)


CASES = [
    Case("vector", lambda lax, x: lax.sort(x), [distinct(7)]),
    Case("axis", lambda lax, x: lax.sort(x, 0), [distinct(4, 3)]),
    Case("negative axis", lambda lax, x: lax.sort(x, dimension=-2), [distinct(2, 4, 3)]),
    Case("none", lambda lax, x: lax.sort(x), [data(2, 0)]),
    Case("one", lambda lax, x: lax.sort(x, 0), [data(1, 3)]),
    Case("values", lambda lax, x, y: lax.sort_key_val(x, y)[1], [distinct(6), data(6, seed=1)], (0, 1)),
    Case("values by axis", lambda lax, x, y: lax.sort_key_val(x, y, 0)[1], [distinct(4, 2), data(4, 2)], (0, 1)),
    Case(
        "two keys",
        lambda lax, x, y, z: lax.sort((x, y, z), num_keys=2)[2],
        [data(3, 5) > 0, distinct(3, 5), data(3, 5)],
        (1, 2),
    ),
    Case("complex", lambda lax, x: lax.sort(x), [distinct(5, dtype="c8") * (1 - 2j)]),
    Case("stable", lambda lax, x, y: lax.sort((x, y), is_stable=True)[1], [data(9, dtype="i1"), data(9)], (1,)),
]


@parametrize(CASES)
def test_values(case: Case) -> None:
    check_values(case)


@parametrize(CASES)
def test_compiled(case: Case) -> None:
    check_compiled(case)


@parametrize(CASES)
def test_vmap(case: Case) -> None:
    check_vmap(case)


@parametrize([c for c in CASES if c.name not in ("none", "two keys")])
def test_derivatives(case: Case) -> None:
    check_derivatives(case)


def _everything(api: Any, x: Any, places: Any) -> tuple[Any, ...]:
    return api.sort(x), *api.sort((x, places)), *api.sort((x[::-1], x, places), num_keys=2)


def bits(x: Any) -> Any:
    """What two arrays are equal in: their bits, NaNs being one."""
    x = np.asarray(x)
    if x.dtype.kind in "biuc":
        return x
    wide = x.astype(np.float64)
    return np.where(np.isnan(wide), 7.25, wide), np.signbit(wide) & ~np.isnan(wide)


def test_every_dtype_is_jaxs_with_special_values() -> None:
    """Zeros of both signs keep their order, NaNs of both signs theirs, behind inf."""
    jax = pytest.importorskip("jax")
    xs = [of_dtype(t) for t in (*FLOATS, *INTEGERS)]
    places = np.arange(14, dtype=np.int32)
    with jax.enable_x64(True):
        theirs = jax.jit(lambda xs: [_everything(jax.lax, x, places) for x in xs])(xs)
    compiled = corejax.jit(lambda xs: [_everything(lax, x, places) for x in map(corejax.numpy.asarray, xs)])(xs)
    for x, wanted, fast in zip(xs, theirs, compiled, strict=True):
        for got in (_everything(lax, x, places), fast):
            for a, b in zip(got, wanted, strict=True):
                assert np.asarray(a).dtype == np.asarray(b).dtype
                np.testing.assert_array_equal(bits(a), bits(b), err_msg=str(x.dtype))


@pytest.mark.parametrize("dtype", [*NARROW, *FNUZ], ids=lambda t: t.__name__)
def test_types_that_jax_cannot_sort(dtype: Any) -> None:
    x = of_dtype(dtype)
    places = np.arange(len(x))
    order = np.argsort(x.astype(np.float32), kind="stable")
    for f in (lambda x: lax.sort((x, places)), corejax.jit(lambda x: lax.sort((x, places)))):
        assert_same(f(x)[1], order)
        np.testing.assert_array_equal(np.asarray(f(x)[0]).astype(np.float32), x[order].astype(np.float32))


def test_complex_numbers_are_ordered_by_parts() -> None:
    nan = np.nan
    z = np.array([1 + 2j, 1 - 2j, complex(1, nan), complex(nan, 1), 2j, -0.0 + 1j, complex(nan, nan), complex(nan, -5)])
    for f in (lax.sort_key_val, corejax.jit(lax.sort_key_val)):
        assert_same(f(z, np.arange(8))[1], np.argsort(z, kind="stable"))
        np.testing.assert_array_equal(np.asarray(f(z, z)[0]), np.sort(z, kind="stable"))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(width=32) | st.sampled_from([0.0, -0.0, np.nan]), max_size=40),
    st.booleans(),
    st.integers(1, 40),
)
def test_long_and_short_arrays_are_sorted_alike(values: list[float], stable: bool, repeats: int) -> None:
    """The ways to sort that depend on the size give one order."""
    x = np.array(values * repeats, np.float32)
    keys, places = lax.sort_key_val(x, np.arange(len(x)), is_stable=stable)
    order = np.argsort(x, kind="stable")
    if stable:
        np.testing.assert_array_equal(np.asarray(places), order)
    np.testing.assert_array_equal(bits(lax.sort(x)), bits(x[order]))
    np.testing.assert_array_equal(np.asarray(keys), x[order])


ERRORS = [
    (lambda x: lax.sort(x[0]), ValueError, "sort: dimension -1 is out of bounds for an array of 0 dimensions"),
    (lambda x: lax.sort(x, 1), ValueError, "sort: dimension 1 is out of bounds"),
    (lambda x: lax.sort(x, num_keys=2), ValueError, "num_keys must be 1 for one operand, got 2"),
    (lambda x: lax.sort(()), TypeError, "at least one operand"),
    (lambda x: lax.sort((x, x), num_keys=3), ValueError, "must be between 1 and the number of operands, 2; got 3"),
    (lambda x: lax.sort((x, x[1:])), TypeError, r"operand 0 is f32\[3\], operand 1 is f32\[2\]"),
    (lambda x: lax.sort_key_val(x, x[0]), TypeError, "operands must have the same shape"),
    (lambda x: lax.sort("abc"), TypeError, "str"),
]


@pytest.mark.parametrize(("f", "error", "text"), ERRORS)
def test_errors(f: Any, error: type[Exception], text: str) -> None:
    for transformed in (f, corejax.make_jaxpr(f)):
        with pytest.raises(error, match=text):
            transformed(corejax.numpy.arange(3.0))


def test_only_tangents_that_are_there_are_permuted() -> None:
    """Integers beside floats, and operands that are constant, cost nothing in the derivative."""
    x, places = distinct(5), np.arange(5)
    text = str(corejax.make_jaxpr(corejax.linearize(lambda x: lax.sort_key_val(x, places)[0], x)[1])(x))
    assert "= sort" not in text
    f = lambda x: (lax.sort_key_val(x, places)[0] ** 2).sum()
    assert_same(corejax.jit(corejax.grad(f))(x), 2 * x)
    hessian = corejax.jit(corejax.vmap(corejax.jacobian(corejax.grad(f))))(np.stack([x, x[::-1]]))
    assert_same(hessian, np.stack([2 * np.eye(5, dtype=np.float32)] * 2))
