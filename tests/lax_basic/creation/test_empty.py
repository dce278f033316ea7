"""`empty` and tokens."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
from corejax import lax


def test_empty_has_a_shape_and_a_dtype() -> None:
    for f in (lambda: lax.empty((2, 3), np.int8), corejax.jit(lambda: lax.empty((2, 3), np.int8))):
        assert (f().shape, f().dtype) == ((2, 3), np.int8)
    assert lax.empty(3, "bfloat16").shape == (3,)
    for shape in ((1.5,), 2.0, np.float32(2), lax.full((), 2.0)):
        with pytest.raises(TypeError, match="Shapes must be 1D sequences"):
            lax.empty(shape, np.float32)


def test_tokens_go_through_programs() -> None:
    def f(x: float) -> tuple:
        token = lax.after_all(lax.create_token(x), lax.create_token())
        return x * 2, lax.after_all(token)

    for transformed in (f, corejax.jit(f), lambda x: corejax.jit(corejax.vmap(f))(np.full(2, x, np.float32))):
        value, token = transformed(3.0)
        np.testing.assert_array_equal(np.ravel(value)[:1], [6.0])
        assert token.size == 0
    assert str(corejax.make_jaxpr(f)(1.0)).count("after_all") == 2


def test_only_tokens_are_waited_for() -> None:
    with pytest.raises(TypeError, match=r"operand 1 is f32\[2\]"):
        lax.after_all(lax.create_token(), np.ones(2, np.float32))
