"""Functions of complex numbers, and of real ones alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import corejax
import corejax.numpy as jnp
import corejax.scipy.special as special

jax = pytest.importorskip("jax")
theirs = pytest.importorskip("jax.scipy.special")

RNG = np.random.default_rng(0)
X, Y = (RNG.standard_normal(20) + 1j * RNG.standard_normal(20) for _ in range(2))
NAMES = {"expit": 1, "logit": 1, "xlogy": 2, "xlog1py": 2, "boxcox": 2, "boxcox1p": 2}
STEP = 1e-6


def apply(f: Any, name: str, x: Any, y: Any) -> Any:
    return f(*(x, y)[: NAMES[name]])


@pytest.mark.sampled
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_values_are_jaxs(name: str, dtype: str) -> None:
    x, y = X.astype(dtype), Y.astype(dtype)
    with jax.enable_x64(True):
        wanted = np.asarray(apply(getattr(theirs, name), name, x, y))
    ours = getattr(special, name)
    for f in (ours, corejax.jit(lambda *xs: ours(*xs))):
        found = np.asarray(apply(f, name, x, y))
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=2e-5 if dtype == "complex64" else 1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives(name: str) -> None:
    ours = getattr(special, name)
    for i in range(NAMES[name]):
        moved = [[X + s * STEP, Y] if i == 0 else [X, Y + s * STEP] for s in (1, -1)]
        slope = (apply(ours, name, *map(jnp.asarray, moved[0])) - apply(ours, name, *map(jnp.asarray, moved[1]))) / (
            2 * STEP
        )
        found = corejax.vmap(corejax.grad(ours, argnums=i, holomorphic=True))(*(X, Y)[: NAMES[name]])
        np.testing.assert_allclose(found, slope, rtol=1e-6)


def test_zeros() -> None:
    zero, y = np.zeros(5, complex), np.array([0, 1j, np.inf, np.nan, -1])
    np.testing.assert_array_equal(special.xlogy(zero, y), scipy.special.xlogy(zero, y))
    np.testing.assert_array_equal(special.xlog1py(zero, y), scipy.special.xlog1py(zero, y))
    slope = corejax.vmap(corejax.grad(special.xlogy, holomorphic=True))(zero[1:2], y[1:2])
    np.testing.assert_allclose(slope, np.log(1j))
    for power in (0, 1e-9, 1e-4, 2e-3):  # a series, and what it goes over into
        t = power * np.log(X)
        wanted = np.log(X) * (1 + t / 2 + t**2 / 6 + t**3 / 24 + t**4 / 120)
        np.testing.assert_allclose(special.boxcox(X, power + 0j), wanted, rtol=1e-12)
    by_power = corejax.vmap(corejax.grad(special.boxcox, argnums=1, holomorphic=True), (0, None))(X, np.complex128(0))
    np.testing.assert_allclose(by_power, np.log(X) ** 2 / 2, rtol=1e-12)


def test_types() -> None:
    assert special.xlogy(X.astype("complex64"), np.float32(2)).dtype == "complex64"
    assert special.expit(np.zeros((2, 0), complex)).shape == (2, 0)
    assert special.xlogy(X[:, None], Y[None, :3]).shape == (20, 3)
    with pytest.raises(ValueError, match="xlogy"):
        special.xlogy(X[:2], Y[:3])


@pytest.mark.parametrize("name", ["erf", "gammaln", "digamma", "entr", "i0", "spence", "fresnel", "log_ndtr", "exp1"])
def test_others_refuse_them(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name} is of real numbers, got c128\[20\]"):
        getattr(special, name)(X)


@pytest.mark.parametrize("name", ["gamma", "loggamma"])
@pytest.mark.parametrize(("dtype", "rtol"), [("complex64", 2e-6), ("complex128", 1e-10)])
def test_gamma_functions_about_poles_and_zeros(name: str, dtype: str, rtol: float) -> None:
    """Compiled they were infinite next to poles, and of 1 and 2 the logarithm was a rest of rounding."""
    steps = np.array([1e-3, 1e-6, 1e-20j, 1e-30j, -1e-12j, 1e-5 + 1e-5j, -1e-4 + 1e-8j, 0.25, 0.29j])
    z = (np.array([-20, -3, -1, 0, 1, 2])[:, None] + steps).ravel()
    z = np.concatenate([z, [1, 2, 0.5, 30 + 40j, -30.5 + 20j, 12.0, -60.5 + 1e-3j]]).astype(dtype)
    z = z[(z.imag != 0) | (z.real > 0) | (z.real != np.round(z.real))]
    wanted = getattr(scipy.special, name)(z.astype(complex))
    with corejax.enable_x64(dtype == "complex128"):
        for f in (getattr(special, name), corejax.jit(getattr(special, name))):
            found = np.asarray(f(z))
            assert found.dtype == z.dtype
            np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-37)


def test_derivative_of_loggamma_about_its_zeros() -> None:
    z = np.array([1.0, 2.0, 1 + 0.1j, 2 - 0.25j, 1.35, 2.5j + 1])
    slope = corejax.vmap(corejax.grad(special.loggamma, holomorphic=True))(z.astype(complex))
    np.testing.assert_allclose(slope, scipy.special.psi(z), rtol=1e-10)
