"""Sorting and searching: against jax and NumPy, run and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.extend.speed import engine
from tests.numpy_api.oracle import check, check_against_jax, check_compiled

RNG = np.random.default_rng(0)
X = RNG.permutation(24).reshape(4, 6).astype(np.float32) / 4
TIES = RNG.integers(0, 4, (5, 7)).astype(np.int32)
NAN = np.array([2.0, np.nan, -np.inf, 0.0, np.inf, -1.0], np.float32)
Z = np.array([1 + 2j, 1 - 2j, -1j, 3], np.complex64)

LIKE_NUMPY = {
    "sort": lambda m, x: m.sort(x),
    "sort flat": lambda m, x: m.sort(x, axis=None),
    "sort by an axis": lambda m, x: m.sort(x, 0),
    "sort_complex": lambda m, x: m.sort_complex(x),
}


@pytest.mark.parametrize("f", LIKE_NUMPY.values(), ids=LIKE_NUMPY)
@pytest.mark.parametrize("x", [X, TIES, TIES > 1, NAN[None], Z[None], X[:0], TIES.astype(np.uint8)], ids=range(7))
def test_values_are_numpys(f: Any, x: Any) -> None:
    if f is LIKE_NUMPY["sort_complex"]:
        check_against_jax(f, x)
    else:
        check(f, x)


LIKE_JAX = [
    (lambda m, x: m.sort(x, descending=True), TIES),
    (lambda m, x: m.argsort(x), TIES),
    (lambda m, x: m.argsort(x, axis=0, stable=False), X),
    (lambda m, x: m.argsort(x, axis=None, descending=True), TIES),
    (lambda m, x: m.argsort(x, descending=True, stable=False), X),
    (lambda m, x: m.argsort(x, dtype="int8"), X),
    (lambda m, x: m.argsort(x), NAN),
    (lambda m, x: m.lexsort((x, x % 2)), TIES),
    (lambda m, x: m.lexsort([x[0], x[1], -x[2]]), TIES),
    (lambda m, x: m.lexsort(x, axis=0), X),
    (lambda m, x: m.lexsort((x[0, 0],)), X),
]


@pytest.mark.parametrize(("f", "x"), LIKE_JAX)
def test_values_are_jaxs(f: Any, x: Any) -> None:
    check_against_jax(f, x)
    check_compiled(f, x)


@pytest.mark.parametrize("axis", [0, -1, None])
@pytest.mark.parametrize("kth", [0, 2, -1])
def test_partitions(axis: int | None, kth: int) -> None:
    for x in (X, TIES, NAN[:, None]):
        size = x.size if axis is None else x.shape[axis]
        if kth >= size:
            continue
        expected = np.sort(x, axis)
        for out in (jnp.partition(x, kth, axis), corejax.jit(lambda x: jnp.partition(x, kth, axis))(x)):
            np.testing.assert_array_equal(np.take(out, kth, axis or 0), np.take(expected, kth, axis or 0))
        places = np.asarray(jnp.argpartition(x, kth, axis))
        flat = x.ravel() if axis is None else x
        np.testing.assert_array_equal(np.take_along_axis(flat, places, axis or 0), np.asarray(out))


TABLES = [
    np.array([-1.0, 0.0, 0.0, 2.0, 5.0, np.inf, np.nan], np.float32),
    np.arange(50, dtype=np.int32) // 3,
    np.array([0, 1, 1j + 1, 2], np.complex64),
    np.zeros(0, np.float32),
    np.ones(1, np.uint8),
]


@pytest.mark.sampled
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("a", TABLES, ids=range(5))
def test_searchsorted(side: str, a: Any) -> None:
    v = (
        np.array([[-5, 0, 1, 2], [5, 7, 100, 3]], a.dtype)
        if a.dtype != np.uint8
        else np.array([[0, 1], [2, 255]], "u1")
    )
    if a.dtype.kind == "f":
        v = np.concatenate([v.ravel(), np.array([np.nan, np.inf, -np.inf, -0.0], a.dtype)])
    f = lambda m, a, v: m.searchsorted(a, v, side)
    check_against_jax(f, a, v)
    expected = np.searchsorted(a, v, side)
    methods = ("scan", "scan_unrolled", "sort", "compare_all")
    outs = corejax.jit(lambda a, v: [jnp.searchsorted(a, v, side, method=m) for m in methods])(a, v)
    for out in outs:
        np.testing.assert_array_equal(out, expected)
        assert out.dtype == np.int32


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64"])
def test_many_places_are_looked_up_by_a_program(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose results are NumPy's, for zeros of either sign, NaN and subnormal numbers too."""
    special = [0.0, -0.0, 5e-324, -1e-40, 6e-8, np.inf, -np.inf, np.nan, -np.nan] if dtype[0] == "f" else [0, 1, 127]
    a = np.sort(np.concatenate([RNG.integers(0, 100, 50), np.array(special)]).astype(dtype))
    v = np.resize(RNG.permutation(np.concatenate([a, np.arange(120)]).astype(dtype)), 10000)
    ran = []
    run = engine().run_program
    monkeypatch.setattr(engine(), "run_program", lambda *args: (ran.append(args), run(*args))[1])
    for side in ("left", "right"):
        for _ in range(2):
            got = jnp.searchsorted(a, v, side)
            np.testing.assert_array_equal(got, np.searchsorted(a, v, side))
    assert len(ran) == 2, "the second call of either"


def test_searchsorted_takes_what_numpy_takes() -> None:
    a = np.array([3, 1, 2])
    check_against_jax(lambda m, a: m.searchsorted(a, 2.5, sorter=m.argsort(a)), a)
    check_against_jax(lambda m, a: m.searchsorted(m.sort(a), 2, "right"), a)
    batched = corejax.vmap(jnp.searchsorted)(np.stack([[1, 2, 3], [2, 3, 4]]), np.array([3, 3]))
    np.testing.assert_array_equal(batched, [2, 1])
    np.testing.assert_array_equal(corejax.vmap(jnp.searchsorted, (None, 0))(np.arange(4), np.array([3, 1])), [3, 1])


@pytest.mark.parametrize("right", [False, True])
def test_digitize(right: bool) -> None:
    x = np.array([[0.2, 6.4, 3.0], [1.6, -1.0, 10.0]], np.float32)
    bins = np.array([0.0, 1.0, 2.5, 3.0, 10.0], np.float32)
    for edges in (bins, bins[::-1].copy()):
        f = lambda m, x, b: m.digitize(x, b, right)
        check_against_jax(f, x, edges)
        check_compiled(f, x, edges)
        np.testing.assert_array_equal(jnp.digitize(x, edges, right), np.digitize(x, edges, right))
    assert jnp.digitize(x, bins[:0]).shape == x.shape


def test_kinds() -> None:
    for kind in (None, "quicksort", "heapsort", "mergesort", "stable"):
        for name in ("sort", "argsort"):
            found = getattr(jnp, name)(TIES, kind=kind), getattr(jnp.asarray(TIES), name)(kind=kind)
            for x in found:
                np.testing.assert_array_equal(x, getattr(np, name)(TIES, kind="stable"))


ERRORS = [
    (lambda: jnp.sort(X, kind="fast"), ValueError, "sort: kind is one of None, 'quicksort', .*, got 'fast'"),
    (lambda: jnp.argsort(X, order="x"), TypeError, "argsort: order=.* is not supported"),
    (lambda: jnp.sort(X, 2), ValueError, "sort: axis 2 is out of bounds"),
    (lambda: jnp.sort(1.0), ValueError, "sort: axis -1 is out of bounds"),
    (lambda: jnp.sort([1, 2]), TypeError, "sort takes arrays and scalars, got list"),
    (lambda: jnp.argsort(X, dtype="float32"), TypeError, "argsort: the dtype of indices must be an integer"),
    (lambda: jnp.lexsort(()), TypeError, "at least one key"),
    (lambda: jnp.lexsort((X, X[0])), ValueError, r"one shape, got \(4, 6\), \(6,\)"),
    (lambda: jnp.partition(X, 6), ValueError, "partition: kth 6 is out of bounds"),
    (lambda: jnp.searchsorted(X, 1.0), ValueError, r"a is a vector, got f32\[4,6\]"),
    (lambda: jnp.searchsorted(X[0], 1.0, "up"), ValueError, "side is 'left' or 'right', got 'up'"),
    (lambda: jnp.searchsorted(X[0], 1.0, method="quick"), ValueError, "method is one of"),
    (lambda: jnp.digitize(X, X), ValueError, "bins is a vector"),
]


@pytest.mark.parametrize(("f", "error", "text"), ERRORS)
def test_errors(f: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        f()


def test_sorting_is_differentiated() -> None:
    weights = np.arange(6, dtype=np.float32)
    f = lambda x: (jnp.sort(x) * weights).sum()
    order = np.argsort(np.argsort(X, axis=1), axis=1)
    np.testing.assert_array_equal(corejax.jit(corejax.vmap(corejax.grad(f)))(X), weights[order])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_with_nan_are_ordered_as_numpy_orders_them(dtype: str) -> None:
    nan = np.nan
    parts = [complex(a, b) for a in (1.0, -0.0, np.inf, nan) for b in (2.0, -np.inf, nan)]
    x = np.random.default_rng(0).permutation(np.array(parts, dtype))
    names = ("min", "max", "ptp", "sort", "argsort", "nanmin", "nanmax")
    compiled = corejax.jit(lambda x: [getattr(jnp, name)(x) for name in names])(x)
    pairs = corejax.jit(lambda x, y: (jnp.maximum(x, y), jnp.minimum(x, y)))(x[:, None], x)
    with np.errstate(invalid="ignore"):
        for name, out in zip(names, compiled, strict=True):
            for got in (out, getattr(jnp, name)(x)):
                np.testing.assert_array_equal(got, getattr(np, name)(x), err_msg=name)
        for function, out in zip(("maximum", "minimum"), pairs, strict=True):
            for got in (out, getattr(jnp, function)(x[:, None], x)):
                np.testing.assert_array_equal(got, getattr(np, function)(x[:, None], x))
