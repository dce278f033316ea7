"""Bytes, texts and NumPy's files: values as NumPy's, types as jax's."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax.numpy as jnp
from corejax import Array
from tests.numpy_api.oracle import check

BYTES = np.arange(8, dtype=np.int16).tobytes()


def test_of_bytes_and_texts() -> None:
    check(lambda xp: xp.frombuffer(BYTES, "int16"))
    check(lambda xp: xp.frombuffer(BYTES, np.uint8, 3, 2))
    check(lambda xp: xp.frombuffer(bytearray(np.arange(3.0).tobytes())))
    check(lambda xp: xp.fromstring("1 2 3.5", sep=" "))
    check(lambda xp: xp.fromstring("1, 2, 3", int, 2, sep=","))
    assert jnp.frombuffer(BYTES, jnp.bfloat16).dtype == jnp.bfloat16
    assert jnp.frombuffer(np.arange(3.0), np.float64).dtype == np.float64


def test_files(tmp_path: Path) -> None:
    for x in (jnp.arange(3), jnp.ones((2, 2), jnp.bfloat16), jnp.asarray(1 + 2j)):
        jnp.save(tmp_path / "x.npy", x)
        back = jnp.load(tmp_path / "x.npy")
        assert type(back) is Array and back.dtype == x.dtype
        np.testing.assert_array_equal(back, x)
    file = io.BytesIO()
    jnp.savez(file, jnp.arange(2), named=jnp.ones(3))
    file.seek(0)
    found = jnp.load(file)
    assert sorted(found.files) == ["arr_0", "named"]
    np.testing.assert_array_equal(found["named"], np.ones(3))
    assert np.frombuffer(BYTES, ml_dtypes.bfloat16).dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: jnp.fromfile("x"), NotImplementedError, r"asarray\(numpy.fromfile"),
        (lambda: jnp.fromiter(range(3), int), NotImplementedError, r"asarray\(numpy.fromiter"),
        (lambda: jnp.fromstring("1 2", sep=""), ValueError, "`sep`"),
        (lambda: jnp.fromstring(b"12", sep=" "), TypeError, "bytes"),
        (lambda: jnp.frombuffer(jnp.ones(3)), TypeError, "Array is not a buffer"),
        (lambda: jnp.savez("x", jnp.ones(1), arr_0=jnp.ones(1)), ValueError, "arr_0"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()
