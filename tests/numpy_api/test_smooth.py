"""Functions that are smooth where formulas are not, and the trigonometric ones: values, derivatives of all orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import corejax
import corejax.numpy as jnp
from tests.numpy_api.oracle import assert_close, check, check_compiled, check_types

jax = pytest.importorskip("jax")

GRID = np.array([0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, 1e-4, -40.0, 1e30, np.inf, -np.inf, np.nan], np.float32)
UNARY = ["sinh", "cosh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "cbrt", "exp2"]
PAIRS = ["logaddexp", "logaddexp2", "hypot", "arctan2"]


@pytest.mark.parametrize("name", [*UNARY, "sinc", "angle"])
def test_functions_of_one_number(name: str) -> None:
    check(lambda xp, x: getattr(xp, name)(x), GRID[:-4] if name == "sinc" else GRID[:-3])
    for x in (np.ones(2, np.int8), np.ones(2, bool), GRID[:8].astype(np.float16)):
        check_types(lambda xp, x: getattr(xp, name)(x), x)
    if name not in ("cbrt", "exp2"):
        x = np.array([0.5 + 0.25j, -0.3 + 2j, 3 - 1j, -2 - 0.5j], np.complex64)
        (ours,) = check_types(lambda xp, x: getattr(xp, name)(x), x)
        assert_close(ours, getattr(np, name)(x.astype(np.complex128)))


def test_aliases() -> None:
    for short, name in {"acos": "arccos", "asinh": "arcsinh", "atan2": "arctan2", "atanh": "arctanh"}.items():
        assert getattr(jnp, short) is getattr(jnp, name)
    np.testing.assert_allclose(jnp.angle(jnp.array([1j, -1]), deg=True), [90, 180])


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two_numbers(name: str) -> None:
    x, y = (v.ravel() for v in np.meshgrid(GRID, GRID))
    (ours,) = check_types(lambda xp, x, y: getattr(xp, name)(x, y), x, y)
    with np.errstate(all="ignore"):
        assert_close(ours, getattr(np, name)(x.astype(np.float64), y.astype(np.float64)).astype(np.float32))
    check_types(lambda xp, x: getattr(xp, name)(x, 2), GRID)
    check_types(lambda xp: getattr(xp, name)(1, 2))
    check_types(lambda xp, x, y: getattr(xp, name)(x, y), np.ones((2, 1), np.int8), np.ones(3, np.float16))


def test_logaddexp_of_complex_numbers() -> None:
    x = np.array([1 + 2j, -3 + 1j, 0.5 - 3j], np.complex64)
    y = np.array([0.5 - 1j, -2 - 2j, 0.25 + 3j], np.complex64)
    (ours,) = check_types(lambda xp, x, y: xp.logaddexp(x, y), x, y)
    assert_close(ours, np.log(np.exp(x.astype(complex)) + np.exp(y.astype(complex))))
    (ours,) = check_types(lambda xp, x, y: xp.logaddexp2(x, y), x, y)
    assert_close(jnp.exp2(ours), np.exp2(x.astype(complex)) + np.exp2(y.astype(complex)), 1e-4)


def test_compiled() -> None:
    x, y = GRID[2:9], GRID[2:9][::-1].copy()
    functions = [*PAIRS, "gcd", "lcm"]

    def f(xp: Any, x: Any, y: Any) -> Any:
        numbers = [(x.astype("int32"), y.astype("int32")) if n in ("gcd", "lcm") else (x, y) for n in functions]
        return [getattr(xp, n)(*v) for n, v in zip(functions, numbers, strict=True)] + [xp.sinc(x)]

    check_compiled(f, x, y)


POINTS = [(0.0, 0.0), (1.0, 1.0), (2.0, -1.0), (-np.inf, 1.0), (np.inf, 2.0), (-3.0, 40.0)]


def test_derivatives_of_logaddexp() -> None:
    for name, base in (("logaddexp", np.e), ("logaddexp2", 2.0)):
        f = getattr(jnp, name)
        for x, y in POINTS:
            got = corejax.grad(f, (0, 1))(x, y)
            weights = np.array([1.0, 0.0] if x == np.inf else [base**x, base**y])
            np.testing.assert_allclose(got, weights / weights.sum(), atol=1e-6)
    both = corejax.jit(corejax.grad(jnp.logaddexp, (0, 1)))
    assert [float(v) for v in both(np.inf, np.inf)] == [1.0, 1.0]  # as in jax
    hessian = corejax.hessian(lambda v: jnp.logaddexp(v[0], v[1]))(jnp.array([0.3, 0.3]))
    np.testing.assert_allclose(hessian, [[0.25, -0.25], [-0.25, 0.25]], atol=1e-6)


def test_derivatives_of_sinc() -> None:
    expected = [1.0, 0.0, -(np.pi**2) / 3, 0.0, np.pi**4 / 5, 0.0, -(np.pi**6) / 7]
    f = jnp.sinc
    for value in expected:
        np.testing.assert_allclose(f(0.0), value, rtol=1e-5)
        f = corejax.grad(f)
    x = np.linspace(-2, 2, 9, dtype=np.float32)
    ours = corejax.jit(corejax.vmap(corejax.grad(corejax.grad(jnp.sinc))))(x)
    with jax.enable_x64(True):
        theirs = jax.vmap(jax.grad(jax.grad(jax.numpy.sinc)))(x.astype(np.float64))
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-4)
    near = 1e-3  # where the quotient's derivatives cancel
    np.testing.assert_allclose(corejax.grad(corejax.grad(jnp.sinc))(near), -(np.pi**2) / 3, rtol=1e-4)


def test_derivatives_are_jaxs() -> None:
    at = [0.3, -0.6, 1.7]

    def f(library: Any, x: Any) -> Any:
        xp = library.numpy
        with_pairs = [xp.hypot(x, 0.5), xp.hypot(x, x), xp.arctan2(x, 0.25), xp.copysign(x, 0.5), xp.heaviside(x, 0.5)]
        with_pairs += [xp.fmax(x, 0.3), xp.nan_to_num(x), xp.cbrt(x), xp.exp2(x), xp.sinh(x), xp.arcsinh(x)]
        return xp.stack([*with_pairs, xp.arctan(x), xp.arctanh(x / 2), xp.arcsin(x / 2), xp.arccosh(x * x + 2)])

    ours = corejax.jit(corejax.vmap(corejax.jacfwd(lambda x: f(corejax, x))))(jnp.array(at))
    theirs = jax.jit(jax.vmap(jax.jacfwd(lambda x: f(jax, x))))(jax.numpy.array(at))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    zero = [[float(v) for v in library.grad(library.numpy.hypot, (0, 1))(0.0, 0.0)] for library in (corejax, jax)]
    assert zero[0] == zero[1]


def test_i0() -> None:
    if not hasattr(corejax.lax, "bessel_i0e"):
        pytest.skip("needs bessel_i0e")
    x = np.array([0.0, 0.5, -3.0, 20.0], np.float32)
    (ours,) = check_types(lambda xp, x: xp.i0(x), x)
    np.testing.assert_allclose(ours, scipy.special.i0(x.astype(float)), rtol=1e-5)
    np.testing.assert_allclose(corejax.vmap(corejax.grad(jnp.i0))(x), scipy.special.i1(x.astype(float)), rtol=1e-4)
    np.testing.assert_allclose(corejax.grad(corejax.grad(jnp.i0))(0.0), 0.5, rtol=1e-5)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="hypot takes real numbers"):
        jnp.hypot(1j, 1)
    with pytest.raises(NotImplementedError, match="logaddexp: arrays are immutable"):
        jnp.logaddexp(1.0, 2.0, out=jnp.zeros(()))
    with pytest.raises(NotImplementedError, match="`where` is not supported, as `out` is not"):
        jnp.maximum(1.0, 2.0, where=True)
