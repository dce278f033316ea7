"""Elements taken out and put in: values as NumPy's, types as jax's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from tests.numpy_api.oracle import check, check_compiled_together, check_gradients, check_mapped

X = np.arange(12, dtype=np.float32).reshape(3, 4)
I = np.arange(12, dtype=np.int8).reshape(3, 4)
V = np.array([0, 0, 3, 0, 4, 0], np.float32)

DELETED = [
    lambda xp, x: xp.delete(x, 1),
    lambda xp, x: xp.delete(x, -1, 1),
    lambda xp, x: xp.delete(x, slice(0, 4, 2), 1),
    lambda xp, x: xp.delete(x, slice(None), 0),
    lambda xp, x: xp.delete(x, np.array([0, 2, 2, -1]), 1),
    lambda xp, x: xp.delete(x, np.array([[1, 5], [7, 0]])),
    lambda xp, x: xp.delete(x, np.array([True, False, True]), axis=0),
    lambda xp, x: xp.delete(x, np.zeros(0, int), 0),
]
INSERTED = [
    lambda xp, x: xp.insert(x, 1, 7),
    lambda xp, x: xp.insert(x, 1, 7, axis=0),
    lambda xp, x: xp.insert(x, -1, np.array([7.0, 8, 9]), axis=1),
    lambda xp, x: xp.insert(x, 0, np.array([7.0, 8, 9, 1]), 0),
    lambda xp, x: xp.insert(x, np.array([1]), np.array([[7.0], [8], [9]]), 1),
    lambda xp, x: xp.insert(x, np.array([2, 2, 0, -1]), np.array([7.0, 8, 9, 10]), axis=1),
    lambda xp, x: xp.insert(x, slice(0, 4, 2), 5, axis=1),
    lambda xp, x: xp.insert(x, np.array([3, 1]), 5, axis=0),
    lambda xp, x: xp.insert(x, np.array([12, 3, 3]), np.array([7, 8, 9])),
]
TRIMMED = [
    lambda xp, x: xp.trim_zeros(x),
    lambda xp, x: xp.trim_zeros(x, "f"),
    lambda xp, x: xp.trim_zeros(x, trim="B"),
]


def test_values_and_types() -> None:
    for x in (X, I):
        for f in [*DELETED, *INSERTED]:
            check(f, x)
    for x in (V, V * 0, V[4:5], V[:0]):
        for f in TRIMMED:
            with_values = f(jnp, jnp.asarray(x))  # jax has to know values, too, which its `eval_shape` does not
            np.testing.assert_array_equal(with_values, f(np, x))
            assert with_values.dtype == x.dtype


def test_places_that_are_data() -> None:
    insert = corejax.jit(lambda i, v: jnp.insert(X, i, v, axis=1))
    for places in ([2, 2, 0, -1], [4, 0, 1, 1]):
        values = np.arange(12, dtype=np.float32).reshape(3, 4)
        np.testing.assert_array_equal(insert(np.array(places), values), np.insert(X, places, values, axis=1))
    delete = corejax.jit(lambda i: jnp.delete(X, i, axis=1, assume_unique_indices=True))
    for places in ([0], [3, 1], [-1, 0, 2], [[1], [2]]):
        np.testing.assert_array_equal(delete(np.array(places)), np.delete(X, places, axis=1))


def test_zeros_of_several_axes() -> None:
    x = np.zeros((4, 5), np.float32)
    x[1, 2] = x[2, 1] = 1
    np.testing.assert_array_equal(jnp.trim_zeros(x), x[1:3, 1:3])
    np.testing.assert_array_equal(jnp.trim_zeros(x, "b", axis=-1), x[:, :3])


def test_compiled_and_derivatives() -> None:
    check_compiled_together([*DELETED, *INSERTED], X)
    check_mapped([*DELETED, *INSERTED], X)
    check_gradients([DELETED[0], DELETED[5], INSERTED[2], INSERTED[5]], X)


def test_few_equations() -> None:
    for f, most in ((DELETED[0], 4), (DELETED[2], 8), (INSERTED[5], 12)):
        assert len(corejax.make_jaxpr(lambda x: f(jnp, x))(X).jaxpr.eqns) <= most  # noqa: B023


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: jnp.delete(X, 3, 0), IndexError, r"delete: indices 3 are out of bounds for axis 0 of f32\[3,4\]"),
        (lambda: jnp.delete(X, np.array([True]), 0), ValueError, r"mask for axis 0 .* got \(1,\)"),
        (lambda: jnp.delete(X, 1.5), ValueError, "integers or booleans, got float"),
        (lambda: jnp.delete(X, 0, 2), ValueError, "delete: axis 2"),
        (lambda: corejax.jit(lambda i: jnp.delete(X, i))(1), TypeError, "concrete"),
        (lambda: jnp.insert(X, 14, 1), IndexError, "insert: indices 14"),
        (lambda: jnp.insert(X, 1.5, 1), ValueError, "integers, got 1.5"),
        (lambda: jnp.insert(X, np.array([[1]]), 1), ValueError, "vector of integers"),
        (lambda: jnp.insert(X, 0, np.ones(3), 0), ValueError, r"shape \(1, 3\) do not match"),
        (lambda: jnp.insert(X, 0, np.ones((1, 1, 1)), 0), ValueError, "more axes"),
        (lambda: corejax.jit(jnp.trim_zeros)(V), TypeError, "concrete"),
        (lambda: jnp.trim_zeros(V, "x"), ValueError, "got 'x'"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()


def test_what_to_do_where_sizes_depend_on_values() -> None:
    calls = {
        "assume_unique_indices=True": lambda i: jnp.delete(X, i),
        "total_repeat_length": lambda i: jnp.repeat(X, i),
        "`length`": lambda i: jnp.bincount(i[None]),
    }
    for advice, call in calls.items():
        with pytest.raises(TypeError, match="concrete") as caught:
            corejax.jit(call)(np.int32(1))
        assert any(advice in note for note in caught.value.__notes__)
