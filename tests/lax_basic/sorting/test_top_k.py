"""`top_k`, `approx_max_k` and `approx_min_k`: against jax; ties, NaNs, long and short axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corejax
from corejax import lax
from corejax_lax_basic.sorting.top_k import candidates
from tests.lax_basic.sorting.test_sort import FLOATS, FNUZ, INTEGERS, NARROW, bits, distinct, of_dtype
from tests.lax_basic.structural_checks import (
    Case,
    assert_same,
    check_compiled,
    check_derivatives,
    check_values,
    check_vmap,
    data,
    parametrize,
)

CASES = [
    Case("vector", lambda lax, x: lax.top_k(x, 3)[0], [distinct(7)]),
    Case("axis", lambda lax, x: lax.top_k(x, 2, axis=0)[0], [distinct(4, 3)]),
    Case("middle axis", lambda lax, x: lax.top_k(x, 2, axis=-2)[0], [distinct(2, 4, 3)]),
    Case("all", lambda lax, x: lax.top_k(x, 4)[0], [distinct(3, 4)]),
    Case("none", lambda lax, x: lax.top_k(x, 0)[0], [distinct(3, 4)]),
    Case("of none", lambda lax, x: lax.top_k(x, 2)[0], [data(0, 4)]),
    Case("greatest", lambda lax, x: lax.approx_max_k(x, 2)[0], [distinct(3, 5)]),
    Case("least", lambda lax, x: lax.approx_min_k(x, 2, 0)[0], [distinct(5, 2)]),
]
PLACES = [
    Case("places", lambda lax, x: lax.top_k(x, 3)[1], [data(2, 9)]),
    Case("places of the greatest", lambda lax, x: lax.approx_max_k(x, 3)[1], [distinct(2, 9)]),
    Case("places of the least", lambda lax, x: lax.approx_min_k(x, 3)[1], [distinct(2, 9)]),
]


@parametrize([*CASES, *PLACES])
def test_values(case: Case) -> None:
    check_values(case)


@parametrize([*CASES, *PLACES])
def test_compiled(case: Case) -> None:
    check_compiled(case)


@parametrize(CASES)
def test_vmap(case: Case) -> None:
    check_vmap(case)


@parametrize([c for c in CASES if c.name not in ("none", "of none")])
def test_derivatives(case: Case) -> None:
    check_derivatives(case)


def test_every_dtype_is_jaxs_with_special_values() -> None:
    """In the total order: NaN, inf, ..., 0.0, -0.0, ..., -inf, -NaN."""
    jax = pytest.importorskip("jax")
    xs = [of_dtype(t) for t in (*FLOATS, *INTEGERS)]
    with jax.enable_x64(True):
        theirs = jax.jit(lambda xs: [jax.lax.top_k(x, 11) for x in xs])(xs)
    compiled = corejax.jit(lambda xs: [lax.top_k(x, 11) for x in xs])(xs)
    for x, wanted, fast in zip(xs, theirs, compiled, strict=True):
        for got in (lax.top_k(x, 11), fast):
            for a, b in zip(got, wanted, strict=True):
                np.testing.assert_array_equal(bits(a), bits(b), err_msg=str(x.dtype))


def test_narrow_types() -> None:
    for x in map(of_dtype, (*NARROW, *FNUZ)):
        order = np.argsort(-np.nan_to_num(x.astype(np.float32), nan=np.inf), kind="stable")[:3]
        for f in (lambda x: lax.top_k(x, 3), corejax.jit(lambda x: lax.top_k(x, 3))):
            assert_same(f(x)[0].astype(np.float32), x[order].astype(np.float32))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.sampled_from([1, 5, 4096, 5000]), st.sampled_from(["f2", "f4", "f8", "i1", "u4", "i8"]))
def test_ties_are_in_order_on_long_axes_too(k: int, size: int, dtype: str) -> None:
    x = np.random.default_rng(size).integers(0, 60, (2, size)).astype(dtype)
    k = min(k, size)
    order = np.argsort(-x.astype(np.float64), axis=-1, kind="stable")[:, :k]
    values, places = lax.top_k(x, k)
    assert_same(places, order.astype(np.int32))
    assert_same(values, np.take_along_axis(x, order, -1))


def test_candidates_are_as_many_as_jaxs() -> None:
    """Where results are not aggregated the shape is the algorithm's."""
    jaxlib = pytest.importorskip("jaxlib")
    theirs = jaxlib._jax.approx_top_k_reduction_output_size
    for size in (1, 100, 1024, 1025, 5000, 100_000, 1_000_001):
        for ndim, k, recall in ((1, 1, 0.95), (1, 10, 0.95), (2, 1, 0.5), (2, 10, 0.95), (3, 100, 0.99), (2, 7, 0.8)):
            if k <= size:
                wanted = theirs(size, ndim, k, recall, False, -1)[0]
                assert candidates(size, ndim, k, recall, -1) == wanted, (size, ndim, k, recall)
    values, places = lax.approx_max_k(distinct(2, 600), 3, aggregate_to_topk=False)
    assert values.shape == places.shape == (2, candidates(600, 2, 3, 0.95, -1))


X = distinct(2, 3)
ERRORS = [
    (lambda: lax.top_k(X, 4), ValueError, r"k must be between 0 and the size of axis 1 of f32\[2,3\]; got k=4"),
    (lambda: lax.top_k(X, -1), ValueError, "got k=-1"),
    (lambda: lax.top_k(X, 1, axis=2), ValueError, "axis 2 is out of bounds"),
    (lambda: lax.top_k(X[0, 0], 1), ValueError, "out of bounds for an array of 0 dimensions"),
    (lambda: lax.top_k(X.astype("c8"), 1), TypeError, "top_k does not accept dtype complex64"),
    (lambda: lax.top_k(X, 1.5), TypeError, "float"),
    (lambda: lax.approx_max_k(X, 0), ValueError, "k has to be positive"),
    (lambda: lax.approx_max_k(X, 1, recall_target=0.0), ValueError, r"recall_target must be in \(0, 1\], got 0.0"),
    (lambda: lax.approx_min_k(X.astype("i4"), 1), TypeError, "approx_top_k does not accept dtype int32"),
    (lambda: lax.approx_max_k(X, 1, reduction_input_size_override=2), ValueError, "reduction_input_size_override 2"),
]


@pytest.mark.parametrize(("f", "error", "text"), ERRORS)
def test_errors(f: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        f()
