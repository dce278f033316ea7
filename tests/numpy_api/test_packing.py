"""Bits in bytes: values as NumPy's, types as jax's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax.numpy as jnp
from tests.numpy_api.oracle import check, check_compiled_together

X = np.random.default_rng(0).integers(0, 2, (3, 11)).astype(np.uint8)

CALLS = [
    lambda xp, x: xp.packbits(x),
    lambda xp, x: xp.packbits(x, -1),
    lambda xp, x: xp.packbits(x, 0, "little"),
    lambda xp, x: xp.unpackbits(x * 77),
    lambda xp, x: xp.unpackbits(x * 77, 0),
    lambda xp, x: xp.unpackbits(x * 77, 1, 13, "little"),
    lambda xp, x: xp.unpackbits(x * 77, axis=-1, count=-3),
    lambda xp, x: xp.unpackbits(x, count=300),
]


def test_values_and_types() -> None:
    for f in CALLS:
        if f is not CALLS[6]:
            check(f, X)
    np.testing.assert_array_equal(CALLS[6](jnp, X), CALLS[6](np, X))  # jax takes it for a size
    for x in (X.astype(bool), X.astype(np.int32) * -5, X[:0]):
        for f in CALLS[:3]:
            check(f, x)
    check(CALLS[4], X[:0])
    check_compiled_together(CALLS, X)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: jnp.packbits(np.ones(3, np.float32)), TypeError, r"packbits takes .* got f32\[3\]"),
        (lambda: jnp.packbits(X, 2), ValueError, "packbits: axis 2"),
        (lambda: jnp.packbits(X, bitorder="middle"), ValueError, "'middle'"),
        (lambda: jnp.unpackbits(X.astype(np.int32)), TypeError, r"bytes \(uint8\), got i32"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()
