"""Joining, splitting and repeating: values as NumPy's, dtypes and weak types as jax's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from tests.numpy_api.oracle import check, check_compiled_together, check_gradients, check_mapped

X = np.arange(6, dtype=np.float32).reshape(2, 3)
I = np.arange(6, dtype=np.int8).reshape(2, 3)
Y = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
V = np.arange(3, dtype=np.uint8)
E = np.zeros((0, 3), np.float32)

CALLS: list[Callable[[Any, Any], Any]] = [
    lambda xp, x: xp.append(x, x),
    lambda xp, x: xp.append(x, 1.0),
    lambda xp, x: xp.append(x, x, axis=1),
    lambda xp, x: xp.append(x, V, -1) if x.ndim == 1 else xp.append(x, x, -2),
    lambda xp, x: xp.dstack([x, x]),
    lambda xp, x: xp.dstack((x, x, x)),
    lambda xp, x: xp.stack([x, x], axis=-1),
    lambda xp, x: xp.block([[x, x], [x, x]]),
    lambda xp, x: xp.block([x, x]),
    lambda xp, x: xp.block(x),
    lambda xp, x: xp.block([[[x]], [[x]]]),
    lambda xp, x: xp.block([[x[:1], x[:1]], [xp.ones((1, *x.shape[1:-1], 2 * x.shape[-1]))]]),
    lambda xp, x: xp.hsplit(x, 3),
    lambda xp, x: xp.vsplit(x, [1]),
    lambda xp, x: xp.hsplit(x, (1, 2)),
    lambda xp, x: xp.array_split(x, np.array([1, 2]), -1),
    lambda xp, x: xp.unstack(x),
    lambda xp, x: xp.unstack(x, axis=-1),
    lambda xp, x: xp.atleast_3d(x),
    lambda xp, x: xp.rot90(x),
    lambda xp, x: xp.rot90(x, 2),
    lambda xp, x: xp.rot90(x, -1, (1, 0)),
    lambda xp, x: xp.rot90(x, 4, axes=(-1, 0)),
    lambda xp, x: xp.rollaxis(x, 1),
    lambda xp, x: xp.rollaxis(x, 0, 2),
    lambda xp, x: xp.rollaxis(x, -1, -1),
    lambda xp, x: xp.resize(x, (3, 5)),
    lambda xp, x: xp.resize(x, 4),
    lambda xp, x: xp.resize(x, (2, 0)),
    lambda xp, x: xp.tile(x, np.array([2, 1])),
    lambda xp, x: xp.roll(x, np.array([1, 2]), (0, 1)),
    lambda xp, x: xp.roll(x, np.int32(2)),
    lambda xp, x: xp.repeat(x, np.array([2, 0, 1]), axis=1),
    lambda xp, x: xp.repeat(x, np.array([3]), 1),
    lambda xp, x: xp.repeat(xp.float32(3), 2, -1),
    lambda xp, x: xp.reshape(x, -1, "F", copy=True),
    lambda xp, x: xp.meshgrid(x[0].ravel(), x[:, 0].ravel(), sparse=True),
    lambda xp, x: xp.meshgrid(x[0].ravel(), V, indexing="ij", sparse=True),
]


def names(x: np.ndarray) -> str:
    return f"{x.dtype.name}{list(x.shape)}"


@pytest.mark.parametrize("x", [X, I, Y], ids=names)
def test_values_and_types(x: np.ndarray) -> None:
    for i, f in enumerate(CALLS):
        if np.lib.NumpyVersion(np.__version__) < "2.1.0" and i in (16, 17, 34):
            continue  # NumPy 2.1 has unstack, and reshape's copy
        check(f, x)


def test_of_no_elements() -> None:
    for f in (CALLS[0], CALLS[2], CALLS[4], CALLS[7], CALLS[12], CALLS[18], CALLS[19], CALLS[26], CALLS[30], CALLS[32]):
        check(f, E)


@pytest.mark.parametrize("axis", [0, -1])
def test_of_vectors_and_scalars(axis: int) -> None:
    check(lambda xp: xp.append(V, V, axis))
    check(lambda xp: xp.atleast_3d(1.0, V, X))
    check(lambda xp: xp.dstack([V, V]))
    check(lambda xp: xp.dstack([1, 2]))
    assert jnp.dstack([V, V], dtype="float16").dtype == jnp.stack([V], 0, None, "float16").dtype == np.float16
    check(lambda xp: xp.hsplit(V, 3))
    check(lambda xp: xp.block([1, 2.0]))
    check(lambda xp: xp.block([[np.eye(2, dtype="float32"), np.zeros((2, 1), "int8")], [np.ones((1, 3), "float16")]]))
    check(lambda xp: xp.block(3.0))
    check(lambda xp: xp.resize(1.5, (2, 2)))
    check(lambda xp: xp.repeat(V, 2, axis))


def test_three_dimensional_parts() -> None:
    check(lambda xp, x: xp.dsplit(x, 2), Y)
    check(lambda xp, x: xp.dsplit(x, [1, 3]), Y)


@pytest.mark.parametrize("name", ["concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4), (2, 3, 4, 2), (2, 0, 3)])
def test_rows_of_one_array_are_joined_as_those_in_a_list_are(name: str, shape: tuple[int, ...]) -> None:
    function = getattr(jnp, name)
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    axes: list[dict[str, Any]] = [{}]
    if name in ("concatenate", "stack"):
        axes += [{"axis": i} for i in range(-1, len(shape) - (name == "concatenate"))]
    for given in axes:
        if name == "concatenate" and len(shape) == 1:
            with pytest.raises(ValueError, match="scalars have no axis"):
                function(x, **given)
            continue
        np.testing.assert_array_equal(function(x, **given), function(list(x), **given), strict=True)
        np.testing.assert_array_equal(function(jnp.asarray(x), **given), function(list(x), **given), strict=True)
    if name == "concatenate":
        np.testing.assert_array_equal(function(x, axis=None), x.ravel(), strict=True)


def test_compiled() -> None:
    check_compiled_together(CALLS, X)
    check_mapped(CALLS, X)


def test_derivatives() -> None:
    check_gradients([f for i, f in enumerate(CALLS[1::2]) if i != 2], X)


def test_repeating_to_a_known_length() -> None:
    x = np.arange(3, dtype=np.float32)
    for length, expected in ((4, [0, 0, 2, 2]), (2, [0, 0]), (0, [])):
        np.testing.assert_array_equal(jnp.repeat(x, [2, 0, 1], total_repeat_length=length), expected)
    np.testing.assert_array_equal(jnp.repeat(x, 2, total_repeat_length=7), [0, 0, 1, 1, 2, 2, 2])
    by_data = corejax.jit(lambda n: jnp.repeat(x, n, total_repeat_length=5))
    for counts in ([2, 0, 1], [0, 4, 9], [0, 0, 0], [1, 1, 0]):
        theirs = np.repeat(x, counts)[:5]
        np.testing.assert_array_equal(
            by_data(np.array(counts)), np.pad(theirs, (0, 5 - len(theirs)), constant_values=2)
        )
    with pytest.raises(ValueError, match="no element"):
        jnp.repeat(E, np.zeros(0, int), axis=0, total_repeat_length=2)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8"])
def test_repeating_by_narrow_integers_and_booleans(dtype: str) -> None:
    x = np.arange(400, dtype=np.float32)
    counts = (np.arange(400) % 3 > 0).astype(dtype) * np.ones((), dtype)
    wanted = np.repeat(x, counts)
    for repeat in (jnp.repeat, corejax.jit(jnp.repeat, static_argnames="total_repeat_length")):
        np.testing.assert_array_equal(repeat(x, counts, total_repeat_length=wanted.size), wanted)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: jnp.append(X, V, axis=2), ValueError, "append: axis 2"),
        (lambda: jnp.append([1], 2), TypeError, "append takes arrays"),
        (lambda: jnp.append(1, 2, axis=0), ValueError, "append: scalars"),
        (lambda: jnp.stack([X], out=X), NotImplementedError, "stack: `out`"),
        (lambda: jnp.stack([X, X], 5), ValueError, "stack: axis 5"),
        (lambda: jnp.block([X, [X]]), ValueError, r"one depth, got \[0, 1\]"),
        (lambda: jnp.block([[], [X]]), ValueError, "empty"),
        (lambda: jnp.block([(X, X)]), TypeError, "tuple of 2"),
        (lambda: jnp.hsplit(X, 2), ValueError, "hsplit: axis 1 of size 3"),
        (lambda: jnp.vsplit(X, 1.5), TypeError, "vsplit: indices_or_sections is an integer"),
        (lambda: jnp.dsplit(X, 1), ValueError, "dsplit: axis 2"),
        (lambda: jnp.unstack(1.0), ValueError, "unstack: axis 0"),
        (lambda: jnp.rot90(V), ValueError, "rot90: axes 1 is out of bounds"),
        (lambda: jnp.rot90(X, 1, (0, -2)), ValueError, "rot90: repeated axis, duplicate"),
        (lambda: jnp.rot90(X, 1, (0, 1, 2)), ValueError, "two"),
        (lambda: jnp.rollaxis(X, 2), ValueError, "rollaxis: axis 2"),
        (lambda: jnp.rollaxis(X, 0, 3), ValueError, r"start is from -2 to 2 for f32\[2,3\], got 3"),
        (lambda: jnp.resize(X, (-1, 2)), ValueError, "not negative"),
        (lambda: jnp.tile(X, -1), ValueError, "tile: .*-1"),
        (lambda: jnp.roll(X, 1.5), TypeError, "roll: .*1.5"),
        (lambda: jnp.roll(X, 1, 2), ValueError, "roll: axis 2"),
        (lambda: jnp.ravel(X, "K"), NotImplementedError, "ravel: .*'K'"),
        (lambda: jnp.meshgrid(V, copy=False), ValueError, "copy=False"),
        (lambda: jnp.swapaxes(X, 0, 2), ValueError, "swapaxes: axis 2"),
        (lambda: jnp.squeeze(X, 1.0), TypeError, "squeeze: axis is an integer, got 1.0"),
        (lambda: corejax.jit(lambda n: jnp.repeat(X, n))(2), TypeError, "repeat|concrete"),
    ],
)
def test_what_does_not_fit(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()
