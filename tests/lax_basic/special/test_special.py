"""Special functions: values in units in the last place, special points, derivatives, batching, compiled, errors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import corejax
from corejax.errors import NotDifferentiableError
from corejax_lax_basic import lax
from tests.lax_basic.support import BFLOAT16, assert_same, check_derivatives, check_vmap, compiled, jax, sample

__all__ = ["jax"]

scipy_special = pytest.importorskip("scipy.special")

INF, NAN = np.inf, np.nan


class Row(NamedTuple):
    """A function, SciPy's, what is drawn for each operand, and how far the compiled one may be from SciPy's, in ulps.

    SciPy itself is off by so much where lgamma is small, and in the far tails of igamma and betainc. Ranges are of
    logarithms to the base 10 where there are several operands.
    """

    name: str
    reference: Callable[..., Any]
    ranges: tuple[tuple[float, float], ...]
    single: float = 1.5
    double: float = 16.0
    specials: tuple[tuple[float, ...], ...] = ()  # operands, and what comes


def _polygamma(m: Any, x: Any) -> Any:
    return np.where(m == 0, scipy_special.psi(x), scipy_special.polygamma(m.astype(int), x))


ROWS = [
    Row("erf", scipy_special.erf, ((-3, 3),), 8, 8, ((0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (NAN, NAN))),
    Row("erfc", scipy_special.erfc, ((-3, 3),), 32, 16, ((0.0, 1), (INF, 0), (-INF, 2), (30, 0), (NAN, NAN))),
    Row("erf_inv", scipy_special.erfinv, ((-0.99, 0.99),), 16, 32,
        ((0.0, 0.0), (-0.0, -0.0), (1, INF), (-1, -INF), (1.5, NAN), (NAN, NAN))),
    Row("bessel_i0e", scipy_special.i0e, ((-3, 30),), 8, 32, ((0.0, 1), (INF, 0), (-INF, 0), (NAN, NAN))),
    Row("bessel_i1e", scipy_special.i1e, ((-3, 30),), 16, 32,
        ((0.0, 0), (-0.0, -0.0), (INF, 0), (-INF, -0.0), (NAN, NAN))),
    Row("lgamma", scipy_special.gammaln, ((0.4, 6),), 1.5, 1e3,
        ((0.0, INF), (-2, INF), (1, 0), (2, 0), (INF, INF), (-INF, INF), (NAN, NAN))),
    Row("digamma", scipy_special.psi, ((0.2, 6),), 1.5, 128,
        ((0.0, NAN), (-0.0, NAN), (-2, NAN), (INF, INF), (-INF, NAN), (NAN, NAN))),
    Row("zeta", scipy_special.zeta, ((0.01, 1.2), (-1, 2)), 1.5, 64,
        ((1, 2, INF), (0.5, 2, NAN), (0, 0, NAN), (2, 0, INF), (3, 0, NAN), (2, -1, INF), (2.5, -0.5, NAN),
         (INF, 1, 1), (INF, 2, 0), (INF, 0.5, INF), (2, INF, 0), (2, 1e30, 1e-30), (NAN, 1, NAN), (2, NAN, NAN),
         (2, -0.5, 8.934802200544679), (3, -30.25, -62.012024658534))),
    Row("polygamma", _polygamma, ((0, 5), (-1, 2)), 1.5, 128,
        ((0, 0.0, NAN), (1, 0, INF), (2, 0, NAN), (1, INF, 0), (0.5, 2, NAN), (-1, 2, NAN), (1, NAN, NAN))),
    Row("igamma", scipy_special.gammainc, ((-2, 2.5), (-2, 2.5)), 1.5, 1e5,
        ((0, 0, NAN), (1, 0, 0), (0, 1, 1), (2, INF, 1), (INF, 2, 0), (INF, INF, NAN), (-1, 1, NAN), (1, -1, NAN),
         (NAN, 1, NAN), (1, NAN, NAN), (1e30, 1e30, 0.5))),
    Row("igammac", scipy_special.gammaincc, ((-2, 2.5), (-2, 2.5)), 1.5, 1e5,
        ((0, 0, NAN), (1, 0, 1), (0, 1, 0), (2, INF, 0), (INF, 2, 1), (INF, INF, NAN), (-1, 1, NAN), (1, -1, NAN),
         (1e-30, 1, 2.1938393439552029e-31), (1e30, 1e30, 0.5))),
    Row("betainc", scipy_special.betainc, ((-1, 1.5), (-1, 1.5), (-2, 0)), 1.5, 1e4,
        ((1, 1, 0, 0), (1, 1, 1, 1), (0, 1, 0.5, 1), (1, 0, 0.5, 0), (0, 0, 0.5, NAN), (1, 1, 2, NAN),
         (-1, 1, 0.5, NAN), (INF, 1, 0.5, 0), (1, INF, 0.5, 1), (NAN, 1, 0.5, NAN))),
]  # fmt: skip
each_row = pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
UNARY = [row for row in ROWS if len(row.ranges) == 1]


def _drawn(row: Row, dtype: Any, count: int = 300) -> list[np.ndarray]:
    rng, out = np.random.default_rng(0), []
    for low, high in row.ranges:
        x = rng.uniform(low, high, count)
        out.append((np.round(x) if (low, high) == (0, 5) else x if len(row.ranges) == 1 else 10**x).astype(dtype))
    return out


def _ulps(got: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    wide, wanted = got.astype(np.float64), wanted.astype(got.dtype)
    assert (np.isnan(got) == np.isnan(wanted)).all()
    normal = np.isfinite(wanted) & (np.abs(wanted) > np.finfo(got.dtype).tiny / np.finfo(got.dtype).eps)
    return np.abs(wide - wanted)[normal] / np.spacing(np.abs(wanted))[normal]


@each_row
def test_accuracy_and_special_points(row: Row) -> None:
    """Run, as accurate as SciPy in float64; compiled, as the row says; at special points the same in both."""
    function = getattr(lax, row.name)
    for dtype, limit in ((np.float32, row.single), (np.float64, row.double)):
        xs = _drawn(row, dtype)
        with np.errstate(all="ignore"):
            wanted = row.reference(*(x.astype(np.float64) for x in xs))
        at = np.array(row.specials, dtype)
        operands = [np.concatenate([x, at[:, i]]) for i, x in enumerate(xs)]
        run = np.asarray(function(*operands))
        both = run, np.asarray(compiled(function)(*operands))
        # SciPy itself is not accurate about the zeros of these two.
        amended = row.name in ("lgamma", "digamma") and dtype == np.float64
        for got, most in zip(both, (limit if amended else 2.5 if dtype == np.float32 else 4, limit), strict=True):
            assert got.dtype == dtype
            assert _ulps(got[: len(wanted)], wanted).max() <= most
            special = got[len(wanted) :]
            np.testing.assert_allclose(special, at[:, -1], rtol=1e-5)
            zeros = at[:, -1] == 0
            if row in UNARY:
                np.testing.assert_array_equal(np.signbit(special[zeros]), np.signbit(at[zeros, -1]))


def test_derivative_by_the_parameter_as_in_jax(jax: Any) -> None:
    """Where both are accurate."""
    rng = np.random.default_rng(1)
    a, x = rng.uniform(0.5, 5, 20), rng.uniform(0.5, 5, 20)
    by_a = lax.igamma_grad_a(a, x)
    assert_same(by_a, jax.lax.igamma_grad_a(a, x), rtol=1e-11)
    density = np.exp((a - 1) * np.log(x) - x - scipy_special.gammaln(a))
    assert_same(lax.random_gamma_grad(a, x), -np.asarray(by_a) / density, rtol=1e-11)


@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16], ids=["float16", "bfloat16"])
def test_narrow_floats_are_rounded_once(dtype: Any) -> None:
    for row in ROWS:
        xs = [np.linspace(0.1, 0.9, 9 + i)[:9].astype(dtype) for i in range(len(row.ranges))]
        if row.name == "polygamma":
            xs[0] = np.ones(9, dtype)
        xs = [x + np.ones((), dtype) if row.name == "zeta" else x for x in xs]
        wanted = np.asarray(row.reference(*(x.astype(np.float64) for x in xs))).astype(dtype)
        assert_same(getattr(lax, row.name)(*xs), wanted, rtol=1e-3 if dtype == np.float16 else 8e-3)


def test_samples_of_gamma_move_along_quantiles() -> None:
    """In series, continued fraction and uniform expansion; SciPy's inverse in differences."""
    a = np.array([0.3, 0.9, 4.0, 4.0, 25.0, 40.0, 40.0, 40.0, 300.0])
    x = np.array([0.1, 2.0, 3.0, 9.0, 30.0, 20.0, 42.0, 70.0, 320.0])
    h = 1e-5 * a

    def difference(f: Callable[[Any], Any]) -> Any:
        return (8 * (f(a + h) - f(a - h)) - (f(a + 2 * h) - f(a - 2 * h))) / (12 * h)

    moved = difference(lambda b: scipy_special.gammaincinv(b, scipy_special.gammainc(a, x)))
    changed = difference(lambda b: scipy_special.gammainc(b, x))
    ours = compiled(lambda a, x: (lax.random_gamma_grad(a, x), lax.igamma_grad_a(a, x)))(a, x)
    run = lax.random_gamma_grad(a, x), lax.igamma_grad_a(a, x)
    for got in (ours, run):
        np.testing.assert_allclose(got[0], moved, rtol=2e-6)
        np.testing.assert_allclose(got[1], changed, rtol=1e-6, atol=1e-12)
    for f in (lax.random_gamma_grad, lax.igamma_grad_a):
        edge = np.asarray(f(np.array([1.0, 0.0, -1.0, 1.0, NAN]), np.array([0.0, 1.0, 1.0, -1.0, 1.0])))
        np.testing.assert_array_equal(edge, [0, NAN, NAN, NAN, NAN])


def test_results_do_not_depend_on_neighbours() -> None:
    """Elements that need few steps stay as they are while others go on."""
    a = np.array([0.5, 3.0, 29.0, 200.0, 1e5])
    f = compiled(lambda a, x: lax.igammac(a, x))
    together = np.asarray(f(a, a * 1.3))
    alone = np.concatenate([np.asarray(f(a[i : i + 1], a[i : i + 1] * 1.3)) for i in range(5)])
    np.testing.assert_allclose(together, alone, rtol=1e-15)


# -- derivatives ---------------------------------------------------------------------------------------------------

DERIVATIVES = [
    ("erf", ((-2.0, 2.0),)), ("erfc", ((-2.0, 2.0),)), ("erf_inv", ((-0.9, 0.9),)), ("bessel_i0e", ((0.3, 9.0),)),
    ("bessel_i1e", ((0.3, 9.0),)), ("lgamma", ((0.3, 5.0),)), ("digamma", ((0.3, 5.0),)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "ranges"), DERIVATIVES, ids=[name for name, _ in DERIVATIVES])
def test_derivatives_as_in_jax(name: str, ranges: Any, jax: Any) -> None:
    x = sample(np.float64, (4,), low=ranges[0][0], high=ranges[0][1])
    check_derivatives(jax, getattr(lax, name), getattr(jax.lax, name), x, rtol=1e-7)


A, X, P = np.array([0.7, 2.0, 6.0]), np.array([1.3, 0.4, 5.0]), np.array([0.2, 0.5, 0.8])
ALONG: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "polygamma": (lambda x: lax.polygamma(2.0, x), X),
    "zeta by q": (lambda q: lax.zeta(3.5, q), X),
    "igamma by x": (lambda x: lax.igamma(A, x), X),
    "igammac by x": (lambda x: lax.igammac(A, x), X),
    "igamma_grad_a by x": (lambda x: lax.igamma_grad_a(A, x), X),
    "random_gamma_grad by x": (lambda x: lax.random_gamma_grad(A, x), X),
    "betainc by x": (lambda p: lax.betainc(A, X, p), P),
}


@pytest.mark.parametrize("name", ALONG)
def test_derivatives_to_second_order(name: str) -> None:
    """Against differences, forward and reverse."""
    f, x = ALONG[name]
    h = 1e-5
    for g in (f, lambda x: corejax.jvp(f, (x,), (np.ones(3),))[1]):
        slope = corejax.jvp(g, (x,), (np.ones_like(x),))[1]
        wanted = (np.asarray(g(x + h)) - np.asarray(g(x - h))) / (2 * h)
        np.testing.assert_allclose(slope, wanted, rtol=1e-5, atol=1e-7)
        _, pull = corejax.vjp(g, x)
        np.testing.assert_allclose(pull(np.ones_like(x))[0], slope, rtol=1e-12)


def test_derivatives_of_incomplete_gamma_by_its_parameter() -> None:
    for f, sign in ((lax.igamma, 1), (lax.igammac, -1)):
        by_a = corejax.vmap(corejax.grad(f))(A, X)
        np.testing.assert_allclose(by_a, sign * np.asarray(lax.igamma_grad_a(A, X)), rtol=1e-12)
        mixed = corejax.vmap(corejax.grad(corejax.grad(f), argnums=1))(A, X)
        other = corejax.vmap(corejax.grad(corejax.grad(f, argnums=1)))(A, X)
        np.testing.assert_allclose(mixed, other, rtol=1e-10)


def test_derivatives_at_the_ends() -> None:
    assert float(corejax.grad(lax.igamma, argnums=1)(1.0, 0.0)) == 1.0
    assert float(corejax.grad(lax.igamma, argnums=1)(2.0, 0.0)) == 0.0
    assert float(corejax.grad(lax.betainc, argnums=2)(1.0, 1.0, 0.0)) == 1.0
    assert float(corejax.grad(lax.betainc, argnums=2)(2.0, 1.0, 1.0)) == pytest.approx(2.0)
    assert float(corejax.grad(lax.bessel_i0e)(0.0)) == 0.0
    assert float(corejax.grad(lax.bessel_i1e)(0.0)) == 0.5


def test_second_derivatives_about_zero() -> None:
    """Of `I1`, which is `3 x / 8` there, and of the scaled function, in float32 (mpmath's)."""
    x = np.array([0.0, 1e-8, 1e-6, 1e-4, 1e-2, 0.4, 0.6, -1e-4], np.float32)
    scaled = [0.0, -1, -0.99999813, -0.99981252, -0.98142391, -0.47142689, -0.32285383, 0.99981252]
    got = corejax.vmap(corejax.grad(corejax.grad(lax.bessel_i1e)))(x)
    np.testing.assert_allclose(got, scaled, rtol=3e-6)
    plain = corejax.vmap(corejax.grad(corejax.grad(lambda x: lax.exp(x * lax.sign(x)) * lax.bessel_i1e(x))))(x)
    np.testing.assert_allclose(plain[:5], 0.375 * x[:5], rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("f", "operands"),
    [
        (lax.polygamma, (1.0, 2.0)),
        (lax.zeta, (2.0, 2.0)),
        (lax.igamma_grad_a, (2.0, 2.0)),
        (lax.random_gamma_grad, (2.0, 2.0)),
        (lax.betainc, (2.0, 2.0, 0.5)),
        (corejax.grad(lax.igamma), (2.0, 2.0)),
    ],
)
def test_operands_without_derivatives_say_so(f: Callable[..., Any], operands: tuple[float, ...]) -> None:
    with pytest.raises(NotDifferentiableError, match="not differentiable in operand 0"):
        corejax.grad(f)(*operands)


# -- transformations, types, errors --------------------------------------------------------------------------------


@each_row
def test_vmap(row: Row) -> None:
    check_vmap(getattr(lax, row.name), *[(2,)] * len(row.ranges), low=0.2, high=0.9)


def test_nested_transformations() -> None:
    def f(a: Any, x: Any) -> Any:
        return lax.igamma(a, lax.erf(x)) + lax.lgamma(a) * lax.bessel_i0e(x)

    nested = corejax.vmap(corejax.value_and_grad(f, argnums=(0, 1)), in_axes=(0, None))
    run, program = nested(A, 0.8), compiled(nested)(A, 0.8)
    np.testing.assert_allclose(run[0], program[0], rtol=1e-6)
    for got, wanted in zip(program[1], run[1], strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)
    h = 1e-6
    for i, a in enumerate(A):
        difference = (float(f(a + h, np.float64(0.8))) - float(f(a - h, np.float64(0.8)))) / (2 * h)
        assert float(run[1][0][i]) == pytest.approx(difference, rel=1e-5)


@each_row
def test_types(row: Row) -> None:
    function, count = getattr(lax, row.name), len(row.ranges)
    for dtype in (np.float16, BFLOAT16, np.float32, np.float64):
        for shape in ((), (0,), (2, 0), (2, 1)):
            got = function(*[np.full(shape, 0.75, dtype)] * count)
            assert got.dtype == dtype and got.shape == shape and np.asarray(got).shape == shape
    assert function(*[0.75] * count).weak_type
    for i in range(count):
        mixed = [np.float64(0.75) if j == i else np.full((2, 3), 0.75) for j in range(count)]
        assert function(*mixed).shape == ((2, 3) if count > 1 else ())


@each_row
def test_bad_operands(row: Row) -> None:
    function, count = getattr(lax, row.name), len(row.ranges)
    name = "regularized_incomplete_beta" if row.name == "betainc" else row.name
    for dtype in (np.int32, np.complex64, np.bool_):
        with pytest.raises(TypeError, match=f"{name} does not accept dtype"):
            function(*[np.ones(2, dtype)] * count)
    if count > 1:
        rest = [np.ones(2, np.float32)] * (count - 1)
        with pytest.raises(TypeError, match=f"{name} requires arguments to have the same dtypes"):
            function(np.ones(2), *rest)
        with pytest.raises(TypeError, match=f"{name}: operands have shapes"):
            function(np.ones(3, np.float32), *rest)


def test_scipy_is_imported_when_it_is_needed() -> None:
    program = "import sys; from corejax import lax; lax.erf; assert 'scipy' not in sys.modules; lax.erf(1.0)"
    subprocess.run([sys.executable, "-c", program], check=True)


NEXT_TO_ONE, TINY, HUGE = 1 - 2.0**-53, float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)


@pytest.mark.parametrize(
    ("f", "operands", "right"),
    [
        (lax.lgamma, (NEXT_TO_ONE,), np.euler_gamma * 2.0**-53),
        (lax.digamma, (-1 + 2.0**-52,), -(2.0**52)),
        (lax.digamma, (-2 - 2.0**-51,), 2.0**51),
        (lax.igamma, (HUGE, 3.0), 0.0),
        (lax.igammac, (HUGE, 3.0), 1.0),
        (lax.igamma, (3.0, HUGE), 1.0),
        (lax.betainc, (TINY, TINY, TINY), 0.5),
        (lax.betainc, (TINY, 3 * TINY, 0.25), 0.75),
    ],
)  # fmt: skip
def test_where_scipy_is_not_accurate(f: Callable[..., Any], operands: tuple[float, ...], right: float) -> None:
    given = [np.float64(x) for x in operands]
    np.testing.assert_allclose([float(f(*given)), float(compiled(f)(*given))], right, rtol=1e-13)
