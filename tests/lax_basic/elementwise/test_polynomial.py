"""`polynomial`, `log2` and `one_minus_square`, which JAX has from 0.12 on, beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Polynomial

import corejax
import corejax.numpy as jnp
from corejax import lax

X = np.linspace(-1.5, 2.0, 6)
COEFFICIENTS = [1.0, -5.0, 2.0, 0.5]


def modes(f: Any) -> list[Any]:
    return [f, corejax.jit(f)]


@pytest.mark.parametrize("count", range(5))
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "complex64"])
def test_values(dtype: str, count: int) -> None:
    x = jnp.asarray(X, dtype)
    wanted = Polynomial(COEFFICIENTS[:count] or [0.0])(np.asarray(x).astype("complex128" if "c" in dtype else "f8"))
    for f in modes(lambda x: lax.polynomial(x, COEFFICIENTS[:count])):
        assert f(x).dtype == x.dtype and f(x).shape == x.shape
        np.testing.assert_allclose(np.asarray(f(x), wanted.dtype), wanted, rtol=2e-2 if dtype == "bfloat16" else 1e-5)


def test_integers_and_weak_types() -> None:
    assert lax.polynomial(jnp.arange(3), [1, 2, 3]).tolist() == [1, 6, 17]
    assert lax.polynomial(3.0, [1.0, 5.0, 2.0]).weak_type
    assert not lax.polynomial(3.0, [jnp.float32(1), 5.0]).weak_type
    assert lax.polynomial(jnp.float32(3), [np.float64(1), 5]).dtype == "float32"


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_derivatives_by_the_points(order: int) -> None:
    f: Any = lambda x: lax.polynomial(x, COEFFICIENTS)
    for _ in range(order):
        f = corejax.grad(f)
    for g in modes(corejax.vmap(f)):
        np.testing.assert_allclose(g(X), Polynomial(COEFFICIENTS).deriv(order)(X), rtol=1e-9)
    text = str(
        corejax.make_jaxpr(corejax.jvp, static_argnums=0)(lambda x: lax.polynomial(x, [1.0] * 5), (1.0,), (1.0,))
    )
    assert text.count("polynomial") == 2


def test_derivatives_by_coefficients() -> None:
    coefficients = [1.0, X, 2.0, X * X]
    f = lambda x, c: lax.polynomial(x, c).sum()
    got = corejax.grad(f, 1)(X, coefficients)
    wanted = [6.0, X, (X**2).sum(), X**3]
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b)
    for a, b in zip(corejax.jacfwd(f, 1)(X, coefficients), wanted, strict=True):
        np.testing.assert_allclose(a, b)
    mixed = corejax.grad(lambda c: corejax.grad(f)(2.0, c))([1.0, 1.0, 1.0])
    np.testing.assert_allclose(mixed, [0.0, 1.0, 4.0])


def test_batches() -> None:
    stacked = np.stack([X, 2 * X])
    got = corejax.vmap(lambda x, c: lax.polynomial(x, [1.0, c]), (0, None))(stacked, 3.0)
    np.testing.assert_allclose(got, 1 + 3 * stacked)
    got = corejax.vmap(lambda x, c: lax.polynomial(x, [1.0, c]), (None, 0))(X, stacked)
    np.testing.assert_allclose(got, 1 + X * stacked)


def test_errors() -> None:
    with pytest.raises(TypeError, match=r"polynomial: operands have shapes \(6,\) \(first\) and \(2,\) \(third\)"):
        lax.polynomial(X, [1.0, np.ones(2)])
    with pytest.raises(TypeError, match="polynomial does not accept dtype bool"):
        lax.polynomial(np.array(True), [True, False])
    with pytest.raises(TypeError, match="at least one coefficient"):
        lax.polynomial_p.bind(X)


def test_log2() -> None:
    powers = np.exp2(np.arange(-20.0, 20.0))
    np.testing.assert_array_equal(lax.log2(powers), np.arange(-20.0, 20.0))
    x = np.array([-1.0, 0.0, np.inf, np.nan, 0.3, 7.0])
    with np.errstate(all="ignore"):
        for dtype in ("float64", "float32", "complex128"):
            for f in modes(lax.log2):
                np.testing.assert_allclose(f(powers.astype(dtype)), np.log2(powers.astype(dtype)), rtol=1e-6, atol=1e-7)
                if dtype != "complex128":
                    np.testing.assert_allclose(f(x.astype(dtype)), np.log2(x.astype(dtype)), rtol=1e-6)
    np.testing.assert_allclose(corejax.grad(lax.log2)(3.0), 1 / (3 * np.log(2)), rtol=1e-6)
    np.testing.assert_allclose(corejax.grad(corejax.grad(lax.log2))(3.0), -1 / (9 * np.log(2)), rtol=1e-6)
    assert lax.log2(powers, accuracy=lax.AccuracyMode.HIGHEST).shape == powers.shape
    with pytest.raises(TypeError, match="log2 does not accept dtype int32"):
        lax.log2(jnp.arange(3, dtype="int32"))


def test_one_minus_square() -> None:
    near = np.array([1 - 1e-9, -1 + 1e-12, 0.5, 1e-300])
    for f in modes(lax.one_minus_square):
        np.testing.assert_allclose(f(near), (1 - near) * (1 + near), rtol=1e-15)
        assert f(jnp.arange(4)).tolist() == [1, 0, -3, -8]
        assert f(jnp.asarray([0.5, 2.0], "bfloat16")).tolist() == [0.75, -3.0]
        np.testing.assert_allclose(f(near + 1j), 1 - (near + 1j) ** 2, rtol=1e-8)
    assert corejax.grad(lax.one_minus_square)(np.float64(1e-300)) == -2e-300
    assert corejax.grad(corejax.grad(lax.one_minus_square))(3.0) == -2.0
