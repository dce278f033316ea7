"""Operands that do not fit: every primitive of several operands says which, and both shapes or dtypes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.lax as lax

F3, F4, I3 = np.ones(3, np.float32), np.ones(4, np.float32), np.ones(3, np.int32)
BINARY = ("add", "sub", "mul", "div", "pow", "max", "min", "rem", "eq", "ne", "lt", "le", "gt", "ge")
BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
i32 = np.int32

SHAPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    **{name: (getattr(lax, name), (F3, F4)) for name in BINARY},
    **{name: (getattr(lax, name), (I3, np.ones(4, np.int32))) for name in BITWISE},
    "select_n": (lax.select_n, (F3 > 0, F4, F4)),
    "clamp": (lax.clamp, (F3, F4, F3)),
    "concatenate": (lambda x, y: lax.concatenate([x, y], 0), (np.ones((2, 3)), np.ones((2, 4)))),
    "dot_general": (lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ()))), (np.ones((2, 3)), np.ones((4, 2)))),
    "dynamic_update_slice": (lambda x, u: lax.dynamic_update_slice(x, u, (i32(0),)), (F3, F4)),
}
DTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    **{name: (getattr(lax, name), (F3, I3)) for name in BINARY if name != "pow"},
    **{name: (getattr(lax, name), (I3, np.ones(3, np.int64))) for name in BITWISE},
    "select_n": (lax.select_n, (F3 > 0, F3, I3)),
    "clamp": (lax.clamp, (I3, F3, F3)),
    "concatenate": (lambda x, y: lax.concatenate([x, y], 0), (F3, I3)),
    "pad": (lambda x, v: lax.pad(x, v, ((1, 1, 0),)), (F3, np.int32(0))),
    "dynamic_update_slice": (lambda x, u: lax.dynamic_update_slice(x, u, (i32(0),)), (F4, I3)),
}


def numbers(shape: tuple[int, ...]) -> str:
    return r"\D{0,2}".join(str(d) for d in shape)


@pytest.mark.parametrize("wrap", [lambda f: f, corejax.make_jaxpr, corejax.jit], ids=["eager", "staged", "compiled"])
@pytest.mark.parametrize("name", sorted(SHAPES))
def test_shapes(name: str, wrap: Any) -> None:
    fun, args = SHAPES[name]
    with pytest.raises((TypeError, ValueError)) as caught:
        wrap(fun)(*args)
    text = str(caught.value)
    assert name.removeprefix("bitwise_") in text
    for shape in {np.shape(a) for a in args}:
        assert re.search(numbers(shape), text), f"{shape} is not in: {text}"


@pytest.mark.parametrize("wrap", [lambda f: f, corejax.make_jaxpr, corejax.jit], ids=["eager", "staged", "compiled"])
@pytest.mark.parametrize("name", sorted(DTYPES))
def test_dtypes(name: str, wrap: Any) -> None:
    fun, args = DTYPES[name]
    with pytest.raises((TypeError, ValueError)) as caught:
        wrap(fun)(*args)
    text = str(caught.value)
    assert name.removeprefix("bitwise_") in text
    for dtype in {np.asarray(a).dtype for a in args if np.asarray(a).dtype != np.bool_}:
        assert dtype.name in text or f"{dtype.kind}{dtype.itemsize * 8}" in text, f"{dtype} is not in: {text}"


@pytest.mark.parametrize(
    "name", ["sin", "cos", "tan", "tanh", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "logistic"]
)
def test_functions_of_floats_refuse_integers(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name}.*int32"):
        getattr(lax, name)(I3)
