"""Distributions beside SciPy's: values in and outside of the support, derivatives beside jax's, bad parameters."""

from __future__ import annotations

import importlib
import inspect
import types

import numpy as np
import pytest
import scipy.stats

import corejax
import corejax.numpy as jnp
from corejax.scipy import stats

jax = pytest.importorskip("jax")
pytest.importorskip("jax.scipy.stats")

LINE = np.array([-30.0, -3.0, -1.0, -0.3, 0.0, 0.2, 0.5, 0.9, 1.0, 1.7, 4.0, 30.0])
BROKEN = np.array([np.nan, -0.0])  # what comparisons take for something else
COUNTS = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 7.0, 12.0])
UNIT = np.array([0.0, 1e-9, 0.01, 0.3, 0.5, 0.75, 1 - 1e-9, 1.0, -0.1, 1.1, np.nan])

# name -> shapes, and whether there are loc and scale
SHAPES = {
    "bernoulli": [0.3], "beta": [2.5, 0.7], "betabinom": [7.0, 1.5, 2.5], "binom": [7.0, 0.4], "cauchy": [],
    "chi2": [3.5], "expon": [], "gamma": [1.7], "gennorm": [1.4], "geom": [0.3], "gumbel_l": [], "gumbel_r": [],
    "laplace": [], "logistic": [], "nbinom": [3.5, 0.4], "norm": [], "pareto": [2.2], "poisson": [3.3], "t": [4.5],
    "truncnorm": [-1.5, 0.8], "uniform": [], "vonmises": [1.3], "wrapcauchy": [0.4],
}  # fmt: skip
NO_LOCATION = ("gennorm", "vonmises", "wrapcauchy")
DISCRETE = ("bernoulli", "betabinom", "binom", "geom", "nbinom", "poisson")


def _functions(name):
    theirs = getattr(jax.scipy.stats, name)
    return [n for n in dir(theirs) if not n.startswith("_")]


def test_names():
    names = {n for n in dir(jax.scipy.stats) if not n.startswith("_")}
    assert names == set(stats.__all__)
    for name in names:
        theirs = getattr(jax.scipy.stats, name)
        if isinstance(theirs, types.ModuleType):
            for function in _functions(name):
                want = inspect.signature(getattr(theirs, function)).parameters.values()
                got = inspect.signature(getattr(getattr(stats, name), function)).parameters.values()
                assert [(p.name, p.default) for p in got] == [(p.name, p.default) for p in want], (name, function)


def test_distributions_are_imported_as_modules():
    for name in (*SHAPES, "dirichlet", "multinomial", "multivariate_normal"):
        found = importlib.import_module(f"corejax.scipy.stats.{name}")
        assert found is getattr(stats, name) and isinstance(found, types.ModuleType)
    from corejax.scipy.stats.gamma import logpdf

    assert logpdf is stats.gamma.logpdf
    for name in ("rankdata", "nothing", "continuous.gamma"):
        with pytest.raises(ModuleNotFoundError, match=f"corejax.scipy.stats.{name}"):
            importlib.import_module(f"corejax.scipy.stats.{name}")


@pytest.mark.parametrize("name", [n for n in SHAPES if n not in (*DISCRETE, "vonmises")])
def test_broken_numbers(name):
    ours = {function: getattr(getattr(stats, name), function) for function in _functions(name)}
    compiled = corejax.jit(lambda x, *shapes: {function: f(x, *shapes) for function, f in ours.items()})
    compiled_all = compiled(BROKEN, *SHAPES[name])
    for function, f in ours.items():
        with np.errstate(all="ignore"):
            wanted = getattr(getattr(scipy.stats, name), function)(BROKEN, *SHAPES[name])
        for found in (f(BROKEN, *SHAPES[name]), compiled_all[function]):
            np.testing.assert_allclose(found, wanted, err_msg=f"{name}.{function}")


@pytest.mark.parametrize("name", SHAPES)
def test_values(name):
    shapes = SHAPES[name]
    places = [()] if name in NO_LOCATION else [(), (2.0,)] if name in DISCRETE else [(), (0.7, 1.9)]
    for function in _functions(name):
        for place in places:
            if function in ("cdf", "ppf") and name == "bernoulli" and place:
                continue
            if function == "entropy":
                xs = np.array([0.0, 0.3, 5.0, 60.0, 300.0])
                want = [scipy.stats.poisson(m).entropy() for m in xs[1:]]
                np.testing.assert_allclose(stats.poisson.entropy(xs), [0.0, *want], rtol=1e-7)
                continue
            xs = UNIT if function in ("ppf", "isf") else COUNTS if name in DISCRETE else LINE
            if name == "vonmises":
                xs = np.linspace(-3.1, 3.1, 9)
            with np.errstate(all="ignore"):
                want = getattr(getattr(scipy.stats, name), function)(xs, *shapes, *place)
            got = getattr(getattr(stats, name), function)(xs, *shapes, *place)
            np.testing.assert_allclose(got, want, rtol=2e-9, atol=1e-300, err_msg=f"{name}.{function}{place}")


def test_derivatives_are_those_of_jax():
    """One program for all of them: reverse mode by every argument, under vmap and jit."""

    def total(stats_, x):
        out = 0.0
        for name, shapes in SHAPES.items():
            if name in DISCRETE:
                out = out + getattr(stats_, name).logpmf(2.0, *[s + 0 * x for s in shapes[:-1]], shapes[-1] * x)
            elif name not in ("gennorm", "truncnorm"):
                out = out + getattr(stats_, name).logpdf(x * 0.9 + (name == "pareto"), *[s * x for s in shapes])
        out = out + stats_.norm.logcdf(-x, 0.1, x) + stats_.gamma.cdf(x, 2.0) + stats_.cauchy.sf(x)
        return out + stats_.logistic.ppf(0.3 * x) + stats_.truncnorm.logpdf(x, -1.0, 2.0 * x, 0.1, 1.5)

    x = np.array([0.6, 0.8, 0.95], "float32")
    got = corejax.jit(corejax.vmap(corejax.grad(lambda x: total(stats, x))))(x)
    want = jax.jit(jax.vmap(jax.grad(lambda x: total(jax.scipy.stats, x))))(x)
    np.testing.assert_allclose(got, want, rtol=2e-4)


def test_derivatives_outside_of_the_support_are_finite():
    for name in ("beta", "gamma", "expon", "pareto", "uniform", "chi2"):
        function = getattr(stats, name).logpdf
        slopes = corejax.grad(lambda *shapes, f=function: f(-2.0, *shapes), argnums=0)(*(SHAPES[name] or [0.5]))
        assert np.isfinite(slopes), name


def test_vectors():
    p, n = np.array([0.2, 0.3, 0.5]), 6
    x = np.array([[1, 2, 3], [6, 0, 0], [1, 1, 1]])
    np.testing.assert_allclose(stats.multinomial.pmf(x, n, p), scipy.stats.multinomial.pmf(x, n, p), rtol=1e-6)
    alpha, y = np.array([0.7, 2.0, 1.3]), np.array([[0.2, 0.5], [0.3, 0.1], [0.5, 0.4]])
    want = scipy.stats.dirichlet.logpdf(y, alpha)
    np.testing.assert_allclose(stats.dirichlet.logpdf(y, alpha), want, rtol=1e-12)
    np.testing.assert_allclose(stats.dirichlet.logpdf(y[:2], alpha), want, rtol=1e-12)
    assert stats.dirichlet.logpdf(np.array([0.5, 0.9, 0.1]), alpha) == -np.inf


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("norm", (0.3, 0.0, -1.0)), ("gamma", (0.3, -1.0)), ("beta", (0.3, 1.0, 0.0)), ("truncnorm", (0.3, 1.0, -1.0)),
        ("expon", (0.3, 0.0, 0.0)),
    ],
)  # fmt: skip
def test_parameters_that_make_no_sense_give_nan(name, arguments):
    assert np.isnan(getattr(stats, name).logpdf(*arguments)) and np.isnan(getattr(stats, name).cdf(*arguments))
    with np.errstate(all="ignore"):
        assert np.isnan(getattr(scipy.stats, name).logpdf(*arguments))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.norm.logpdf([1.0]), TypeError, r"norm.logpdf takes arrays and scalars, got \[1.0\]"),
        (lambda s: s.norm.logpdf(1.0, 2.0, 3.0, 4.0), TypeError, "positional"),
        (lambda s: s.norm.pdf(jnp.ones(2), jnp.ones(3)), ValueError, "norm.logpdf"),
        (lambda s: s.gamma.cdf(1j, 2.0), TypeError, "gamma.cdf is of real numbers"),
        (lambda s: s.multinomial.pmf(jnp.ones(3), 3, jnp.ones(3) / 3), ValueError, "multinomial: x must have integers"),
        (
            lambda s: s.dirichlet.pdf(jnp.ones(4), jnp.ones(2)),
            ValueError,
            "dirichlet: the first axis of x must have the 2",
        ),
        (lambda s: s.mode(jnp.ones(3), axis=1), np.exceptions.AxisError, "mode: axis 1 is out of bounds"),
        (lambda s: s.mode(jnp.ones(3), nan_policy="skip"), ValueError, "mode: nan_policy must be one of"),
        (lambda s: s.rankdata(jnp.ones(3), "best"), ValueError, "rankdata: method must be one of .*, got 'best'"),
        (lambda s: s.sem(jnp.ones(3), nan_policy="raise"), ValueError, "sem: nan_policy must be one of"),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call(stats)


@pytest.mark.parametrize("wide", [False, True])
def test_dtypes(wide, monkeypatch):
    """Results are of their operands' dtype, and as strongly typed, whatever the default is."""
    monkeypatch.setattr(corejax.config, "default_dtype_bits", 64 if wide else 32)
    half = jnp.full(2, 0.5, "float16")
    for name, shapes in SHAPES.items():
        for function in _functions(name):
            count = len(shapes) + (function != "entropy")
            got = getattr(getattr(stats, name), function)(*[half] * count)
            assert (got.dtype, got.weak_type) == (np.float16, False), (name, function)


def test_samples():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 4, (5, 7))
    for axis in (0, 1, -1, None):
        for keepdims in (False, True):
            want = scipy.stats.mode(x, axis, keepdims=keepdims)
            got = stats.mode(x, axis, keepdims=keepdims)
            np.testing.assert_array_equal(got.mode, want.mode)
            np.testing.assert_array_equal(got.count, want.count)
        y = x.astype("float64")
        np.testing.assert_allclose(stats.sem(y, axis), scipy.stats.sem(y, axis), rtol=1e-12)
        methods = ("average", "min", "max", "dense", "ordinal")
        ranks = corejax.jit(lambda x, a=axis, ms=methods: [stats.rankdata(x, m, axis=a) for m in ms])(x)
        for method, got in zip(methods, ranks, strict=True):
            np.testing.assert_allclose(got, scipy.stats.rankdata(x, method, axis=axis), err_msg=method)
    nan = np.nan
    for row in ([nan, 1.0, nan], [nan, nan, 2.0, 2.0, 2.0], [1.0, nan], [nan, nan], [[nan, 1.0], [nan, 2.0]]):
        for x, axis in ((np.array(row), 0), (np.array(row, complex), None)):
            want = scipy.stats.mode(x.real, axis)
            np.testing.assert_array_equal(np.real(stats.mode(x, axis).mode), want.mode)
            np.testing.assert_array_equal(stats.mode(x, axis).count, want.count)
    holes = np.array([[1.0, np.nan, 3.0], [2.0, 5.0, 7.0]])
    np.testing.assert_allclose(stats.sem(holes, 1, nan_policy="omit"), scipy.stats.sem(holes, 1, nan_policy="omit"))
    np.testing.assert_array_equal(np.isnan(stats.rankdata(holes, axis=1)), [[True] * 3, [False] * 3])


def test_standard_errors_of_complex_numbers():
    x = np.array([1 + 1j, 2.0, 3j, np.nan])
    np.testing.assert_allclose(stats.sem(x[:3]), np.std(x[:3], ddof=1) / np.sqrt(3))
    np.testing.assert_allclose(stats.sem(x, nan_policy="omit"), np.std(x[:3], ddof=1) / np.sqrt(3))


def test_counts_that_are_booleans():
    np.testing.assert_allclose(stats.multinomial.pmf(np.array([True, False]), True, np.array([0.2, 0.8])), 0.2)


def test_quantiles_of_cauchys_distribution_have_derivatives():
    q = np.array([0.1, 0.25, 0.5, 0.7, 0.75, 0.999])
    slope = np.pi / np.sin(np.pi * q) ** 2
    np.testing.assert_allclose(corejax.vmap(corejax.grad(stats.cauchy.ppf))(q), slope, rtol=1e-12)
    np.testing.assert_allclose(corejax.vmap(corejax.grad(stats.cauchy.isf))(q), -slope, rtol=1e-12)


def test_heavy_tails_beyond_where_squares_overflow():
    """Of float16 that is from 256 on; SciPy's own values are of float64."""
    for dtype, points in ((np.float16, [300.0, -6e4]), (np.float32, [1e25, -1e38])):
        x = np.array(points, dtype)
        for name, shape in (("cauchy", ()), ("t", (3.0,))):
            want = getattr(scipy.stats, name).logpdf(x.astype(np.float64), *shape)
            logpdf = getattr(stats, name).logpdf
            np.testing.assert_allclose(logpdf(x, *shape).astype(np.float32), want, rtol=3 * np.finfo(dtype).eps)
            slope = corejax.vmap(corejax.grad(lambda x, f=logpdf, shape=shape: f(x, *shape)))(x)
            power = 2.0 if name == "cauchy" else shape[0] + 1.0
            np.testing.assert_allclose(slope.astype(np.float32), -power / x.astype(np.float64), rtol=5e-3)
    ends = stats.cauchy.logpdf(np.array([np.inf, -np.inf, np.nan, 0.0], np.float32))
    np.testing.assert_allclose(ends, [-np.inf, -np.inf, np.nan, -np.log(np.pi)], rtol=1e-6)
