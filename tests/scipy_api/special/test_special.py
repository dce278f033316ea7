"""`corejax.scipy.special` beside SciPy: values, compiled values, derivatives, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import corejax
import corejax.numpy as jnp
from corejax.scipy import special

jax = pytest.importorskip("jax")
pytest.importorskip("jax.scipy.special")
pytestmark = pytest.mark.numbers

RNG = np.random.default_rng(7)
LINE = np.concatenate([np.linspace(-9.0, 9.0, 61), [-40.0, -1e-3, 1e-9, 0.5, 25.0, 100.0]])
POSITIVE = np.concatenate([np.linspace(0.05, 12.0, 50), [1e-8, 40.0, 300.0]])
UNIT = np.concatenate([np.linspace(0.01, 0.99, 41), [1e-12, 1e-100, 1 - 1e-9]])


def _grid(*ranges):
    return [RNG.uniform(low, high, 60) for low, high in ranges]


# name -> operands in float64, and how far the compiled series may be off, in relative error
CASES = {
    "beta": (_grid((0.1, 20), (0.1, 20)), 1e-13),
    "betaln": (_grid((0.1, 200), (0.1, 200)), 1e-13),
    "boxcox": (_grid((0.1, 5), (-2, 2)), 1e-13),
    "boxcox1p": (_grid((-0.9, 5), (-2, 2)), 1e-13),
    "dawsn": ([LINE], 1e-13),
    "digamma": ([POSITIVE], 1e-13),
    "entr": ([LINE], 1e-14),
    "erf": ([LINE], 1e-14),
    "erfc": ([LINE], 1e-13),
    "erfcx": ([LINE[LINE > -26]], 1e-13),
    "erfinv": ([np.linspace(-0.999, 0.999, 41)], 1e-12),
    "exp1": ([POSITIVE], 1e-13),
    "erfcinv": ([2 * UNIT], 1e-13),
    "expi": ([np.concatenate([LINE, [60.0]])], 1e-12),
    "expit": ([LINE], 1e-14),
    "gamma": ([LINE], 1e-13),
    "gammainc": (_grid((0.1, 20), (0.1, 20)), 1e-12),
    "gammaincc": (_grid((0.1, 20), (0.1, 20)), 1e-12),
    "gammaln": ([POSITIVE], 1e-13),
    "gammasgn": ([LINE], 0.0),
    "hyp1f1": (_grid((-4, 4), (0.3, 5), (-60, 60)), 1e-9),
    "hyp2f1": (_grid((-2, 2), (-2, 2), (0.6, 4), (-4, 0.99)), 1e-9),
    "i0": ([LINE], 1e-13),
    "i0e": ([LINE], 1e-13),
    "i1": ([LINE], 1e-12),
    "i1e": ([LINE], 1e-12),
    "kl_div": (_grid((0.1, 3), (0.1, 3)), 1e-10),
    "log_ndtr": ([LINE], 1e-13),
    "logit": ([UNIT], 1e-13),
    "ndtr": ([LINE], 1e-12),
    "ndtri": ([UNIT], 1e-13),
    "owens_t": (_grid((-6, 6), (-4, 4)), 1e-12),
    "poch": (_grid((0.1, 20), (0.1, 20)), 1e-12),
    "rel_entr": (_grid((0.1, 3), (0.1, 3)), 1e-12),
    "spence": ([POSITIVE], 1e-13),
    "xlog1py": (_grid((0, 3), (-0.9, 3)), 1e-12),
    "xlogy": (_grid((0, 3), (0.1, 3)), 1e-13),
}


def test_names():
    names = {n for n in dir(jax.scipy.special) if not n.startswith("_")}
    assert names | {"erfcinv"} == set(special.__all__)  # which JAX has from 0.12 on
    assert all(callable(getattr(special, name)) for name in names)


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    xs, tolerance = CASES[name]
    with np.errstate(all="ignore"):
        want = getattr(scipy.special, name)(*xs)
    function = getattr(special, name)
    np.testing.assert_allclose(function(*xs), want, rtol=1e-12, atol=1e-300)
    assert function(*[x.astype("float32") for x in xs]).dtype == "float32"
    np.testing.assert_allclose(corejax.jit(function)(*xs), want, rtol=tolerance, atol=1e-300)


def test_derivatives_are_those_of_differences():
    for name, (xs, _) in CASES.items():
        if name in ("gammasgn", "gammainc", "gammaincc"):
            continue
        points = [np.array([0.35, 0.61, 0.83]) + 0.4 * i for i in range(len(xs))]
        if name == "hyp2f1":
            points[3] = points[3] - 1.4
        function = getattr(special, name)
        h = 1e-5
        for i in range(len(xs)):
            moved = [[x + s * h * (j == i) for j, x in enumerate(points)] for s in (1, -1)]
            want = (np.asarray(function(*moved[0])) - np.asarray(function(*moved[1]))) / (2 * h)
            tangents = tuple(np.ones(3) * (j == i) for j in range(len(xs)))
            got = corejax.jvp(function, tuple(points), tangents)[1]
            np.testing.assert_allclose(got, want, rtol=2e-7, atol=1e-8, err_msg=f"{name} by operand {i}")


def test_two_results():
    np.testing.assert_allclose(special.fresnel(LINE), scipy.special.fresnel(LINE), rtol=1e-12)
    np.testing.assert_allclose(corejax.jit(special.fresnel)(LINE), scipy.special.fresnel(LINE), rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(special.sici(LINE), scipy.special.sici(LINE), rtol=1e-12)
    np.testing.assert_allclose(corejax.jit(special.sici)(LINE), scipy.special.sici(LINE), rtol=1e-11, atol=1e-15)


def test_complex():
    z = RNG.uniform(-8, 8, 80) + 1j * RNG.uniform(-6, 6, 80)
    for name in ("gamma", "loggamma", "wofz"):
        want = getattr(scipy.special, name)(z)
        np.testing.assert_allclose(getattr(special, name)(z), want, rtol=1e-12)
        np.testing.assert_allclose(corejax.jit(getattr(special, name))(z), want, rtol=1e-11)
    assert special.wofz(1.0).dtype == "complex64"
    slope = corejax.grad(special.gamma, holomorphic=True)(jnp.asarray(1.5 + 0.5j, "complex128"))
    want = scipy.special.gamma(1.5 + 0.5j) * scipy.special.psi(1.5 + 0.5j)
    np.testing.assert_allclose(slope, want, rtol=1e-12)


def test_special_points():
    """Ends of domains, poles, infinities and NaN: SciPy's values, run and compiled."""
    points = np.array([-np.inf, -2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, np.inf, np.nan])
    for name in ("erfcx", "dawsn", "ndtr", "log_ndtr", "ndtri", "erfcinv", "exp1", "expi", "spence", "entr", "logit"):
        with np.errstate(all="ignore"):
            want = getattr(scipy.special, name)(points)
        if name == "spence":
            want[-2] = -np.inf  # the limit; SciPy has NaN
        got, compiled = getattr(special, name)(points), corejax.jit(getattr(special, name))(points)
        np.testing.assert_allclose(got, want, rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(compiled, want, rtol=1e-12, err_msg=name)
    n, x = np.array([0.0, 1.0, 2.0, 3.0, -1.0, 2.0, 0.0]), np.array([0.0, 0.0, 0.0, np.inf, 1.0, np.nan, 2.0])
    np.testing.assert_allclose(special.expn(n, x), scipy.special.expn(n, x))
    np.testing.assert_allclose(corejax.jit(special.expn)(n, x), scipy.special.expn(n, x), rtol=1e-13)
    x, y = np.array([0.0, 0.0, 0.0, 1.0, -1.0, 2.0]), np.array([0.0, np.nan, -1.0, 0.0, 1.0, np.inf])
    for name in ("xlogy", "rel_entr", "kl_div"):
        with np.errstate(all="ignore"):
            want = getattr(scipy.special, name)(x, y)
        np.testing.assert_allclose(getattr(special, name)(x, y), want, err_msg=name)
        np.testing.assert_allclose(corejax.jit(getattr(special, name))(x, y), want, err_msg=name)


def test_orders_and_counts():
    x = np.linspace(-30, 30, 61)
    want = scipy.special.jn(np.arange(6)[:, None], x)
    np.testing.assert_allclose(special.bessel_jn(x, v=5), want, rtol=1e-12, atol=1e-15)
    compiled = corejax.jit(lambda x: special.bessel_jn(x, v=5))
    np.testing.assert_allclose(compiled(x), want, rtol=1e-11, atol=2e-15)
    np.testing.assert_allclose(special.bernoulli(30), scipy.special.bernoulli(30), rtol=1e-6)
    n, m = np.array([0, 1, 5, 7, 3, 2]), np.array([0, -1, 3, -7, 3, 3])
    theta, phi = RNG.uniform(0, 3, 6), RNG.uniform(-3, 3, 6)
    want = np.where(np.abs(m) <= n, scipy.special.sph_harm_y(n, m, theta, phi), 0)
    np.testing.assert_allclose(special.sph_harm_y(n, m, theta, phi), want, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(special.expn(3, POSITIVE), scipy.special.expn(3, POSITIVE), rtol=1e-12)
    np.testing.assert_allclose(special.comb(10.0, np.arange(-1.0, 12)), scipy.special.comb(10.0, np.arange(-1.0, 12)))
    np.testing.assert_allclose(special.comb(4.0, 3.0, repetition=True), 20.0)
    np.testing.assert_allclose(special.factorial(np.array([-1.0, 0, 5, 10])), [0, 1, 120, 3628800])
    for dtype, eps in ((jnp.bfloat16, 2.0**-8), (jnp.float16, 2.0**-11)):  # n + 1 is not rounded
        n = jnp.asarray([15.4375, 6.5, 2.25][dtype == jnp.float16 :], dtype)
        found = special.factorial(n)
        assert found.dtype == dtype
        np.testing.assert_allclose(
            np.asarray(found, float), scipy.special.factorial(np.asarray(n, float)), rtol=1.01 * eps
        )
    np.testing.assert_allclose(special.multigammaln(5.0, 3), scipy.special.multigammaln(5.0, 3), rtol=1e-6)
    np.testing.assert_allclose(special.polygamma(2, POSITIVE), scipy.special.polygamma(2, POSITIVE), rtol=1e-11)
    np.testing.assert_allclose(special.zeta(3.0, POSITIVE), scipy.special.zeta(3.0, POSITIVE), rtol=1e-11)
    np.testing.assert_allclose(special.betainc(2.0, 3.0, UNIT), scipy.special.betainc(2.0, 3.0, UNIT), rtol=1e-11)
    slope = (scipy.special.zeta(2.5 + 1e-5, 1.5) - scipy.special.zeta(2.5 - 1e-5, 1.5)) / 2e-5
    np.testing.assert_allclose(corejax.grad(special.zeta)(jnp.float64(2.5), jnp.float64(1.5)), slope, rtol=1e-8)


def test_classes():
    x = RNG.standard_normal((3, 4)).astype("float32")
    np.testing.assert_allclose(special.logsumexp(x, axis=1), scipy.special.logsumexp(x, axis=1), rtol=1e-5)
    np.testing.assert_allclose(special.softmax(x), scipy.special.softmax(x), rtol=1e-5)
    np.testing.assert_allclose(special.log_softmax(x, axis=0), scipy.special.log_softmax(x, axis=0), rtol=1e-5)


def test_compositions():
    x = np.linspace(0.2, 2.0, 5).astype("float32")

    def f(special_, x):
        return special_.log_ndtr(x) + special_.expi(x) * special_.erfcx(x) - special_.xlogy(x, special_.gamma(x))

    got = corejax.jit(corejax.vmap(corejax.grad(lambda x: f(special, x))))(x)
    want = jax.vmap(jax.grad(lambda x: f(jax.scipy.special, x)))(x)
    np.testing.assert_allclose(got, want, rtol=1e-4)
    second = corejax.vmap(corejax.grad(corejax.grad(lambda x: f(special, x))))(x)
    np.testing.assert_allclose(second, jax.vmap(jax.grad(jax.grad(lambda x: f(jax.scipy.special, x))))(x), rtol=2e-3)
    zero = corejax.jit(special.erfcx)(jnp.zeros((0, 3)))
    assert zero.shape == (0, 3) and special.beta(jnp.ones((2, 1)), jnp.ones(3)).shape == (2, 3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda s: s.erfcx([1.0]),
            TypeError,
            r"erfcx takes arrays and scalars, got \[1.0\] of type list at position 0",
        ),
        (lambda s: s.beta(1.0, "a"), TypeError, "beta takes arrays and scalars, got 'a' of type str at position 1"),
        (lambda s: s.ndtri(jnp.array(1j)), TypeError, "ndtri is of real numbers, got c64"),
        (lambda s: s.beta(jnp.ones(2), jnp.ones(3)), ValueError, "beta"),
        (lambda s: s.multigammaln(3.0, 0), ValueError, "multigammaln: d must be 1 or more, got 0"),
        (lambda s: s.bernoulli(-1), ValueError, "bernoulli: n must be 0 or more, got -1"),
        (lambda s: s.bessel_jn(1.0, v=-1), ValueError, "bessel_jn: v must be 0 or more, got -1"),
        (lambda s: s.bessel_jn(1.0, v=1.5), TypeError, "bessel_jn: v must be an integer, got 1.5"),
        (lambda s: s.polygamma(1.0, 2.0), ValueError, "polygamma: n must have an integer dtype"),
        (lambda s: s.zeta(2.0), NotImplementedError, "zeta: pass q"),
        (lambda s: s.log_ndtr(1.0, 0), ValueError, "log_ndtr: series_order must be positive, got 0"),
        (lambda s: s.factorial(3, exact=True), NotImplementedError, "factorial"),
        (lambda s: s.sph_harm_y(1.5, 0, 0.1, 0.2), TypeError, "sph_harm_y: n must have integers, got"),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call(special)
