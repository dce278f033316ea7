"""Polynomials: values as NumPy's, types as jax's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax.numpy as jnp
from tests.numpy_api.oracle import check, check_against_jax, check_compiled_together, check_gradients, check_mapped

P = np.array([2, -1, 0.5, 3], np.float32)
Q = np.array([1.5, 4], np.float32)
X = np.array([[0, 1, -2], [0.5, 3, 1]], np.float32)

CALLS = [
    lambda xp, p: xp.polyadd(p, Q),
    lambda xp, p: xp.polysub(Q, p),
    lambda xp, p: xp.polydiv(p, Q)[0],
    lambda xp, p: xp.polydiv(Q, p)[0],
    lambda xp, p: xp.polyval(p, X),
    lambda xp, p: xp.polyder(p),
    lambda xp, p: xp.polyder(p, 2),
    lambda xp, p: xp.polyder(p, 6),
    lambda xp, p: xp.polyder(p, 0),
    lambda xp, p: xp.polyint(p),
    lambda xp, p: xp.polyint(p, 2, np.array([7, 9], np.float32)),
    lambda xp, p: xp.polyint(p, 3, 5),
    lambda xp, p: xp.polyint(p, 0),
    lambda xp, p: xp.vander(p),
    lambda xp, p: xp.vander(p, 2, True),
    lambda xp, p: xp.vander(p, 0),
]


def test_values_and_types() -> None:
    for f in CALLS:
        check(f, P, rtol=1e-4)
    for f in CALLS[:2] + CALLS[4:5]:
        check(f, P.astype(np.int32), rtol=1e-4)
        check(f, (P + 1j).astype(np.complex64), rtol=1e-4)
    for f in CALLS[5:]:
        if f in CALLS[13:]:
            check(f, np.array([2, -1, 3], np.int32))
        else:
            check_against_jax(f, np.array([2, -1, 3], np.int32))


def test_remainders() -> None:
    quotient, rest = jnp.polydiv(P, Q)
    np.testing.assert_allclose(np.polyadd(np.polymul(quotient, Q), rest), P, rtol=1e-5)
    assert rest.shape == P.shape
    trimmed = jnp.polydiv(P, Q, trim_leading_zeros=True)[1]
    np.testing.assert_allclose(trimmed, np.polydiv(P, Q)[1], rtol=1e-5)
    check_against_jax(lambda xp, p: xp.polydiv(p, Q), P, rtol=1e-5)


def test_products() -> None:
    if "convolve" not in dir(jnp):
        pytest.skip("needs convolutions")
    check(lambda xp, p: xp.polymul(p, Q), P, rtol=1e-5)
    check_against_jax(lambda xp, p: xp.polymul(p, Q), np.array([1, 2, 3], np.int32))
    assert jnp.polymul(P, Q[:0]).tolist() == [0, 0, 0, 0]
    padded = np.concatenate([np.zeros(2, np.float32), P])
    np.testing.assert_allclose(jnp.polymul(padded, Q, trim_leading_zeros=True), np.polymul(padded, Q), rtol=1e-5)
    with pytest.raises(ValueError, match="polymul: coefficients are vectors"):
        jnp.polymul(P, X)


def test_zeros() -> None:
    check(lambda xp, z: xp.poly(z), P, rtol=1e-5)
    check(lambda xp, z: xp.poly(z), np.array([2, 3], np.int32))
    check_against_jax(lambda xp, z: xp.poly(z), (P + 1j).astype(np.complex64), rtol=1e-5)
    check_against_jax(lambda xp: xp.poly(2.5))
    assert jnp.poly(P[:0]).shape == ()
    np.testing.assert_array_equal(jnp.poly(np.float32([1, np.nan])), [1, np.nan, np.nan])
    np.testing.assert_array_equal(jnp.poly(np.float32([np.inf, 1])), [1, -np.inf, np.inf])
    matrix = np.float32([[2, 1, 0], [0, 3, 1], [1, 0, -1]])
    np.testing.assert_allclose(jnp.poly(matrix), np.poly(matrix), rtol=1e-5, atol=1e-5)
    check_against_jax(lambda xp, z: xp.poly(z), matrix, rtol=1e-4)


def test_long_and_several_polynomials() -> None:
    long = np.linspace(-1, 1, 20, dtype=np.float32)
    for coefficients in (long, np.linspace(-1, 1, 43, dtype=np.float32)):
        check(lambda xp, p: xp.polyval(p, X / 4), coefficients, rtol=1e-4)
    for unroll in (1, 7, 64):
        np.testing.assert_array_equal(jnp.polyval(coefficients, X / 4, unroll=unroll), jnp.polyval(coefficients, X / 4))
    many = np.resize(np.linspace(-1, 1, 1001, dtype=np.float32), 1 << 18)
    np.testing.assert_allclose(jnp.polyval(coefficients, many), np.polyval(coefficients, many), rtol=1e-4, atol=1e-4)
    check(lambda xp, p: xp.polyval(p, X), np.stack([P[:3], Q[:1] * P[:3]], 1)[:, :, None], rtol=1e-4)
    check(lambda xp, p: xp.polyval(p, 2), P)
    assert jnp.polyval(P[:0], X).tolist() == np.zeros((2, 3)).tolist()


def test_compiled_and_derivatives() -> None:
    check_compiled_together(CALLS, P, rtol=1e-5)
    check_mapped(CALLS, P, rtol=1e-5)
    check_gradients([f for i, f in enumerate(CALLS) if i not in (3, 7, 15)], P)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: jnp.polyadd(P, X), ValueError, r"polyadd: coefficients are vectors, got f32\[2,3\] at position 1"),
        (lambda: jnp.polyadd([1, 2], P), TypeError, "polyadd takes arrays"),
        (lambda: jnp.polydiv(P, P[:0]), ValueError, "polydiv: a polynomial has coefficients"),
        (lambda: jnp.polyval(1.0, X), ValueError, "polyval"),
        (lambda: jnp.polyder(P, -1), ValueError, "polyder: .* m=-1"),
        (lambda: jnp.polyint(P, 2, P), ValueError, r"2 constants .* got f32\[4\]"),
        (lambda: jnp.poly(X), ValueError, r"poly takes a vector of zeros, or a square matrix, got f32\[2,3\]"),
        (lambda: jnp.vander(X), ValueError, "vander takes a vector"),
        (lambda: jnp.vander(P, -1), ValueError, "not negative, got -1"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()
