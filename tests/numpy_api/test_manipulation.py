"""Shapes and axes: values as NumPy's, dtypes and weak types as jax's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from tests.numpy_api.oracle import check, check_compiled, check_types

X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
I = np.arange(6, dtype=np.int8).reshape(2, 3)
V = np.arange(3, dtype=np.uint8)
E = np.zeros((0, 3), np.float32)

ONE_ARRAY: list[Callable[[Any, Any], Any]] = [
    lambda xp, x: xp.reshape(x, -1),
    lambda xp, x: xp.reshape(x, (x.shape[-1], -1)),
    lambda xp, x: xp.reshape(x, x.shape[::-1], order="F"),
    lambda xp, x: xp.reshape(x, -1, order="F"),
    lambda xp, x: xp.ravel(x),
    lambda xp, x: xp.ravel(x, order="F"),
    lambda xp, x: xp.transpose(x),
    lambda xp, x: xp.transpose(x, tuple(range(-x.ndim, 0))[::-1]),
    lambda xp, x: xp.permute_dims(x, (1, 0, *range(2, x.ndim))),
    lambda xp, x: xp.matrix_transpose(x),
    lambda xp, x: xp.swapaxes(x, 0, -1),
    lambda xp, x: xp.moveaxis(x, 0, -1),
    lambda xp, x: xp.moveaxis(x, (0, 1), (-1, 0)),
    lambda xp, x: xp.moveaxis(x, [1, 0], [0, 1]),
    lambda xp, x: xp.expand_dims(x, 0),
    lambda xp, x: xp.expand_dims(x, (0, -1, 2)),
    lambda xp, x: xp.squeeze(x[:, None, :, ..., None]),
    lambda xp, x: xp.squeeze(x[None], 0),
    lambda xp, x: xp.broadcast_to(x, (2, *x.shape)),
    lambda xp, x: xp.flip(x),
    lambda xp, x: xp.flip(x, (0,)),
    lambda xp, x: xp.flip(x, -1),
    lambda xp, x: xp.flip(x, ()),
    lambda xp, x: xp.flipud(x),
    lambda xp, x: xp.fliplr(x),
    lambda xp, x: xp.tile(x, 2),
    lambda xp, x: xp.tile(x, (2, 1, 3)),
    lambda xp, x: xp.tile(x, ()),
    lambda xp, x: xp.tile(x, 0),
    lambda xp, x: xp.repeat(x, 2),
    lambda xp, x: xp.repeat(x, 3, axis=-1),
    lambda xp, x: xp.repeat(x, 0, axis=0),
    lambda xp, x: xp.repeat(x, np.array([1, 0, 2]), axis=1),
    lambda xp, x: xp.roll(x, 1),
    lambda xp, x: xp.roll(x, -4),
    lambda xp, x: xp.roll(x, 7, axis=1),
    lambda xp, x: xp.roll(x, (1, -1), (0, 1)),
    lambda xp, x: xp.roll(x, (1, 2), 1),
    lambda xp, x: xp.roll(x, 1, (0, 1)),
    lambda xp, x: xp.split(x, 3, axis=1),
    lambda xp, x: xp.split(x, [1, 2], axis=1),
    lambda xp, x: xp.split(x, [0, 1], axis=1),
    lambda xp, x: xp.array_split(x, 2, axis=1),
    lambda xp, x: xp.array_split(x, 5, axis=1),
    lambda xp, x: xp.pad(x, 1),
    lambda xp, x: xp.pad(x, (1, 2)),
    lambda xp, x: xp.pad(x, ((1, 2), *[(0, 1)] * (x.ndim - 1)), constant_values=3),
    lambda xp, x: xp.pad(x, 0),
    lambda xp, x: xp.pad(x, 1, constant_values=(1, 2)),
    lambda xp, x: xp.atleast_1d(x),
    lambda xp, x: xp.atleast_2d(x),
    lambda xp, x: xp.concatenate(x),
    lambda xp, x: xp.stack(x, axis=1),
    lambda xp, x: xp.astype(x, "float16"),
]


@pytest.mark.sampled
@pytest.mark.parametrize("x", [X, Y, I, E], ids=["f32", "3d", "i8", "empty"])
@pytest.mark.parametrize("f", ONE_ARRAY, ids=[str(i) for i in range(len(ONE_ARRAY))])
def test_of_one_array(f: Callable[..., Any], x: np.ndarray) -> None:
    if x is E and f in (ONE_ARRAY[1], ONE_ARRAY[-3], ONE_ARRAY[-2]):
        pytest.skip("nothing to divide or to join")
    if np.lib.NumpyVersion(np.__version__) < "2.1.0" and f is ONE_ARRAY[-1]:
        pytest.skip("NumPy 2.1 has astype")
    check(f, x)


SEVERAL: list[Callable[[Any], Any]] = [
    lambda xp: xp.ravel(1),
    lambda xp: xp.transpose(1),
    lambda xp: xp.broadcast_to(1, (2,)),
    lambda xp: xp.tile(1, 3),
    lambda xp: xp.repeat(1, 3),
    lambda xp: xp.concatenate([X, I]),
    lambda xp: xp.concatenate([X, I], axis=-1),
    lambda xp: xp.concatenate([X, I], axis=None),
    lambda xp: xp.concatenate([X, E]),
    lambda xp: xp.concatenate([I], axis=1),
    lambda xp: xp.concatenate([I, I], dtype="float16"),
    lambda xp: xp.stack([X, X], -1),
    lambda xp: xp.stack([X, I], 1),
    lambda xp: xp.stack([1, 2.0]),
    lambda xp: xp.hstack([V, V]),
    lambda xp: xp.hstack([X, I]),
    lambda xp: xp.hstack([1, 2]),
    lambda xp: xp.vstack([V, X]),
    lambda xp: xp.vstack([1, 2]),
    lambda xp: xp.column_stack([V, V]),
    lambda xp: xp.broadcast_arrays(X, V, 1),
    lambda xp: xp.atleast_1d(1, V),
    lambda xp: xp.atleast_2d(1.0, V, X),
    lambda xp: xp.meshgrid(V, X[0]),
    lambda xp: xp.meshgrid(V, X[0], X[:, 0], indexing="ij"),
    lambda xp: xp.meshgrid(V),
    lambda xp: xp.pad(I, 1, constant_values=2),
]


@pytest.mark.parametrize("f", SEVERAL, ids=[str(i) for i in range(len(SEVERAL))])
def test_of_several(f: Callable[..., Any]) -> None:
    ours = check_types(f)
    expected = f(np)
    for x, y in zip(ours, expected if isinstance(expected, list | tuple) else [expected], strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: jnp.reshape(X, (4,)), TypeError, "elements"),
        (lambda: jnp.reshape(X, (-1, -1)), ValueError, "one size"),
        (lambda: jnp.reshape(X, 6, order="Q"), ValueError, "order"),
        (lambda: jnp.transpose(X, (0, 0)), ValueError, "duplicate"),
        (lambda: jnp.transpose(X, (0,)), ValueError, "permutation"),
        (lambda: jnp.moveaxis(X, 0, 5), ValueError, "destination 5 is out of bounds"),
        (lambda: jnp.moveaxis(X, (0, 1), 0), ValueError, "as many"),
        (lambda: jnp.squeeze(X, 0), ValueError, "size"),
        (lambda: jnp.expand_dims(X, 4), ValueError, "out of bounds"),
        (lambda: jnp.broadcast_to(X, (2,)), ValueError, "does not broadcast"),
        (lambda: jnp.matrix_transpose(V), ValueError, "at least 2"),
        (lambda: jnp.concatenate([]), ValueError, "at least one"),
        (lambda: jnp.concatenate([X, V]), TypeError, r"f32\[2,3\]"),
        (lambda: jnp.concatenate([1.0, 2.0]), ValueError, "stack"),
        (lambda: jnp.concatenate([X, X], 2), ValueError, "out of bounds"),
        (lambda: jnp.stack([X, V]), ValueError, "one shape"),
        (lambda: jnp.split(X, 2, 1), ValueError, "array_split"),
        (lambda: jnp.split(X, 0), ValueError, "positive"),
        (lambda: jnp.repeat(X, -1), ValueError, "negative"),
        (lambda: jnp.repeat(X, [1, 2], axis=1), ValueError, "3 numbers"),
        (lambda: jnp.roll(X, (1, 2), (0, 1, 1)), ValueError, "as many"),
        (lambda: jnp.meshgrid(X), ValueError, "vectors"),
    ],
)
def test_what_does_not_fit(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()


def test_static_shapes() -> None:
    assert jnp.shape(X) == jnp.shape(X.tolist()) == (2, 3) and jnp.ndim(1.0) == 0
    assert jnp.size(X) == 6 and jnp.size(X, 1) == 3 and jnp.size(Y, (0, -1)) == 8
    assert jnp.broadcast_shapes((2, 1), 3, (1, 1, 1)) == (1, 2, 3)
    closed = corejax.make_jaxpr(lambda x: jnp.zeros(jnp.shape(x)[::-1]))(X)
    assert closed.out_avals[0].shape == (3, 2)


def test_cuts_as_numpy_reads_them() -> None:
    for cuts in ([-1], [1, 5], [2, 1], []):
        for ours, expected in zip(jnp.split(X, cuts, axis=1), np.split(X, cuts, axis=1), strict=True):
            np.testing.assert_array_equal(ours, expected)


def test_rolling_by_a_traced_number() -> None:
    roll = corejax.vmap(lambda by: jnp.roll(jnp.arange(5), by))
    by = np.array([0, 1, -2, 7], np.int32)
    np.testing.assert_array_equal(roll(by), [np.roll(np.arange(5), n) for n in by])


@pytest.mark.parametrize("i", range(0, len(ONE_ARRAY), 4))
def test_compiled(i: int) -> None:
    check_compiled(ONE_ARRAY[i], X)


@pytest.mark.parametrize("x", [np.array(["a", "b"]), np.array([None]), np.array(["2020"], "M8[Y]"), np.array("a")])
def test_shapes_of_numpy_arrays_of_any_dtype(x):
    assert (jnp.shape(x), jnp.ndim(x), jnp.size(x), jnp.isscalar(x)) == (x.shape, x.ndim, x.size, x.ndim == 0)
