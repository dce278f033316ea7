"""Compiled special functions of float32: errors over whole domains, and what is computed of large arrays."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
from corejax_lax_basic import lax
from tests.lax_basic.support import compiled

scipy_special = pytest.importorskip("scipy.special")

RNG = np.random.default_rng(3)


def _errors(got, wanted):
    """In units in the last place of float32, where the result is a normal number."""
    limits = np.finfo(np.float32)
    with np.errstate(all="ignore"):
        normal = np.isfinite(wanted) & (np.abs(wanted) < limits.max) & (np.abs(wanted) > limits.tiny)
        assert not np.isnan(got[normal]).any()
        unit = np.spacing(np.abs(wanted[normal]).astype(np.float32))
    return np.abs(got[normal].astype(np.float64) - wanted[normal]) / unit


LINE = np.concatenate([
    RNG.uniform(0, 12, 4000), RNG.uniform(-30, 30, 4000), np.exp(RNG.uniform(-80, 80, 2000)),
    -np.exp(RNG.uniform(-80, 10, 2000)), 1 + RNG.uniform(-1e-4, 1e-4, 500), 2 + RNG.uniform(-1e-4, 1e-4, 500),
]).astype(np.float32)  # fmt: skip


@pytest.mark.parametrize(("name", "reference"), [("lgamma", "gammaln"), ("digamma", "psi")])
def test_gamma_functions_about_their_zeros_too(name, reference):
    """Of digamma near its positive root, of lgamma at 1 and 2 and between its poles."""
    x = np.concatenate([LINE, np.float32(1.4616321) + np.arange(-9, 9, dtype=np.float32) * np.float32(1.2e-7)])
    got = np.asarray(compiled(getattr(lax, name))(x))
    assert _errors(got, getattr(scipy_special, reference)(x.astype(np.float64))).max() < 0.6


def test_inverse_error_function():
    """XLA's own has lost four bits near 1 and -1."""
    near = 1 - np.exp(RNG.uniform(-16.6, 0, 20000))
    x = np.concatenate([near, -near, RNG.uniform(-1, 1, 20000), np.exp(RNG.uniform(-80, 0, 2000))]).astype(np.float32)
    x = np.append(x[np.abs(x) < 1], np.nextafter(np.float32([1, -1]), np.float32(0)))
    assert _errors(np.asarray(compiled(lax.erf_inv)(x)), scipy_special.erfinv(x.astype(np.float64))).max() < 5
    ends = np.float32([-1.0, 1.0, 2.0, -np.inf, np.nan, 0.0, -0.0])
    found = np.asarray(compiled(lax.erf_inv)(ends))
    np.testing.assert_array_equal(found, np.float32([-np.inf, np.inf, np.nan, np.nan, np.nan, 0.0, -0.0]))
    np.testing.assert_array_equal(np.signbit(found[5:]), [False, True])


def test_zeta_and_polygamma():
    s = (1 + np.exp(RNG.uniform(-8, 4, 4000))).astype(np.float32)
    q = np.exp(RNG.uniform(-6, 20, 4000)).astype(np.float32)
    wide = s.astype(np.float64), q.astype(np.float64)
    assert _errors(np.asarray(compiled(lax.zeta)(s, q)), scipy_special.zeta(*wide)).max() < 0.6
    m = np.round(RNG.uniform(0, 12, 4000)).astype(np.float32)
    wanted = np.where(m == 0, scipy_special.psi(wide[1]), scipy_special.polygamma(m.astype(int), wide[1]))
    assert _errors(np.asarray(compiled(lax.polygamma)(m, q)), wanted).max() < 0.6


def test_incomplete_gamma_functions():
    """In series, fractions and the uniform expansion, none of which all elements need."""
    a = np.exp(RNG.uniform(-6, 7, 3000)).astype(np.float32)
    x = (a * np.exp(RNG.uniform(-3, 1.2, 3000))).astype(np.float32)
    wide = a.astype(np.float64), x.astype(np.float64)
    for name, reference in (("igamma", scipy_special.gammainc), ("igammac", scipy_special.gammaincc)):
        got = np.asarray(compiled(getattr(lax, name))(a, x))
        np.testing.assert_allclose(got, reference(*wide), rtol=1e-7, atol=1e-37)


@pytest.mark.engine
def test_large_arrays_are_computed_by_programs():
    """Those of 32 bits: the same bits as compiled. Others as few numbers are, by SciPy."""
    few, many = LINE[:100], LINE[np.arange(1 << 16) % len(LINE)]
    for name in ("erf", "lgamma", "digamma", "bessel_i0e"):
        f = getattr(lax, name)
        np.testing.assert_array_equal(f(many), compiled(f)(many))
        np.testing.assert_allclose(f(many)[:100], f(few), rtol=3e-6)
    wide = many.astype(np.float64)
    np.testing.assert_array_equal(np.asarray(lax.lgamma(wide))[:100], lax.lgamma(wide[:100]))
    with corejax.disable_jit():
        np.testing.assert_allclose(np.asarray(lax.lgamma(many))[:100], lax.lgamma(few), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "reference", "units"),
    [("erf", "erf", 4), ("erfc", "erfc", 64), ("erf_inv", "erfinv", 4), ("bessel_i1e", "i1e", 16)],
)
def test_large_arrays_of_float64(name, reference, units):
    """They are compiled where that is as accurate; the inverse error function had lost half of its digits near 1."""
    x = np.concatenate(
        [np.linspace(-0.99, 0.99, 1 << 16), 1 - 2.0 ** -np.arange(1, 53), 2.0 ** -np.arange(1.0, 1000, 9)]
    )
    x = x if name == "erf_inv" else np.concatenate([x, np.linspace(-5, 8, 999)])
    wanted = getattr(scipy_special, reference)(x)
    for found in (getattr(lax, name)(x), compiled(getattr(lax, name))(x)):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=units * 2.0**-52)
    ends = np.array([-1.0, 1.0, 2.0, np.nan, 0.0])
    np.testing.assert_array_equal(compiled(lax.erf_inv)(ends), [-np.inf, np.inf, np.nan, np.nan, 0.0])
