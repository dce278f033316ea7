"""Cumulative reductions and associative_scan: NumPy, Python loops and jax; derivatives, batches, compiled, errors."""

from __future__ import annotations

import operator
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import lax
from tests.lax_basic.support import (
    BFLOAT16,
    assert_same,
    check_derivatives,
    check_vmap,
    compiled,
    dtypes_of,
    few_dtypes,
    jax,
    kind_of,
    sample,
)

__all__ = ["jax"]

F = np.float32
ROWS = {
    "cumsum": (np.add, "iufc"),
    "cumprod": (np.multiply, "iufc"),
    "cummax": (np.maximum, "biufc"),
    "cummin": (np.minimum, "biufc"),
    "cumlogsumexp": (np.logaddexp, "f"),
}
each_row = pytest.mark.parametrize("name", ROWS)
each_way = pytest.mark.parametrize("reverse", [False, True])


def numpy_of(name: str, x: Any, axis: int, reverse: bool) -> Any:
    ufunc = ROWS[name][0]
    if reverse:
        return np.flip(ufunc.accumulate(np.flip(x, axis), axis, dtype=x.dtype), axis)
    return ufunc.accumulate(x, axis, dtype=x.dtype)


@each_row
@each_way
def test_values_of_every_dtype(name: str, reverse: bool) -> None:
    for dtype in dtypes_of(ROWS[name][1]):
        x = sample(dtype, (2, 5, 3))
        wide = x.astype(np.float32) if dtype.itemsize == 2 and kind_of(dtype) == "f" else x
        for axis in (0, 1, -1):
            got = getattr(lax, name)(x, axis=axis, reverse=reverse)
            assert_same(got, numpy_of(name, wide, axis, reverse).astype(dtype))


@each_way
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((8192,), 0), ((9001,), 0), ((3, 8300), 1), ((5, 600, 1), 1), ((130, 300), 0), ((2, 140, 40), 1), ((300, 40), 1)],
)
def test_long_sums_are_more_exact_than_one_after_the_other(shape: tuple[int, ...], axis: int, reverse: bool) -> None:
    x = np.random.default_rng(1).standard_normal(shape)
    for dtype in (np.float32, np.float64):
        exact = numpy_of("cumsum", x.astype(dtype).astype(np.longdouble), axis, reverse)
        got, plain = lax.cumsum(x.astype(dtype), axis, reverse), numpy_of("cumsum", x.astype(dtype), axis, reverse)
        assert got.dtype == dtype
        assert abs(np.asarray(got) - exact).max() <= 1.5 * abs(plain - exact).max()


def test_long_sums_of_what_is_not_negative_hardly_descend() -> None:
    x = np.random.default_rng(2).exponential(size=300_000).astype(F) ** 8
    for shape in ((-1, 1), (-1, 100)):
        sums = np.asarray(lax.cumsum(x.reshape(shape), 0))
        assert (np.diff(sums, axis=0) >= -1e-6 * sums[1:]).all()


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_long_sums_are_infinite_from_the_first_infinity_on(value: float) -> None:
    x = np.ones((10_000, 2), F)
    x[5_000, 1] = x[6_000, 1] = value
    for operand, axis in ((x, 0), (x.T, 1), (x[:, 1], 0), (np.repeat(x, 20, 1), 0)):
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(lax.cumsum(operand, axis), np.add.accumulate(operand, axis))


@pytest.mark.sampled
@each_row
@each_way
def test_compiled_agrees_with_eager(name: str, reverse: bool) -> None:
    def run(xs: Any) -> Any:
        return [getattr(lax, name)(x, axis, reverse) for x in xs for axis in (0, 1)]

    xs = [sample(dtype, (3, 40)) for dtype in few_dtypes(ROWS[name][1])]
    if name == "cumprod":
        xs = [x if kind_of(x.dtype) in "iu" else x / np.asarray(2, x.dtype) for x in xs]
    for got, expected in zip(compiled(run)(xs), run(xs), strict=True):
        if kind_of(expected.dtype) in "fc":
            assert got.dtype == expected.dtype
            tolerance = 5e-2 if expected.dtype.itemsize == 2 else 1e-4
            np.testing.assert_allclose(
                np.asarray(got).astype(complex), np.asarray(expected).astype(complex), tolerance, tolerance
            )
        else:
            assert_same(got, expected)


@each_row
def test_lengths_zero_and_one(name: str) -> None:
    for shape, axis in (((0,), 0), ((0, 3), 0), ((3, 0), 0), ((1,), 0), ((2, 1), 1)):
        x = sample(F, shape)
        for f in (getattr(lax, name), compiled(lambda x, axis=axis: getattr(lax, name)(x, axis))):
            np.testing.assert_array_equal(f(x, axis) if f is getattr(lax, name) else f(x), x)
        assert corejax.grad(lambda x, axis=axis: getattr(lax, name)(x, axis).sum())(x).shape == shape


@each_row
@each_way
def test_derivatives_and_batches(name: str, reverse: bool, jax: Any) -> None:
    of = lambda lax: lambda x: getattr(lax, name)(x, 1, reverse)
    for n in (1, 5):
        check_derivatives(jax, of(lax), of(jax.lax), sample(np.float64, (2, n)))
    check_vmap(of(lax), (2, 3))


@each_row
def test_jaxpr_and_ties_as_in_jax(name: str, jax: Any) -> None:
    x = np.array([1, 2, 2, 0, 2, 3, 3], F)
    f = lambda lax: lambda x: getattr(lax, name)(x, axis=0, reverse=False)
    words = [
        str(make(f(lib))(x)).replace("[", " [ ").replace("]", " ] ").split()
        for make, lib in ((corejax.make_jaxpr, lax), (jax.make_jaxpr, jax.lax))
    ]
    assert words[0] == words[1]
    got = corejax.jacrev(f(lax))(x)
    np.testing.assert_allclose(got, jax.jit(jax.jacrev(f(jax.lax)))(x), rtol=1e-5)
    np.testing.assert_allclose(corejax.jacfwd(f(lax))(x), got, rtol=1e-5)


def test_cumprod_of_zeros_has_finite_derivatives() -> None:
    got = corejax.grad(lambda x: lax.cumprod(x)[2])(np.array([2.0, 0.0, 0.0], F))
    np.testing.assert_array_equal(got, [0, 0, 0])
    got = corejax.grad(lambda x: lax.cumprod(x)[2])(np.array([2.0, 0.0, 3.0], F))
    np.testing.assert_array_equal(got, [0, 6, 0])


def test_cumlogsumexp_without_overflow() -> None:
    x = np.array([-np.inf, 1000.0, 1000.0, -1000.0], F)
    want = [-np.inf, 1000.0, 1000 + np.log(2), 1000 + np.log(2)]
    for f in (lax.cumlogsumexp, compiled(lambda x: lax.cumlogsumexp(x))):
        np.testing.assert_allclose(f(x), want, rtol=1e-6)
    np.testing.assert_allclose(corejax.grad(lambda x: lax.cumlogsumexp(x)[-1])(x), [0, 0.5, 0.5, 0], rtol=1e-4)


def test_nan_and_sixteen_bits() -> None:
    x = np.array([1.0, np.nan, 0.0, 2.0], F)
    for f in (lax.cummax, lax.cummin):
        for g in (f, compiled(lambda x, f=f: f(x))):
            np.testing.assert_array_equal(g(x), [1, np.nan, np.nan, np.nan])
    ones = np.ones(5000, BFLOAT16)
    for g in (lax.cumsum, compiled(lambda x: lax.cumsum(x))):
        assert float(g(ones)[-1]) == float(F(5000).astype(BFLOAT16))


@pytest.mark.parametrize(
    "f, text",
    [
        (lambda: lax.cumsum(np.ones(3, bool)), "cumsum.*an integer, floating-point or complex dtype"),
        (lambda: lax.cumlogsumexp(np.ones(3, np.int32)), "cumlogsumexp.*a floating-point dtype"),
    ],
)
def test_wrong_dtypes(f: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        f()


def test_wrong_axes() -> None:
    for f in (lax.cumsum, lambda x, axis: lax.associative_scan(lax.add, x, axis=axis)):
        with pytest.raises((TypeError, ValueError), match="axis"):
            f(np.ones((2, 3), F), axis=2)
        with pytest.raises((TypeError, ValueError), match="axis"):
            f(F(1), axis=0)


# -- associative_scan ------------------------------------------------------------------------------------------


def compose(f: Any, g: Any) -> Any:
    """Affine functions one after the other: associative, and not commutative."""
    return {"scale": f["scale"] * g["scale"], "shift": f["shift"] * g["scale"] + g["shift"]}


def in_python(elems: Any, reverse: bool) -> Any:
    rows = [{k: v[i] for k, v in elems.items()} for i in range(len(elems["scale"]))]
    rows = list(accumulate(rows[:: -1 if reverse else 1], compose))[:: -1 if reverse else 1]
    return {k: np.array([r[k] for r in rows], F) for k in elems}


@each_way
@pytest.mark.parametrize("n", [*range(10), 31, 64, 100])
def test_a_pytree_that_does_not_commute(n: int, reverse: bool) -> None:
    elems = {"scale": sample(F, (n,), 1, 0.5, 1.2), "shift": sample(F, (n,), 2)}
    got = lax.associative_scan(compose, elems, reverse=reverse)
    for k, v in in_python(elems, reverse).items():
        np.testing.assert_allclose(got[k], v.reshape(n), rtol=1e-4, atol=1e-4)


def test_against_jax(jax: Any) -> None:
    x = sample(np.float32, (3, 7, 2), 3, 0.5, 1.5)
    run = lambda lax, **kw: lambda x: lax.associative_scan(lambda a, b: a * b, x, **kw)
    slope = lambda m, f: m.grad(lambda x: (f(x) ** 2).sum())
    for kw in ({"axis": 1}, {"axis": 1, "reverse": True}, {"axis": 0}):
        ours, theirs = run(lax, **kw), run(jax.lax, **kw)
        value, wanted, batch = jax.jit(lambda x, f=theirs: (f(x), slope(jax, f)(x), jax.vmap(run(jax.lax))(x)))(x)
        np.testing.assert_allclose(compiled(ours)(x), value, rtol=1e-5)
        np.testing.assert_allclose(slope(corejax, ours)(x), wanted, rtol=1e-4)
        np.testing.assert_allclose(corejax.vmap(run(lax))(x), batch, rtol=1e-5)


def test_depth_is_logarithmic() -> None:
    adds = lambda n: str(corejax.make_jaxpr(lambda x: lax.associative_scan(lax.add, x))(np.ones(n, F))).count(" add ")
    assert adds(1024) == 2 * 10 - 1
    assert adds(4096) - adds(1024) == 4


def test_dtypes_and_matrices() -> None:
    for dtype in (bool, np.int8, np.complex64, BFLOAT16):
        x = sample(dtype, (6,))
        combine = lax.bitwise_or if dtype is bool else lax.add
        want = list(accumulate(x, operator.or_ if dtype is bool else operator.add))
        np.testing.assert_allclose(
            np.asarray(lax.associative_scan(combine, x)).astype(complex), np.array(want).astype(complex), 3e-2
        )
    m = sample(F, (9, 2, 2))
    product = lambda a, b: lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,))))
    want = np.stack(list(accumulate(m, operator.matmul)))
    np.testing.assert_allclose(lax.associative_scan(product, m), want, rtol=1e-3, atol=1e-3)


def test_bad_input_of_associative_scan() -> None:
    with pytest.raises(TypeError, match="fn must be a function of two elements, got 3 of type int"):
        lax.associative_scan(3, np.ones(2, F))
    with pytest.raises(
        ValueError, match=r"lengths of the axis differ:\n  elems\['a'\].* has 2\n  elems\['b'\].* has 3"
    ):
        lax.associative_scan(lambda a, b: a, {"a": np.ones(2, F), "b": np.ones(3, F)})
    with pytest.raises(ValueError, match="no array to scan over"):
        lax.associative_scan(lambda a, b: a, ())
    with pytest.raises(TypeError, match=r"takes f32\[1\] for elems and returns bool\[1\]"):
        lax.associative_scan(lambda a, b: a < b, np.ones(2, F))
    with pytest.raises(TypeError, match=r"takes elements of structure .* and returns"):
        lax.associative_scan(lambda a, b: (a, b), np.ones(2, F))
    with pytest.raises(TypeError, match="argument elems is 'x' of type str"):
        lax.associative_scan(lambda a, b: a, "x")
