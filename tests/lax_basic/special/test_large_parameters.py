"""Incomplete beta and gamma functions of large parameters, and their densities, in float32 and float64."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
from corejax_lax_basic import lax
from tests.lax_basic.support import compiled

pytest.importorskip("scipy.special")

# a, b, x, rounded to float32, and `I_x(a, b)`: by quadrature of the density in 60 digits (mpmath).
BETAINC = [
    (10000.0, 10000.0, 0.5, 0.5),
    (10000.0, 10000.0, 0.49, 0.0023370790316273255),
    (100000.0, 3.0, 0.9999, 0.002764271035235636),
    (1000000.0, 2500000.0, 0.285, 0.001541355572787872),
    (10000000.0, 0.001, 0.9999998, 6.590934983029414e-05),
    (1000000000.0, 0.5, 0.9999999, 8.700163978665805e-54),
    (3.0, 1e20, 3e-20, 0.5768099110135901),
    (0.5, 1e26, 2e-26, 0.9544997376266452),
    (1.0, 1e38, 3e-38, 0.9502129311084916),
    (0.001, 1e30, 1e-30, 0.999780391638679),
    (50.0, 1000000000000.0, 5e-11, 0.5188083416770606),
    (10000.0, 1e26, 1.01e-22, 0.8413496276317591),
    (1000000000.0, 1e32, 1e-23, 0.5004205385595056),
    (1e16, 1e16, 0.5, 0.5),
    (1e16, 1e38, 1e-22, 0.002673532413779099),
    (1e20, 1e20, 0.5, 0.5),
    (1e38, 1e38, 0.5, 0.5),
    (1e38, 3e38, 0.25, 1.0),
    (1e20, 1e20, 0.4999, 0.0),
    (1e20, 1e20, 0.5001, 1.0),
    (1e38, 1e20, 0.9999, 0.0),
]  # fmt: skip


def _columns(rows, dtype):
    """Operands in a dtype that holds them exactly, and what is wanted."""
    *operands, wanted = np.array(rows).T
    return [x.astype(np.float32).astype(dtype) for x in operands], wanted


def test_incomplete_beta_function_of_tiny_parameters():
    """Which is as small as `b`: it was the rest of something that is nearly 1."""
    from scipy.special import betainc

    grid = np.meshgrid([1e-3, 0.5, 2.5, 30.0], [1e-20, 1e-8, 3e-5], [0.3, 0.9, 0.99, 0.999])
    for dtype, rtol in ((np.float32, 2e-7), (np.float64, 1e-10)):
        operands = [v.ravel().astype(np.float32).astype(dtype) for v in grid]
        wanted = betainc(*[v.astype(np.float64) for v in operands])
        np.testing.assert_allclose(np.asarray(compiled(lax.betainc)(*operands)), wanted, rtol=rtol)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 2e-7), (np.float64, 1e-11)])
@pytest.mark.parametrize("run", [compiled, lambda f: f], ids=["compiled", "eager"])
def test_incomplete_beta_function(run, dtype, rtol):
    """Of more than 1e4 the continued fraction is too long, and of 1e20 its terms were rounded to one number."""
    operands, wanted = _columns(BETAINC, dtype)
    np.testing.assert_allclose(np.asarray(run(lax.betainc)(*operands)), wanted, rtol=rtol, atol=1e-45)


@pytest.mark.parametrize("run", [compiled, lambda f: f], ids=["compiled", "eager"])
def test_incomplete_beta_function_is_one_less_its_complement(run):
    """Where both are all but 0 and 1, too; in float64, whose products of operands are no longer exact."""
    a, b = (x.ravel() for x in np.meshgrid(10.0 ** np.arange(0, 300, 23), 10.0 ** np.arange(0, 300, 23)))
    x = a / (a + b)
    low, high = (np.asarray(run(lax.betainc)(*v)) for v in ((a, b, x), (b, a, (b / (a + b)))))
    assert ((low >= 0) & (low <= 1)).all()
    near = (np.maximum(a, b) < 1e12) & (a / b > 1e-12) & (b / a > 1e-12)  # else x is rounded too much
    np.testing.assert_allclose((low + high)[near], 1.0, rtol=1e-8)


# a, b, x, and the density of the beta distribution (mpmath).
BETA_DENSITY = [
    (50.0, 50.0, 0.51, 7.804417334767836),
    (10000.0, 10000.0, 0.499, 108.41266017777758),
    (10000000.0, 100000.0, 0.9902, 65.3579422174448),
    (1000000000000.0, 1000000000000.0, 0.5, 1128379.164784451),
    (1e20, 1e20, 0.5, 11283791784.023668),
    (10000000000.0, 0.5, 0.9999999, 0.0),
    (3.0, 1e20, 3e-20, 2.240418147652376e+19),
    (0.5, 2.0, 0.25, 1.125),
]  # fmt: skip
# a, x, and that of the gamma distribution.
GAMMA_DENSITY = [
    (50.0, 51.0, 0.05467832267699975),
    (10000.0, 10100.0, 0.002403669257862049),
    (10000000.0, 10000000.0, 0.0001261566250497028),
    (1000000000000.0, 1000000000000.0, 3.9894228121843324e-07),
    (1e20, 1e20, 3.989422764038561e-11),
    (0.5, 1e-20, 5641895924.998873),
    (3.0, 80.0, 5.775524441105329e-32),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 3e-7), (np.float64, 1e-7)])
@pytest.mark.parametrize(
    ("f", "position", "rows"),
    [(lax.betainc, 2, BETA_DENSITY), (lax.igamma, 1, GAMMA_DENSITY)],
    ids=["betainc", "igamma"],
)
def test_densities(f, position, rows, dtype, rtol):
    """They are derivatives, of which logarithms of gamma functions would cancel."""
    operands, wanted = _columns(rows, dtype)
    slope = corejax.vmap(corejax.grad(f, argnums=position))
    for run in (compiled(slope), slope):
        np.testing.assert_allclose(np.asarray(run(*operands)), wanted, rtol=rtol)


def test_densities_have_derivatives_at_their_ends():
    by_x = corejax.grad(lax.betainc, argnums=2)
    assert float(corejax.grad(by_x, argnums=2)(1.0, 3.0, 0.0)) == pytest.approx(-6.0)
    for x in (0.0, 1.0):
        assert float(corejax.grad(by_x, argnums=2)(30.0, 30.0, x)) == 0.0
        assert float(corejax.grad(by_x, argnums=2)(3.0, 3.0, x)) == 0.0
    assert float(corejax.grad(by_x, argnums=2)(2.0, 1.0, 0.0)) == pytest.approx(2.0)
    by_x = corejax.grad(lax.igamma, argnums=1)
    assert float(corejax.grad(by_x, argnums=1)(1.0, 0.0)) == pytest.approx(-1.0)
    assert float(corejax.grad(by_x, argnums=1)(30.0, 0.0)) == 0.0
    a, x = np.float64(1e6), np.float64(1.0005e6)
    growth = float(corejax.grad(by_x, argnums=1)(a, x)) / float(by_x(a, x))
    assert growth == pytest.approx((1e6 - 1) / 1.0005e6 - 1, rel=1e-6)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 2e-7), (np.float64, 1e-12)])
def test_incomplete_gamma_functions_in_their_tails(dtype, rtol):
    """Of large `a`, of which SciPy loses the lower one (mpmath's)."""
    a = np.array([1e8, 1e12, 1e16, 1e6], np.float32).astype(dtype)
    x = np.array([99940000, 999993966592, 9999999198822400, 994000], np.float32).astype(dtype)
    lower = [9.795213436473598e-10, 8.232355892478097e-10, 3.395847665061811e-27, 9.178900262302024e-10]
    for run in (compiled, lambda f: f):
        np.testing.assert_allclose(np.asarray(run(lax.igamma)(a, x)), lower, rtol=rtol)
        np.testing.assert_allclose(np.asarray(run(lax.igammac)(a, x)), 1 - np.array(lower), rtol=rtol)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 2e-7), (np.float64, 1e-12)])
@pytest.mark.parametrize("run", [compiled, lambda f: f], ids=["compiled", "eager"])
def test_derivatives_of_digamma_of_high_order(run, dtype, rtol):
    """Even ones halfway between poles are `-m! zeta(m+1, 1-x)`: all else cancels. Factorials beyond 170! overflow."""
    from scipy.special import factorial, zeta

    m, n = (v.ravel() for v in np.meshgrid([2.0, 8.0, 10.0, 12.0, 24.0], [0.0, 1.0, 2.0, 10.0]))
    got = run(lax.polygamma)(m.astype(dtype), (-0.5 - n).astype(dtype))
    np.testing.assert_allclose(np.asarray(got), -factorial(m) * zeta(m + 1, n + 1.5), rtol=rtol)
    m, x = np.array([200.0, 180.0, 9.0, 10.0]), np.array([50.0, 64.0, np.float32(-1e-3), -0.25])
    wanted = [-2.5829713930705358e33, -257.95652422762515, 3.6287982764129374e35, 15220204428462.791]  # mpmath's
    got = run(lax.polygamma)(m.astype(dtype), x.astype(dtype))
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=rtol)


@pytest.mark.parametrize("run", [lambda f: f, corejax.jit])
def test_derivatives_of_digamma_beyond_the_largest_number_are_infinite(run):
    m, x = np.float32([240, 240, 241, 1000, 241]), np.float32([0.5, 1.0, 1.0, 2.5, 300.0])
    np.testing.assert_array_equal(run(lax.polygamma)(m, x), np.float32([-np.inf, -np.inf, np.inf, -np.inf, 0]))
