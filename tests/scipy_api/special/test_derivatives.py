"""Derivatives by the first operand, of first and second order, at ordinary and at extreme points."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import corejax
import corejax.scipy.special as special
import corejax.scipy.stats as stats

# Functions, operands, and both derivatives: mpmath's, in 50 digits.
ROWS = [
    ("erfcx", (0.5,), -0.5126888229025867, 0.718691865483265),
    ("erfcx", (5.0,), -0.02133278976482631, 0.008081377817874151),
    ("erfcx", (50.0,), -0.00022554056313532387, 9.016217115157223e-06),
    ("erfcx", (10000.0,), -5.641895750849127e-09, 1.1283791332441388e-12),
    ("dawsn", (0.5,), 0.5755636164979777, -1.4244363835020224),
    ("dawsn", (5.0,), -0.021340744242768356, 0.009139293579129872),
    ("dawsn", (20.0,), -0.001254717056146878, 0.0001259463930677713),
    ("log_ndtr", (-300.0,), 300.0033332592634, -0.999988889629561),
    ("log_ndtr", (-30.0,), 30.033259667433676, -0.9988962284881099),
    ("log_ndtr", (-1.0,), 1.525135276160981, -0.8009023344296512),
    ("log_ndtr", (5.0,), 1.4867199409049056e-06, -7.433601914860711e-06),
    ("gammaln", (1e-06,), -1000000.5772140201, 1000000000001.645),
    ("gammaln", (1.0,), -0.5772156649015329, 1.6449340668482264),
    ("gammaln", (2.0,), 0.42278433509846713, 0.6449340668482264),
    ("gammaln", (-3.75,), -1.6923885983113303, 19.504980060599575),
    ("digamma", (1e-06,), 1000000000001.645, -2.0000000000000003e+18),
    ("digamma", (1.5,), 0.9348022005446793, -0.82879664423432),
    ("digamma", (-3.75,), 19.504980060599575, -124.07972713378925),
    ("spence", (0.125,), -2.3765046190626697, 6.426851863928378), ("spence", (1.0,), -1.0, 0.5),
    ("spence", (30.0,), -0.11728266833317777, 0.0028948046551670495),
    ("logit", (0.75,), 5.333333333333333, 14.222222222222221),
    ("logit", (0.0009765625,), 1025.0009775171065, -1048574.9980440103),
    ("expi", (0.5,), 3.2974425414002564, -3.2974425414002564),
    ("expi", (-2.0,), -0.06766764161830635, -0.10150146242745951),
    ("expi", (50.0,), 1.0369411057174145e+20, 1.0162022836030662e+20),
    ("exp1", (0.5,), -1.2130613194252668, 3.6391839582758005),
    ("exp1", (50.0,), -3.8574996959278354e-24, 3.934649689846392e-24),
    ("i0e", (0.5,), -0.4886144672642784, 0.6643873281588133),
    ("i0e", (8.5,), -0.008452487960251743, 0.0015462282623157357),
    ("i0e", (-3.0,), 0.046173640864524544, 0.026738377296615472),
    ("beta", (0.5, 2.5), -3.4003354353719604, 15.162775134437931),
    ("beta", (-0.5, 2.5), 1.8203692905261166, -39.768281634159415),
    ("beta", (10000.0, 2.5), -3.322478770712668e-14, 1.1627803677620007e-17),
    ("betaln", (0.5, 2.5), -2.886294361119891, 4.539868133696453),
    ("betaln", (1048576.0, 2.5), -2.3841840857152276e-06, 2.273733501832007e-12),
    ("poch", (0.5, 2.5), 3.2568344271929366, 4.27749021888424),
    ("beta", (0.5, -0.5), -6.283185307179586, 17.420688722428817), ("beta", (-5.0, 2.0), 0.0225, 0.01525),
    ("beta", (-1.5, 0.5), -4.188790204786391, -2.3488415343354254), ("betaln", (-5.0, 2.0), 0.45, 0.1025),
    ("poch", (-3.0, 5.0), -6.0, 10.0), ("poch", (-3.0, 2.0), -5.0, 2.0), ("poch", (0.0, 1.0), 1.0, 0.0),
    ("poch", (10000.0, 2.5), 2500281.252539099, 375.0140623730414),
    ("rel_entr", (0.5, 2.5), -0.6094379124341004, 2.0), ("rel_entr", (2.5, 2.5), 1.0, 0.4),
    ("rel_entr", (10000.0, 2.5), 9.294049640102028, 0.0001), ("kl_div", (0.5, 2.5), -1.6094379124341003, 2.0),
    ("kl_div", (10000.0, 2.5), 8.294049640102028, 0.0001), ("boxcox", (0.25, 0.5), 2.0, -4.0),
    ("boxcox", (30.0, 0.5), 0.18257418583505536, -0.003042903097250923),
    ("zeta", (1.0625, 1.5), -256.0323346777262, 8192.008040269942),
    ("zeta", (10.0, 1.5), -0.007132534960330993, 0.00294552408749088),
    ("hyp1f1", (-1.0, 2.5, 1.5), 0.4548839742255438, 0.25465392653652485),
    ("hyp1f1", (1.25, 2.5, 1.5), 1.3434858182564093, 0.568480776003043),
    ("hyp2f1", (-1.0, 0.5, 2.5, 0.5), 0.08809188616739755, 0.021190235827439848),
    ("hyp2f1", (1.25, 0.5, 2.5, 0.5), 0.1608445740285141, 0.04759388583957431),
]  # fmt: skip
NAMES = sorted({name for name, *_ in ROWS})


def _points(name, dtype):
    rows = [row for row in ROWS if row[0] == name]
    return [np.array(x, dtype) for x in zip(*[row[1] for row in rows], strict=True)], [row[2:] for row in rows]


@pytest.mark.parametrize("name", NAMES)
def test_derivatives(name):
    """Run and compiled, of single numbers and batched; in float32 too, where some round what cancels."""
    for dtype, tolerance in (("float64", 1e-7), ("float32", 2e-4)):
        xs, wanted = _points(name, dtype)
        wanted = np.array(wanted).T
        with np.errstate(over="ignore"):
            known = np.isfinite(wanted.astype(dtype)) & (np.abs(wanted) > np.finfo(dtype).tiny)
        first = corejax.grad(getattr(special, name))
        # Derivatives by parameters are loops, which have none in reverse.
        orders = (first,) if name.startswith("hyp") else (first, corejax.grad(first))
        batched = [corejax.vmap(f) for f in orders]
        compiled = corejax.jit(lambda *xs, fs=batched: [f(*xs) for f in fs])(*xs)
        for order, f in enumerate(batched):
            for got in (f(*xs), compiled[order]):
                assert got.dtype == dtype
                chosen = known[order]
                np.testing.assert_allclose(np.asarray(got)[chosen], wanted[order][chosen], rtol=tolerance)


def test_integrands_of_large_numbers():
    """Fresnel's: the square is not rounded."""
    x = np.array([300.25, 1000.5, 4096.125], np.float32)
    for i, f in enumerate((np.sin, np.cos)):
        slope = corejax.vmap(corejax.grad(lambda x, i=i: special.fresnel(x)[i]))(x)
        turns = np.remainder(x.astype(np.float64) ** 2, 4.0)
        np.testing.assert_allclose(slope, f(np.pi / 2 * turns), atol=1e-6)


@pytest.mark.parametrize("part", ["real", "imag"])
def test_spherical_harmonics(part):
    """Of both orders by both angles, at the poles too, as SciPy has them."""
    n, m = (np.array(x) for x in zip(*[(n, m) for n in range(4) for m in range(-n, n + 1)], strict=True))
    for polar in (0.0, 0.75, np.pi):
        theta, phi = np.full(n.shape, polar), np.full(n.shape, 0.25)
        _, first, second = scipy.special.sph_harm_y(n, m, theta, phi, diff_n=2)

        def total(theta, phi):
            return getattr(special.sph_harm_y(n, m, theta, phi, n_max=3), part).sum()

        for i in (0, 1):
            slope = corejax.grad(total, i)
            np.testing.assert_allclose(slope(theta, phi), getattr(first[..., i], part), atol=1e-14)
            for j in (0, 1):
                curvature = corejax.grad(lambda *x, f=slope: f(*x).sum(), j)(theta, phi)
                np.testing.assert_allclose(curvature, getattr(second[..., i, j], part), atol=1e-14)


def test_gennorm_far_out():
    """Where a power overflows."""
    assert corejax.grad(stats.gennorm.cdf)(40.0, 300.0) == 0.0


def test_weak_types_stay():
    for f in (special.gamma, special.loggamma):
        z, _ = corejax.jvp(f, (1.5 + 0.5j,), (1.0 + 0.0j,))
        assert z.dtype == "complex64" and z.weak_type
