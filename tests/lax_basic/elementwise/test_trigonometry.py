"""Inverse and hyperbolic functions where families of tests do not look: all quadrants, angles, large arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from tests.lax_basic.support import assert_same, check_derivatives, check_vmap, jax, sample

__all__ = ["jax"]

HOLOMORPHIC = ("asin", "acos", "atan", "asinh", "acosh", "atanh", "sinh", "cosh", "tan", "tanh", "exp2", "square")


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_complex_derivatives_in_every_quadrant(name: str) -> None:
    function = getattr(lax, name)
    z, t = sample(np.complex128, (16,), low=-2, high=2), sample(np.complex128, (16,), seed=1)
    assert {(a > 0, b > 0) for a, b in zip(z.real, z.imag, strict=True)} == {(a, b) for a in (0, 1) for b in (0, 1)}

    def along(z: Any) -> Any:
        return corejax.jvp(function, (z,), (t,))[1]

    h = 1e-6
    for f in (function, along):
        expected = (np.asarray(f(z + h * t)) - np.asarray(f(z - h * t))) / (2 * h)
        _, tangent = corejax.jvp(f, (z,), (t,))
        np.testing.assert_allclose(tangent, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["sinh", "cosh", "asinh", "acosh", "atanh", "cbrt", "exp2"])
def test_compiled_functions_are_accurate_to_a_few_ulp(name: str) -> None:
    rng = np.random.default_rng(0)
    small = np.exp(rng.uniform(-12, 0, 200)) * 0.99
    given = {
        "atanh": np.concatenate([small * 0.4, -small * 0.4]),
        "acosh": 1 + np.exp(rng.uniform(-3, 80, 200)),
        "exp2": np.concatenate([rng.uniform(-120, 120, 200), np.arange(-125.0, 127)]),
    }.get(name, np.concatenate([small, rng.uniform(-88, 88, 200), [0.0, 89.0, -89.0]]))
    x = given.astype(np.float32)
    reference = {"asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh}.get(name) or getattr(np, name)
    exact = reference(x.astype(np.longdouble))
    for out in (getattr(lax, name)(x), corejax.jit(getattr(lax, name))(x)):
        error = np.abs(np.asarray(out).astype(np.longdouble) - exact) / np.spacing(np.abs(exact).astype(np.float32))
        assert error.max() <= 4, x[np.argmax(error)]


def test_angles_of_points(jax: Any) -> None:
    parts = np.array([0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan])
    y, x = np.repeat(parts, parts.size), np.tile(parts, parts.size)
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        a, b = jnp.asarray(y, dtype), jnp.asarray(x, dtype)
        expected = np.asarray(jax.lax.atan2(np.asarray(a), np.asarray(b)))
        assert_same(lax.atan2(a, b), expected)
    for dtype in (np.float64, np.complex128):
        points = [sample(dtype, (6,), seed, low=0.2, high=2.0) for seed in (0, 1)]
        check_derivatives(jax, lax.atan2, jax.lax.atan2, *points)
        assert_same(lax.atan2(*points), np.asarray(jax.lax.atan2(*points)))
    check_vmap(lax.atan2, (2,), ())
    assert lax.atan2(1.0, 2.0).weak_type
    with pytest.raises(TypeError, match="atan2 does not accept dtype int32"):
        lax.atan2(jnp.arange(3), jnp.arange(3))


def test_derivatives_do_not_overflow_before_they_have_to() -> None:
    assert corejax.grad(lax.acosh)(1e30) == np.float32(1e-30)
    np.testing.assert_allclose(corejax.grad(lax.acosh)(np.float32(1 + 2**-20)), 724.0773, rtol=1e-5)
    np.testing.assert_allclose(corejax.grad(lax.asin)(np.float32(1 - 2**-20)), 724.0774, rtol=1e-5)


def test_programs_are_about_as_long_as_in_jax(jax: Any) -> None:
    for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh", "sinh", "cosh", "cbrt", "exp2", "square"):
        ours = corejax.make_jaxpr(corejax.grad(getattr(lax, name)))(1.5)
        theirs = jax.make_jaxpr(jax.grad(getattr(jax.lax, name)))(1.5)
        assert len(ours.jaxpr.eqns) <= len(theirs.jaxpr.eqns) + 3, name
