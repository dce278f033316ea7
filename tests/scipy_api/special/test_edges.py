"""At poles, infinities, zeros and NaN: run, compiled, and what is right."""

import functools
import math

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
import corejax.scipy.special as special

INF, NAN = math.inf, math.nan
CASES = [
    ("beta", (NAN, -INF), NAN), ("beta", (0.0, 0.0), INF), ("beta", (1.0, -1.0), -1.0), ("beta", (INF, 1.0), 0.0),
    ("betaln", (1.0, -1.0), 0.0), ("betaln", (NAN, 1.0), NAN), ("betaln", (2.0, INF), -INF),
    ("betaln", (-1.0, 2.0), INF), ("comb", (INF, 0.0), 1.0), ("comb", (INF, 2.0), INF), ("comb", (5.0, NAN), NAN),
    ("comb", (NAN, 0.4), NAN),
    ("spence", (1.0,), 0.0), ("spence", (1e308,), -0.5 * math.log(1e308) ** 2 - math.pi**2 / 6),
    ("gamma", (-2.3e-308,), 1 / -2.3e-308), ("boxcox", (0.0, 1e-38), -INF), ("owens_t", (INF, INF), 0.0),
    ("owens_t", (1e30, INF), 0.0), ("expn", (INF, INF), NAN), ("expn", (3.0, 0.0), 0.5),
    ("expn", (4e9, 1.0), math.exp(-1) / (4e9 + 1) * (1 + 1 / 4e9)),
    ("expn", (1e10, 2.0), math.exp(-2) / (1e10 + 2) * (1 + 1e-10)), ("poch", (INF, 1.0), INF),
    ("poch", (1.0, -INF), NAN),
    # What SciPy has otherwise, and is right by mpmath or by the limit: poles of any size, quotients that overflow.
    ("beta", (0.0, -1.0), INF), ("beta", (-3.0, -0.0), INF), ("beta", (1.0, -1e30), -1e-30),
    ("beta", (0.25, -0.25), 0.0),
    ("beta", (-0.5, 1e30), -3544907701811032.0), ("betaln", (-1.5, 1e30), 104.47637620010853),
    ("betaln", (2.0, -1e30), -138.15510557964274), ("betaln", (0.5, 1.7976931348623157e308), -354.3189915037673),
    ("comb", (1.7e308, 0.5), 1.4712264360219254e154), ("comb", (1.7e308, 8e307), INF),
    ("poch", (-1.0, 1e-40), 0.0), ("poch", (1e-8, -30.0), 3.7699877794264325e-33), ("poch", (1e30, 1.0), 1e30),
    ("poch", (1e30, 0.5), 1e15), ("poch", (1.0, -30.0), INF), ("poch", (INF, 2.5), INF), ("poch", (0.5, -1e30), 0.0),
    ("poch", (1e-30, -100.0), 1.0 / math.factorial(100)), ("poch", (1e-10, -40.0), 1.2256174396527715e-48),
    ("poch", (-3.0, 2.0), 6.0), ("poch", (-3.0, 5.0), 0.0), ("poch", (1.7e308, 0.5), math.sqrt(1.7e308)),
    ("kl_div", (1.0, 1 - 2.0**-53), 2.0**-107), ("kl_div", (7.0, 2.3e-308), 4965.16446767804),
    ("owens_t", (7.0, 2.0**-52), 8.091807647364562e-28), ("owens_t", (-30.0, -1e-8), -5.87899749553196e-205),
    # Products that underflow, squares whose parts overflow, sums rounded next to a pole, far tails (mpmath).
    ("gamma", (-1e-155,), -1e155), ("owens_t", (2.0, 4776862.9972428605), 0.011375065974089604),
    ("gammainc", (13.81226072814719, 2.4921042960399954e-11), 6.6026791459422465e-158),
    ("betainc", (48.5780485319188, 1.1212182681237294e-20, 0.9999999999931501), 2.383343891280316e-19),
    ("beta", (1e30, -1e30), 1e-30),
    ("beta", (1e-12, -11.00000011), 999990909087.9075), ("poch", (-1e300, 1e300), INF),
    ("betaln", (1e100, 1e158), -1.3454993539365465e102),
    ("comb", (915747.0, 54.0), 3.731475192102286e250), ("expn", (164.0, 82.0), 9.956179590295653e-39),
    ("i0", (712.0,), 2.4684110577627523e307), ("i1", (-712.0,), -2.4666770135246153e307),
]  # fmt: skip


IN_FLOAT32 = [
    ("owens_t", (NAN, 0.0), NAN), ("owens_t", (1.0, NAN), NAN), ("rel_entr", (INF, 1.0), INF),
    ("rel_entr", (1.0, INF), -INF), ("rel_entr", (INF, INF), NAN), ("rel_entr", (3e38, 1e-38), INF),
    ("kl_div", (1e-38, 3e38), 3e38), ("boxcox", (INF, 0.5), INF), ("boxcox", (-1.0, 0.5), NAN),
    ("boxcox1p", (-1.0, 2.0), -0.5), ("boxcox1p", (1.2e-38, 3.389e38), 1.692826e-37),
    ("log_ndtr", (INF,), 0.0), ("log_ndtr", (-INF,), -INF), ("ndtr", (NAN,), NAN),
]  # fmt: skip


@functools.cache
def compiled(name):
    """For all of a function's points, as one program."""
    return corejax.jit(getattr(special, name))


@pytest.mark.parametrize(("name", "point", "wanted"), IN_FLOAT32)
def test_edges_of_float32(name, point, wanted):
    """Where that has a formula of its own."""
    f, operands = getattr(special, name), [np.float32(x) for x in point]
    for found in (f(*operands), compiled(name)(*operands)):
        np.testing.assert_allclose(found, np.float32(wanted), rtol=1e-6)


@pytest.mark.parametrize(("name", "point", "wanted"), CASES)
def test_edges(name, point, wanted):
    f, operands = getattr(special, name), [np.float64(x) for x in point]
    for found in (f(*operands), compiled(name)(*operands)):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
        if wanted == 0.0:
            assert not np.signbit(found)


def test_integrals_of_the_largest_numbers():
    for f in (special.fresnel, special.sici):
        run, compiled = f(np.float64(1.7e308)), corejax.jit(f)(np.float64(1.7e308))
        np.testing.assert_allclose(run, compiled, atol=1e-16)


def test_derivatives_at_edges():
    np.testing.assert_allclose(corejax.grad(special.expn, 1)(0, 1.0), -2 / math.e, rtol=1e-6)
    np.testing.assert_allclose(corejax.grad(special.boxcox, 1)(0.0, 1.0), 1.0)
    np.testing.assert_allclose(corejax.grad(special.boxcox1p, 1)(-1.0, 2.0), 0.25)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_nans_of_what_cannot_be_negative(dtype):
    """XLA takes `abs(x) >= 0` for true, of NaN too."""
    x = np.full(2, np.nan, dtype)
    two, third = jnp.full(2, 2.0, dtype), jnp.full(2, 0.3, dtype)
    for f in (
        lambda x: special.gammainc(two, x),
        lambda x: special.gammaincc(x, two),
        lambda x: special.betainc(x, two, third),
        lambda x: special.betainc(two, x, third),
        special.spence,
        lambda x: corejax.vmap(corejax.grad(special.gammainc))(two, x),
    ):
        for y in (lambda x: jnp.abs(x), lambda x: x * x, jnp.exp):
            assert np.isnan(corejax.jit(lambda x, f=f, y=y: f(y(x)))(x)).all()


def test_derivatives_of_choices_that_there_are_not():
    for x in ((1.0, 3.0), (2.0, 20.0), (3.0, -1.0), (-1.0, 2.0)):
        for i in (0, 1):
            by_one = corejax.grad(special.comb, argnums=i)
            assert by_one(*x) == 0.0
            assert corejax.grad(by_one, argnums=1)(*x) == 0.0
    assert np.isnan(corejax.grad(special.comb)(NAN, 2.0))
    np.testing.assert_allclose(corejax.grad(special.comb)(5.0, 2.0), 4.5, rtol=1e-6)  # of n (n - 1) / 2


def test_subnormal_numbers():
    """Run, they are not zero."""
    assert float(special.gammaln(np.float64(1e-310))) == pytest.approx(310 * math.log(10), rel=1e-14)
    assert float(special.betainc(*np.float64([1e-320, 1e-320, 0.75]))) == pytest.approx(0.5, rel=1e-12)
    assert float(special.hyp1f1(*np.float64([0.01, 18.5, -1e-320]))) == 1.0
