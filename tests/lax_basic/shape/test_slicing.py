"""slice, dynamic_slice, dynamic_update_slice: against jax, including batches of starts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
from corejax import lax
from corejax.extend import as_array
from tests.lax_basic.structural_checks import (
    DTYPES,
    Case,
    assert_same,
    check_compiled,
    check_derivatives,
    check_values,
    check_vmap,
    data,
    parametrize,
)


def i32(value: int) -> Any:
    return np.asarray(value, np.int32)


def update_block(lax: Any, x: Any, u: Any, i: Any, j: Any) -> Any:
    return lax.dynamic_update_slice(x, u, (i, j))


CASES = [
    Case("slice", lambda lax, x: lax.slice(x, (1, 0), (3, 2)), [data(4, 3)]),
    Case("strides", lambda lax, x: lax.slice(x, (1, 0), (6, 5), (2, 3)), [data(7, 5)]),
    Case("strides to the end", lambda lax, x: lax.slice(x, (0,), (5,), (2,)), [data(5)]),
    Case("slice of nothing", lambda lax, x: lax.slice(x, (1, 0), (1, 0)), [data(2, 0)]),
    Case("slice of a scalar", lambda lax, x: lax.slice(x, (), ()), [data()]),
    Case("slice_in_dim", lambda lax, x: lax.slice_in_dim(x, -3, None, 2, axis=-1), [data(2, 5)]),
    Case("index_in_dim", lambda lax, x: lax.index_in_dim(x, -1, 1, keepdims=False), [data(2, 5)]),
    Case("dynamic_slice", lambda lax, x, i, j: lax.dynamic_slice(x, (i, j), (2, 2)), [data(4, 3), i32(1), i32(1)]),
    Case("clamped above", lambda lax, x, i: lax.dynamic_slice(x, (i,), (3,)), [data(5), i32(9)]),
    Case("clamped below", lambda lax, x, i: lax.dynamic_slice(x, (i,), (3,)), [data(5), i32(-9)]),
    Case("counted from the end", lambda lax, x, i: lax.dynamic_slice(x, (i,), (1,)), [data(5), i32(-2)]),
    Case("all of an axis", lambda lax, x, i: lax.dynamic_slice(x, (i, 0), (2, 3)), [data(5, 3), i32(1)]),
    Case("block of nothing", lambda lax, x, i: lax.dynamic_slice(x, (i, 0), (0, 3)), [data(5, 3), i32(1)]),
    Case("in_dim", lambda lax, x, i: lax.dynamic_slice_in_dim(x, i, 2, axis=1), [data(2, 4), i32(1)]),
    Case("index", lambda lax, x, i: lax.dynamic_index_in_dim(x, i, 0, keepdims=False), [data(3, 2), i32(2)]),
    Case("update", update_block, [data(4, 3), data(2, 2, seed=1), i32(1), i32(1)], diff=(0, 1)),
    Case("update clamped", update_block, [data(4, 3), data(2, 2, seed=1), i32(7), i32(-8)], diff=(0, 1)),
    Case("update whole axis", update_block, [data(4, 3), data(1, 3, seed=1), i32(2), i32(0)], diff=(0, 1)),
    Case("update all", update_block, [data(2, 3), data(2, 3, seed=1), i32(1), i32(0)], diff=(0, 1)),
    Case("update nothing", update_block, [data(2, 3), data(0, 3), i32(1), i32(0)], diff=(0, 1)),
    Case(
        "update constant",
        lambda lax, x, i: lax.dynamic_update_slice(x, np.ones(2, np.float32), (i,)),
        [data(5), i32(1)],
    ),
    Case(
        "into constant", lambda lax, u, i: lax.dynamic_update_slice(np.ones(5, np.float32), u, (i,)), [data(2), i32(1)]
    ),
    Case(
        "update in_dim",
        lambda lax, x, u, i: lax.dynamic_update_slice_in_dim(x, u, i, 1),
        [data(2, 4), data(2, 1), i32(3)],
    ),
    Case(
        "update index", lambda lax, x, u, i: lax.dynamic_update_index_in_dim(x, u, i, 0), [data(3, 2), data(2), i32(1)]
    ),
]


@parametrize(CASES)
def test_values(case: Case) -> None:
    check_values(case)


@parametrize(CASES)
def test_compiled(case: Case) -> None:
    check_compiled(case)


@parametrize(CASES)
def test_vmap(case: Case) -> None:
    check_vmap(case)


@parametrize(CASES)
def test_derivatives(case: Case) -> None:
    check_derivatives(case)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype: Any) -> None:
    """Eager, compiled, and with a start for each element of the batch."""
    x, u, starts = data(3, 5, dtype=dtype), data(3, 2, dtype=dtype, seed=1), np.array([0, 2, 9], np.int32)
    take, put = lambda x, i: lax.dynamic_slice(x, (i,), (2,)), lambda x, u, i: lax.dynamic_update_slice(x, u, (i,))
    taken = np.stack([x[0, 0:2], x[1, 2:4], x[2, 3:5]])
    placed = x.copy()
    placed[0, 0:2], placed[1, 2:4], placed[2, 3:5] = u
    for wrap in (lambda f: f, corejax.jit):
        assert_same(wrap(corejax.vmap(take))(x, starts), taken)
        assert_same(wrap(corejax.vmap(put))(x, u, starts), placed)
        assert_same(wrap(lambda x: lax.slice(x, (0, 1), (3, 4), (2, 1)))(x), x[0:3:2, 1:4])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64], ids=str)
def test_index_dtypes(dtype: Any) -> None:
    """Starts of every integer dtype, also where the operand is longer than the dtype counts."""
    x = data(300)
    last = int(min(np.iinfo(dtype).max, 2**40))
    starts = np.array([0, 7, last], dtype)
    expected = np.stack([x[min(int(s), 298) :][:2] for s in starts])
    take = lambda x, i: lax.dynamic_slice(x, (i,), (2,))
    assert_same(np.stack([take(x, s) for s in starts]), expected)
    assert_same(corejax.vmap(take, (None, 0))(x, starts), expected)
    assert_same(corejax.jit(corejax.vmap(take, (None, 0)))(x, starts), expected)


def test_batched_starts_do_not_spread_nan_and_infinity() -> None:
    x = np.array([np.nan, np.inf, 1.0, -np.inf], np.float32)
    out = corejax.vmap(lambda i: as_array(x)[i])(np.arange(4))
    np.testing.assert_array_equal(out, x)


def test_batch_of_batches() -> None:
    x, i = data(2, 3, 5), np.arange(6).reshape(2, 3)
    take = lambda x, i: lax.dynamic_slice(x, (i,), (2,))
    out = corejax.vmap(corejax.vmap(take))(x, i)
    expected = [[x[a, b, min(i[a, b], 3) :][:2] for b in range(3)] for a in range(2)]
    assert_same(out, np.array(expected))
    crossed = corejax.vmap(corejax.vmap(take, (None, 0)), (0, None))(x[:, 0], i[0])
    assert_same(crossed, np.array([[x[a, 0, b : b + 2] for b in range(3)] for a in range(2)]))


def test_gradient_through_batched_starts() -> None:
    jax = pytest.importorskip("jax")
    i = np.array([0, 4, 1], np.int32)

    def f(np_like: Any, vmap: Any, dynamic_slice: Any) -> Any:
        return lambda x: (vmap(lambda x, i: dynamic_slice(x, (i,), (2,)) ** 3)(x, i)).sum()

    x = data(3, 5)
    ours = corejax.grad(f(None, corejax.vmap, lax.dynamic_slice))(x)
    assert_same(ours, jax.grad(f(None, jax.vmap, jax.lax.dynamic_slice))(x))


def test_jaxpr_text() -> None:
    f = lambda x, i: lax.dynamic_slice_p.bind(lax.slice(x, (1, 0), (3, 2)), i, i, slice_sizes=(1, 2))
    assert str(corejax.make_jaxpr(f)(data(4, 3), i32(0))) == (
        "{ lambda ; a:f32[4,3] b:i32[]. let\n"
        "    c:f32[2,2] = slice[\n"
        "      limit_indices=(3, 2)\n"
        "      start_indices=(1, 0)\n"
        "      strides=None\n"
        "    ] a\n"
        "    d:f32[1,2] = dynamic_slice[slice_sizes=(1, 2)] c b b\n"
        "  in (d,) }"
    )


ERRORS = [
    (lambda x: lax.slice(x, (0,), (2,)), TypeError, r"operand f32\[2,3\].*2 axes"),
    (lambda x: lax.slice(x, (0, 0), (2, 4)), TypeError, "on axis 1, 0 to 4 is not inside 0 to 3"),
    (lambda x: lax.slice(x, (-1, 0), (2, 3)), TypeError, "on axis 0, -1 to 2 is not inside 0 to 2"),
    (lambda x: lax.slice(x, (0, 0), (2, 3), (1, 0)), TypeError, "strides must be positive, axis 1 has 0"),
    (lambda x: lax.index_in_dim(x, 2, 0), IndexError, "index 2 out of bounds for axis 0 with size 2"),
    (lambda x: lax.dynamic_slice(x, (0,), (1, 1)), TypeError, r"f32\[2,3\] has 2 axes, got 1 start indices"),
    (lambda x: lax.dynamic_slice(x, (0, 0), (3, 1)), TypeError, r"slice_sizes \(3, 1\) does not fit.* on axis 0"),
    (lambda x: lax.dynamic_slice(x, (0.0, 0), (1, 1)), TypeError, r"integer scalars, but that of axis 0 is f32\[\]"),
    (lambda x: lax.dynamic_slice(x, (x[0, 0], 0), (1, 1)), TypeError, r"that of axis 0 is f32\[\]"),
    (lambda x: lax.dynamic_update_slice(x, x.astype(int), (0, 0)), TypeError, r"update i32\[2,3\] differ in dtype"),
    (lambda x: lax.dynamic_update_slice(x, x[0], (0, 0)), TypeError, r"update f32\[3\] differ in rank"),
    (lambda x: lax.dynamic_update_slice(x[:1], x, (0, 0)), TypeError, r"shape \(2, 3\) does not fit"),
]


@pytest.mark.parametrize(("f", "error", "text"), ERRORS)
def test_errors(f: Any, error: type[Exception], text: str) -> None:
    for transformed in (f, corejax.make_jaxpr(f), corejax.grad(f)):
        with pytest.raises(error, match=text):
            transformed(as_array(data(2, 3)))
