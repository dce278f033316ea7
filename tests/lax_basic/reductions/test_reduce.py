"""Reductions against NumPy and jax: every dtype, neutral elements, derivatives, batching, compiled, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corejax
from corejax_lax_basic import lax
from tests.lax_basic.support import (
    BFLOAT16,
    KINDS,
    assert_same,
    check_derivatives,
    check_vmap,
    compiled,
    dtypes_of,
    few_dtypes,
    jax,
    kind_of,
    sample,
)

__all__ = ["jax"]

ROWS = {
    "reduce_sum": (np.add, "iufc"),
    "reduce_prod": (np.multiply, "iufc"),
    "reduce_max": (np.maximum, "biufc"),
    "reduce_min": (np.minimum, "biufc"),
    "reduce_and": (np.bitwise_and, "biu"),
    "reduce_or": (np.bitwise_or, "biu"),
}
ours = {name: getattr(lax, name) for name in ROWS}
AXES = [(), (0,), (1,), (2,), (0, 2), (0, 1, 2)]
each_row = pytest.mark.parametrize("name", ROWS)


def theirs(jax: Any, name: str) -> Any:
    """The same reduction in jax, where it may be private."""
    return getattr(jax.lax, name, None) or getattr(jax._src.lax.lax, name)


@each_row
def test_values_of_every_dtype(name: str) -> None:
    ufunc, kinds = ROWS[name]
    for dtype in dtypes_of(kinds):
        x = sample(dtype, (2, 3, 4))
        wide = x.astype(np.float32) if dtype.itemsize == 2 and kind_of(dtype) == "f" else x
        for axes in AXES:
            expected = ufunc.reduce(wide, axis=axes, dtype=wide.dtype).astype(dtype)
            assert_same(ours[name](x, axes), expected)


@each_row
def test_compiled_agrees_with_eager(name: str) -> None:
    def reduced(xs: Any) -> Any:
        return [ours[name](x, axes) for x in xs for axes in [(0,), (1, 2)]]

    xs = [sample(dtype, (2, 3, 4)) for dtype in few_dtypes(ROWS[name][1])]
    for got, expected in zip(compiled(reduced)(xs), reduced(xs), strict=True):
        assert_same(got, expected)


@each_row
def test_reduction_of_nothing(name: str, jax: Any) -> None:
    for dtype in dtypes_of(ROWS[name][1]):
        x = np.zeros((0, 2), dtype)
        assert_same(ours[name](x, (0,)), theirs(jax, name)(x, (0,)))
        assert ours[name](x, (1,)).shape == (0,)


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
def test_nan_is_the_extremum(name: str) -> None:
    x = np.array([[1, np.nan, 3], [1, 2, 3]])
    got = ours[name](x, (1,))
    assert np.isnan(np.asarray(got)[0]) and not np.isnan(np.asarray(got)[1])
    assert_same(compiled(lambda x: ours[name](x, (1,)))(x), got)


def test_integers_wrap() -> None:
    assert_same(lax.reduce_sum(np.full(3, 100, np.int8), (0,)), np.int8(44))
    assert_same(lax.reduce_prod(np.full(3, 16, np.uint8), (0,)), np.uint8(0))


def test_sixteen_bits_accumulate_in_float32() -> None:
    for dtype in (np.dtype(np.float16), BFLOAT16):
        x = np.ones(5000, dtype)
        assert float(lax.reduce_sum(x, (0,))) == float(np.float32(5000).astype(dtype))
        assert float(compiled(lambda x: lax.reduce_sum(x, (0,)))(x)) == float(np.float32(5000).astype(dtype))


def test_axes_of_bitwise_reductions_may_count_from_the_end() -> None:
    x = sample(np.float32, (2, 3)) > 0
    jaxpr = corejax.make_jaxpr(lambda x: lax.reduce_or(x, (-1, 0)))(x)
    assert "reduce_or[axes=(0, 1)] a" in str(jaxpr)


def test_weak_type_is_kept() -> None:
    assert lax.reduce_sum(1.0, ()).weak_type
    assert not lax.argmax(np.ones(2), 0).weak_type


# -- derivatives -------------------------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), ()])
def test_derivatives(name: str, axes: tuple[int, ...], jax: Any) -> None:
    for kind in "fc" if name in ("reduce_sum", "reduce_prod") else "f":
        x = sample(KINDS[kind][-1], (3, 5))
        check_derivatives(jax, lambda x: ours[name](x, axes), lambda x: theirs(jax, name)(x, axes), x)


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
def test_ties_share_the_derivative(name: str, jax: Any) -> None:
    x = np.array([[1.0, 3.0, 3.0, 1.0], [2.0, 2.0, 2.0, 2.0]])
    check_derivatives(jax, lambda x: ours[name](x, (1,)), lambda x: theirs(jax, name)(x, (1,)), x)


@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
def test_product_with_zeros(zeros: int) -> None:
    """Derivatives of a product need no division, so zeros are as good as other numbers."""
    x = np.arange(2.0, 7.0)
    x[:zeros] = 0
    product = lambda x: lax.reduce_prod(x, (0,))
    others = [np.prod(np.delete(x, i)) for i in range(5)]
    assert_same(corejax.grad(product)(x), np.array(others))
    second = np.asarray(corejax.hessian(product)(x))
    for i in range(5):
        for j in range(5):
            assert second[i, j] == (0 if i == j else np.prod(np.delete(x, [i, j])))


@pytest.mark.parametrize("size", [0, 1, 2, 7, 8])
def test_product_of_any_size(size: int) -> None:
    x = np.arange(1.0, size + 1)
    got = corejax.grad(lambda x: lax.reduce_prod(x, (0,)))(x)
    assert_same(got, np.prod(x) / x)


def test_gradient_of_an_empty_sum() -> None:
    x = np.zeros((0, 2))
    assert corejax.grad(lambda x: lax.reduce_sum(x, (0, 1)))(x).shape == (0, 2)


# -- vmap --------------------------------------------------------------------------------------------------------


@each_row
def test_vmap(name: str) -> None:
    dtype = np.int32 if name in ("reduce_and", "reduce_or") else np.float32
    for axes in [(), (0,), (1,), (0, 1)]:
        check_vmap(lambda x, a=axes: ours[name](x, a), (2, 4), dtypes=dtype)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_vmap_of_indices(name: str) -> None:
    for axis in (0, 1):
        check_vmap(lambda x, a=axis: getattr(lax, name)(x, a), (2, 4))


# -- argmax and argmin -------------------------------------------------------------------------------------------

INDEXINGS = [(0, np.int32), (1, np.int64), (-1, np.uint8)]


def with_ties(dtype: Any, name: str) -> np.ndarray:
    """Rows with equal extrema; of floats, one with two NaN and one of nothing but the neutral element."""
    x = sample(dtype, (4, 6))
    x = np.concatenate([x, x], axis=1)
    if kind_of(np.dtype(dtype)) == "f":
        x[0, 3] = x[0, 5] = np.nan
        x[1] = -np.inf if name == "argmax" else np.inf
    return x


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_indices(name: str) -> None:
    for dtype in dtypes_of("biuf"):
        x = with_ties(dtype, name)
        for axis, index_dtype in INDEXINGS:
            expected = getattr(np, name)(x, axis=axis).astype(index_dtype)
            assert_same(getattr(lax, name)(x, axis % x.ndim, index_dtype), expected)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_compiled_indices(name: str, jax: Any) -> None:
    def indices(find: Any) -> Any:
        return lambda xs: [find(x, axis % 2, dtype) for x in xs for axis, dtype in INDEXINGS]

    xs = [with_ties(dtype, name) for dtype in few_dtypes("biuf")]
    xs += [np.tile(x, (10, 4)) for x in xs]  # of long axes the extremum is found first
    expected = jax.jit(indices(getattr(jax.lax, name)))(xs)
    for got, wanted in zip(compiled(indices(getattr(lax, name)))(xs), expected, strict=True):
        assert_same(got, wanted)


@given(st.lists(st.sampled_from([np.nan, 1.0, -1.0, np.inf, 0.0, -0.0]), min_size=1, max_size=6))
def test_indices_are_of_the_first(values: list[float]) -> None:
    x = np.array(values)
    best = next((i for i, v in enumerate(values) if np.isnan(v)), None)
    expected = values.index(max(values)) if best is None else best
    assert int(lax.argmax(x, 0)) == expected


def test_index_dtype_defaults_to_that_of_int() -> None:
    assert lax.argmax(np.ones(2), 0).dtype == np.int32
    with corejax.config.override(default_dtype_bits=64):
        assert lax.argmax(np.ones(2), 0).dtype == np.int64


def test_indices_have_no_derivative() -> None:
    assert corejax.grad(lambda x: lax.reduce_sum(x, (0,)) * float(np.asarray(2)))(np.ones(2)).shape == (2,)
    out, _ = corejax.jvp(lambda x: lax.argmax(x, 0), (np.array([1.0, 2.0]),), (np.ones(2),))
    assert int(out) == 1


# -- errors ------------------------------------------------------------------------------------------------------

X = np.ones((2, 3), np.float32)
BAD = [
    (lambda: lax.reduce_sum(X, (2,)), ValueError, r"reduce_sum: axes \(2,\) are not distinct axes.* has 2"),
    (lambda: lax.reduce_sum(X, (0, -2)), ValueError, "they count from the front"),
    (lambda: lax.reduce_sum_p.bind(X, axes=(0, 0)), ValueError, r"\(0, 0\) are not distinct axes of f32\[2,3\]"),
    (lambda: lax.reduce_sum(np.ones(2, bool), (0,)), TypeError, "reduce_sum does not accept dtype bool; expect"),
    (lambda: lax.reduce_and(X, (0,)), TypeError, "reduce_and does not accept dtype float32; expects a boolean"),
    (lambda: lax.argmax(X, 2), ValueError, "argmax: Invalid axis 2 for operand"),
    (lambda: lax.argmax(np.ones((2, 0)), 1), ValueError, r"axis 1 of f64\[2,0\] has no elements"),
    (lambda: lax.argmin(X, 0, np.float32), TypeError, "index_dtype must be an integer type, got float32"),
    (lambda: lax.argmin(np.complex64([1]), 0), TypeError, "argmin does not accept dtype complex64"),
    (lambda: lax.argmin_p.bind(X, axes=(0, 1), index_dtype=np.dtype("int32")), ValueError, "takes one axis"),
    (lambda: lax.reduce_max([1.0], (0,)), TypeError, "not an array"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
