"""Diagonals: values as NumPy's, types as jax's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax.numpy as jnp
from tests.numpy_api.oracle import check, check_compiled_together, check_gradients, check_mapped

X = np.arange(12, dtype=np.float32).reshape(3, 4)
Y = np.arange(24, dtype=np.int8).reshape(2, 3, 4)
V = np.arange(1, 4, dtype=np.float16)

TAKEN = [
    lambda xp, x: xp.diagonal(x),
    lambda xp, x: xp.diagonal(x, 1),
    lambda xp, x: xp.diagonal(x, -2),
    lambda xp, x: xp.diagonal(x, 7),
    lambda xp, x: xp.diagonal(x, -7),
    lambda xp, x: xp.diagonal(x, 0, 1, 0),
    lambda xp, x: xp.diagonal(x, 1, -1, -2),
    lambda xp, x: xp.trace(x),
    lambda xp, x: xp.trace(x, 1, -1, 0),
    lambda xp, x: xp.trace(x, offset=9),
    lambda xp, x: xp.trace(x, dtype="float32"),
]
OFFSETS = [0, 1, -1, 3, -2]


@pytest.mark.parametrize("x", [X, Y, X > 5, np.zeros((0, 3), np.float32)], ids=["f32", "3d", "bool", "empty"])
def test_taken(x: np.ndarray) -> None:
    for f in TAKEN:
        check(f, x)


@pytest.mark.parametrize("k", OFFSETS)
def test_written(k: int) -> None:
    for v in (V, V.astype("int8"), V.astype("complex64"), V > 1, V[:1], V[:0]):
        check(lambda xp, v: xp.diag(v, k), v)
        check(lambda xp, v: xp.diagflat(v, k), v)
    check(lambda xp: xp.diag(X, k))
    check(lambda xp: xp.diagflat(X, k))
    check(lambda xp: xp.diagflat(2.0, k))


def test_compiled_and_derivatives() -> None:
    check_compiled_together([*TAKEN, lambda xp, x: xp.diagflat(x, 2)], X)
    check_mapped(TAKEN, X)
    check_gradients([f for i, f in enumerate(TAKEN) if i not in (3, 4, 9)], X)
    check_gradients([lambda xp, v, k=k: xp.diag(v, k) for k in OFFSETS], V.astype(np.float32))


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: jnp.diagonal(V), ValueError, r"diagonal takes an array of at least 2 dimensions, got f16\[3\]"),
        (lambda: jnp.diagonal(X, 0, 1, -1), ValueError, "got 1 and -1"),
        (lambda: jnp.diagonal(X, 0, 0, 2), ValueError, "diagonal: axis2 2"),
        (lambda: jnp.trace(X, 0, 1, 1), ValueError, "trace: axis1"),
        (lambda: jnp.trace(X, out=X), NotImplementedError, "trace: `out`"),
        (lambda: jnp.diag(Y), ValueError, r"diag takes .* got i8\[2,3,4\]"),
        (lambda: jnp.diag(1.0), ValueError, "diag takes"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()
