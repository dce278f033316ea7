"""Compiled functions of float32 that are computed there: within three units in the last place, as is documented."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import corejax
from corejax.scipy import special
from corejax_scipy.accuracy.measure import measure, names

names()  # imports every function


@pytest.mark.parametrize("name", ["entr", "log_ndtr", "logit", "ndtr", "ndtri", "xlog1py", "xlogy"])
def test_units_in_the_last_place(name):
    found = measure(name, "float32", "compiled", 10_000)
    assert found.most < (2.0 if name in ("log_ndtr", "ndtr", "ndtri") else 3.0) and found.median < 0.6
    assert not found.lost


@pytest.mark.parametrize("name", ["boxcox", "boxcox1p", "kl_div", "rel_entr", "owens_t", "hyp1f1"])
def test_arithmetic_of_float64_is_rounded_once(name):
    found = measure(name, "float32", "compiled", 5_000)
    assert found.most < 0.6 and not found.lost


def test_infinite_and_tiny_operands_of_differences():
    """Where SciPy's own are NaN, signed zeros or the operand itself."""
    x = np.array([-0.0, 0.0, 1e-30, -1e-30, 1e-9, np.inf, -1.0, -2.0], np.float32)
    for power in (-1.5, 0.0, 2.0):
        got = np.asarray(corejax.jit(special.boxcox1p)(x, np.float32(power)))
        want = scipy.special.boxcox1p(x.astype(np.float64), power)
        np.testing.assert_allclose(got, want, rtol=1e-6)
        np.testing.assert_array_equal(np.signbit(got[:-1]), np.signbit(want[:-1]))  # the last one is NaN
    p, q = (
        v.ravel() for v in np.meshgrid([0.0, 1.0, 3e38, 1e-30, np.inf, np.nan, -1.0], [0.0, 2.0, 3e38, np.inf, -1.0])
    )
    for name in ("kl_div", "rel_entr"):
        with np.errstate(all="ignore"):
            want = getattr(scipy.special, name)(p, q).astype(np.float32)
        got = corejax.jit(getattr(special, name))(p.astype(np.float32), q.astype(np.float32))
        np.testing.assert_allclose(got, want, rtol=1e-6, err_msg=name)


def test_kummer_functions_of_cancelling_parameters():
    """Values by mpmath: what ends, what is nearly constant, and a first term beyond the negative pole."""
    cases = [
        (-200.0, -3.5, -1e-10, 1.0), (1e-20, 1.5, 40.0, 1.0000085790), (-2.0, -3.5, 40.0, 206.7142857),
        (-0.5, 1.0, -8.0, 3.2930240), (3.0, 3.0, -5.0, math.exp(-5.0)), (math.nan, -1.0, 1.0, math.nan),
    ]  # fmt: skip
    a, b, x, want = np.array(cases, np.float32).T
    np.testing.assert_allclose(corejax.jit(special.hyp1f1)(a, b, x), want, rtol=1e-6)


def test_logit_about_its_zero():
    p = (np.float32(0.5) + np.float32(2.0**-25) * np.arange(-50, 51)).astype(np.float32)
    wide = p.astype(np.float64)
    np.testing.assert_allclose(corejax.jit(special.logit)(p), np.log1p((2 * wide - 1) / (1 - wide)), rtol=4e-7)


def test_ends_of_domains():
    points = np.array([-np.inf, -1e30, -40.0, -1.0, -0.0, 0.0, 1e-30, 0.5, 1.0, 9.0, 1e30, np.inf, np.nan], np.float32)
    for name in ("entr", "logit", "ndtr", "log_ndtr", "ndtri"):
        with np.errstate(all="ignore"):
            want = getattr(scipy.special, name)(points.astype(np.float64)).astype(np.float32)
        want = np.where(np.abs(want) < np.finfo(np.float32).tiny, 0, want)  # as compiled programs have it
        np.testing.assert_allclose(corejax.jit(getattr(special, name))(points), want, rtol=1e-6, err_msg=name)
    x, y = (v.ravel() for v in np.meshgrid(points, points))
    for name in ("xlogy", "xlog1py"):
        with np.errstate(all="ignore"):
            want = getattr(scipy.special, name)(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
        np.testing.assert_allclose(corejax.jit(getattr(special, name))(x, y), want, rtol=1e-6, err_msg=name)


def test_narrower_floats_are_rounded_once_more():
    x = np.linspace(0.05, 0.95, 19).astype(np.float16)
    for name in ("logit", "ndtri", "entr"):
        want = getattr(scipy.special, name)(x.astype(np.float64)).astype(np.float16)
        np.testing.assert_array_equal(corejax.jit(getattr(special, name))(x), want)


@pytest.mark.parametrize("name", ["expi", "logit"])
def test_large_arrays_are_computed_by_programs(name):
    f = getattr(special, name)
    x = np.random.default_rng(0).uniform(0.1, 0.9, 1 << 16).astype(np.float32)
    np.testing.assert_array_equal(f(x), corejax.jit(f)(x))
    np.testing.assert_allclose(np.asarray(f(x))[:50], f(x[:50]), rtol=1e-6)
    with corejax.disable_jit():
        np.testing.assert_array_equal(np.asarray(f(x))[:50], f(x[:50]))


def test_bessel_functions_of_every_size():
    """Small and large orders and arguments: the power series, both recurrences, and Hankel's expansion."""
    x = np.concatenate([np.linspace(-40, 40, 401), 10.0 ** np.linspace(-12, 5, 200), [0.0, -0.0]])
    for v in (0, 3, 20):
        want = scipy.special.jv(np.arange(v + 1)[:, None], x)
        got = np.asarray(corejax.jit(lambda x, v=v: special.bessel_jn(x, v=v))(x))
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
        if v == 20:
            continue
        narrow = x.astype(np.float32)
        want = scipy.special.jv(np.arange(v + 1)[:, None], narrow.astype(np.float64))
        got = corejax.jit(lambda x, v=v: special.bessel_jn(x, v=v))(narrow)
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8)
    tiny = np.array([1e-200, 1e-100, 1e-30, 1e-9])  # relatively right where the result is small
    got = np.asarray(corejax.jit(lambda x: special.bessel_jn(x, v=12))(tiny))
    want = np.array([(tiny / 2) ** n / math.factorial(n) for n in range(13)])
    np.testing.assert_allclose(got, np.where(want < 1e-305, 0, want), rtol=1e-9, atol=1e-305)
    large = np.array([9.9e7, 1.5e8, 3e20, -2e9, np.inf, np.nan, 3.0], np.float32)  # those of other sizes beside them
    got = np.asarray(corejax.jit(lambda x: special.bessel_jn(x, v=2))(large))
    want = scipy.special.jv(np.arange(3)[:, None], large.astype(np.float64))
    np.testing.assert_allclose(got[:, [0, 1, 3, 6]], want[:, [0, 1, 3, 6]], rtol=2e-6, atol=1e-9)
    np.testing.assert_array_equal(got[:, 4:6], [[0, np.nan]] * 3)
    for dtype in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16):
        x = np.array([-np.inf, np.inf, np.nan], dtype)
        for compute in (special.bessel_jn, corejax.jit(special.bessel_jn, static_argnames="v")):
            ends = np.asarray(compute(x, v=2)).astype(np.float64)
            np.testing.assert_array_equal(ends, [[0, 0, np.nan]] * 3)


def test_bessel_functions_for_recurrences_far_down():
    """The derivative takes one order more; batches keep the orders first within each element."""
    x = np.array([0.3, 4.0, 30.0])
    slopes = corejax.vmap(corejax.jacfwd(lambda x: special.bessel_jn(x, v=9)))(x)
    np.testing.assert_allclose(slopes.T, scipy.special.jvp(np.arange(10)[:, None], x), rtol=1e-9, atol=1e-14)
    second = corejax.jit(corejax.vmap(corejax.grad(corejax.grad(lambda x: special.bessel_jn(x, v=2)[2]))))(x)
    np.testing.assert_allclose(second, scipy.special.jvp(2, x, 2), rtol=1e-10)
