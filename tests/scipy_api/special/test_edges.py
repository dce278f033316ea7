"""At poles, infinities, zeros and NaN: run, compiled, and what is right."""

import math

import numpy as np
import pytest

import corejax
import corejax.scipy.special as special

INF, NAN = math.inf, math.nan
CASES = [
    ("beta", (NAN, -INF), NAN), ("beta", (0.0, 0.0), INF), ("beta", (1.0, -1.0), -1.0), ("beta", (INF, 1.0), 0.0),
    ("betaln", (1.0, -1.0), 0.0), ("betaln", (NAN, 1.0), NAN), ("betaln", (2.0, INF), -INF),
    ("betaln", (-1.0, 2.0), INF), ("comb", (INF, 0.0), 1.0), ("comb", (INF, 2.0), INF), ("comb", (5.0, NAN), NAN),
    ("spence", (1.0,), 0.0), ("spence", (1e308,), -0.5 * math.log(1e308) ** 2 - math.pi**2 / 6),
    ("gamma", (-2.3e-308,), 1 / -2.3e-308), ("boxcox", (0.0, 1e-38), -INF), ("owens_t", (INF, INF), 0.0),
    ("owens_t", (1e30, INF), 0.0), ("expn", (INF, INF), NAN), ("expn", (3.0, 0.0), 0.5), ("poch", (INF, 1.0), INF),
    ("poch", (1.0, -INF), NAN),
]  # fmt: skip


@pytest.mark.parametrize(("name", "point", "wanted"), CASES)
def test_edges(name, point, wanted):
    f, operands = getattr(special, name), [np.float64(x) for x in point]
    for found in (f(*operands), corejax.jit(f)(*operands)):
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
