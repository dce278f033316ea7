"""Values at infinities, zero divisors and truth values: the oracle is NumPy, or a rule; compiled gives the same."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.nn
import corejax.numpy as jnp
from corejax import lax

inf, nan = np.inf, np.nan


def assert_values(f: Callable[..., Any], args: list[Any], expected: Any, weak: bool = False) -> None:
    """Values, dtype and weak type, run and compiled."""
    arrays = [jnp.asarray(x) if isinstance(x, np.ndarray) else x for x in args]
    for out in (f(*arrays), corejax.jit(lambda: f(*arrays))()):
        np.testing.assert_array_equal(out, expected)
        assert out.dtype == np.asarray(expected).dtype
        assert out.aval.weak_type == weak


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_floor_division_by_zero_and_of_infinities(dtype: str) -> None:
    x = np.array([1, -1, 0, inf, -inf, nan, 5, -5, 7.5, 1, 1, -1], dtype)
    y = np.array([0, 0, 0, 0, 2, 0, -0.0, -0.0, -2, inf, -inf, inf], dtype)
    with np.errstate(all="ignore"):
        expected = np.where(np.isinf(x) | np.isinf(y), np.floor(x / y), np.floor_divide(x, y))  # the array API's
    assert_values(jnp.floor_divide, [x, y], expected)
    quotient, rest = jnp.divmod(jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_array_equal(quotient, expected)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(rest[:3], np.remainder(x, y)[:3])
    np.testing.assert_array_equal(jnp.asarray(x[:2]) // 0.0, np.array([inf, -inf], dtype))


def test_floor_division_has_derivative_zero_also_by_zero() -> None:
    for y in (2.0, 0.0):
        by_x, by_y = corejax.grad(lambda x, y: x // y, argnums=(0, 1))(3.0, y)
        assert by_x == by_y == 0.0


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_are_true_where_either_part_is(dtype: str) -> None:
    x = np.array([0, 1j, -1, complex(-0.0, -0.0), complex(0, nan), complex(nan, 0), 2 + 3j], dtype)
    expected = np.array([False, True, True, False, True, True, True])
    assert_values(lambda x: x.astype(bool), [x], expected)
    assert_values(lambda x: lax.convert_element_type(x, bool), [x], expected)
    assert_values(lambda x: jnp.asarray(x, bool), [x], expected)
    assert bool(jnp.array(1j).astype(bool))


def test_either_part_makes_a_complex_number_infinite() -> None:
    x = np.array([complex(nan, inf), complex(-inf, nan), complex(nan, 0), complex(1, -inf), 1e38 + 1e38j], np.complex64)
    assert_values(jnp.isinf, [x], np.array([True, True, False, True, False]))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64"])
def test_the_remainder_of_integers_by_zero_is_zero(dtype: str) -> None:
    x = np.array([0, 1, 5, -3, -128]).astype(dtype)
    zeros = np.zeros_like(x)
    for wrap in (lambda f: f, corejax.jit, corejax.vmap):
        for f in (operator.mod, lambda x, y: divmod(x, y)[1], jnp.remainder, jnp.fmod):
            for _ in range(2):  # the second call is recorded
                np.testing.assert_array_equal(wrap(f)(jnp.asarray(x), jnp.asarray(zeros)), np.zeros(5))
        for f in (lambda x: x % 0, lambda x: x % jnp.asarray(zeros[0]), lambda x: jnp.fmod(x, 0)):
            np.testing.assert_array_equal(wrap(f)(jnp.asarray(x)), np.zeros(5))
    assert str(corejax.make_jaxpr(lambda x: x % 3)(x)).count("select_n") == (dtype[0] != "u")


def test_division_with_remainder_and_powers_of_booleans_are_strong_integers() -> None:
    x, y = np.array([True, False]), np.array([True, True])
    assert_values(lambda x, y: x // y, [x, y], np.array([1, 0], np.int32))
    assert_values(lambda x, y: x % y, [x, y], np.array([0, 0], np.int32))
    assert_values(lambda x, y: x**y, [x, y], np.array([1, 0], np.int32))
    assert_values(jnp.fmod, [x, y], np.array([0, 0], np.int32))
    assert_values(lambda x: x // True, [x], np.array([1, 0], np.int32))
    assert_values(lambda x: x // 1, [x], np.array([1, 0], np.int32), weak=True)


def test_sums_and_products_of_truth_values() -> None:
    x = np.array([[0, 2, 3], [0, 0, 0], [1, 5, 256]], np.int16)
    assert_values(lambda x: jnp.sum(x, 1, dtype=bool), [x], np.array([True, False, True]))
    assert_values(lambda x: jnp.prod(x, 1, dtype=bool), [x], np.array([False, False, True]))
    assert_values(lambda x: jnp.sum(x, dtype=bool, where=x < 0), [x], np.False_)
    assert_values(lambda x: jnp.prod(x, dtype=bool, where=x > 0, keepdims=True), [x], np.array([[True]]))
    assert_values(lambda x: jnp.sum(x[1], dtype=bool, initial=2), [x], np.True_)
    assert_values(lambda x: jnp.prod(x[2], dtype=bool, initial=0), [x], np.False_)


def test_einsum_of_booleans() -> None:
    x = np.array([[True, False], [False, False]])
    for subscripts in ("ij->", "ij->i", "ii->", "ii->i"):
        assert_values(lambda x, s=subscripts: jnp.einsum(s, x), [x], np.einsum(subscripts, x))
    assert_values(lambda x: jnp.einsum("ij,jk->ik", x, x), [x], x @ x)


def test_a_mean_does_not_overflow_on_the_way() -> None:
    assert_values(lambda x: jnp.mean(x, dtype="int8"), [np.array([100, 100, 100], np.int16)], np.int8(100))
    assert_values(lambda x: jnp.mean(x, dtype="int8"), [np.array([300, -300, 30], np.int16)], np.int8(10))
    assert_values(lambda x: jnp.mean(x, dtype="float16"), [np.full(4, 60000, np.float32)], np.float16(60000))


def test_logarithms_of_complex_zero_and_infinity() -> None:
    x = np.array([0, complex(inf, 0), complex(1, inf)], np.complex64)
    for f, base in ((jnp.log2, 2), (jnp.log10, 10)):
        out = f(jnp.asarray(x))
        np.testing.assert_array_equal(out.real, [-inf, inf, inf])
        np.testing.assert_allclose(out.imag, [0, 0, np.pi / 2 / np.log(base)], rtol=1e-6)


def test_square_roots_at_infinity_and_on_the_branch_cut() -> None:
    x = np.array([-inf, -0.0, inf, 4], np.float32)
    assert_values(lambda x: lax.pow(x, np.float32(0.5)), [x], np.array([inf, 0, inf, 2], np.float32))
    z = np.array([complex(-4, -0.0), complex(-4, 0)], np.complex64)
    assert_values(lax.sqrt, [z], np.array([2j, 2j], np.complex64))


def test_relu_of_booleans_counts() -> None:
    assert_values(corejax.nn.relu, [np.array([True, False])], np.array([1, 0], np.int32), weak=True)
