"""Mistakes next to those of docs/thinking.md, and what is said of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import grad, jit, random, vmap
from corejax.errors import UnexpectedTracerError

pytest.importorskip("jaxlib")
X = jnp.arange(3.0)


def said(kind: type[Exception], function: Any, *args: Any) -> str:
    with pytest.raises(kind) as caught:
        function(*args)
    return str(caught.value)


def test_writing_in_other_ways() -> None:
    def delete(x: Any) -> None:
        del x[0]

    def assign(x: Any) -> None:
        x.at[0] = 1.0

    def add(x: Any) -> None:
        x.at[0] += 1.0

    def divide(x: Any) -> None:
        x.at[0] /= 2.0

    for run in (lambda f: f(X), lambda f: jit(f)(X)):
        assert "x = corejax.numpy.delete(x, index)" in said(TypeError, run, delete)
        assert "x = x.at[index].set(value)" in said(TypeError, run, assign)
        assert "x = x.at[index].add(value)" in said(TypeError, run, add)
        assert "multiply, divide" in said(TypeError, run, divide)
        assert "x.at[index].set(value)" in said(TypeError, run, lambda x: x.at(0).set(1))


def test_a_number_of_parts_that_is_traced() -> None:
    text = said(TypeError, jit(lambda x, n: jnp.split(x, n)), X, 3)
    assert "depends on the value of the argument n" in text and "static_argnums" in text
    assert "a number of parts" in said(TypeError, jnp.split, X, "a")


@pytest.mark.parametrize("use", [bool, int, float, np.asarray, lambda x: x.item(), lambda x: range(x), "{:.2f}".format])
def test_conversions_of_what_is_kept_for_later(use: Any) -> None:
    """Whoever converts it is told that it escaped, not that it is being traced."""
    kept = []
    for transformed in (jit, vmap):
        transformed(lambda x: kept.append(jnp.int32(x)) or x)(X if transformed is vmap else 1.0)
        text = said(UnexpectedTracerError, use, kept.pop())
        assert "that transformation has ended" in text and "test_mistakes.py" in text


def test_what_gradients_refuse() -> None:
    assert "is its return statement missing?" in said(TypeError, grad(lambda x: None), 1.0)
    assert "is key<fry>. Convert" in said(TypeError, grad(random.normal), random.key(0))
    for transform in (corejax.jacfwd, corejax.hessian):
        assert "allow_int" not in said(TypeError, transform(lambda x: x), 3)
    for transform in (grad, corejax.jacrev, corejax.value_and_grad):
        assert "allow_int" in said(TypeError, transform(lambda x: x), 3)


def test_static_arguments_without_a_hash() -> None:
    @dataclasses.dataclass
    class Config:
        width: int

    f = jit(lambda x, n: x, static_argnums=1)
    for value, words in {
        "list": ([3], "pass a tuple instead of a list, or do not mark"),
        "tuple": (([3],), "what is in it has to be, too"),
        "dict": ({"a": 1}, "pass a tuple of what is in it"),
        "dataclass": (Config(1), "@dataclass(frozen=True)"),
        "array": (np.ones(2), "; do not mark the argument as static"),
    }.values():
        assert words in said(TypeError, f, X, value)
    assert "argument of the transformation around this call" in said(TypeError, vmap(f), X, jnp.arange(3))
    assert "argument of the transformation around this call" in said(TypeError, jit(f), X, 3)


def test_in_axes_for_a_keyword() -> None:
    text = said(ValueError, lambda: vmap(lambda x, s: x * s, in_axes=(0, None))(X, s=2.0))
    assert "1 positional arguments (those by keyword are mapped over axis 0)" in text
