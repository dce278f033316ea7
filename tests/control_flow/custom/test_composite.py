"""`composite`: its meaning, its name in compiled programs, its attributes."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
from corejax import lax

X = np.linspace(0.1, 1.0, 4, dtype=np.float32)


@functools.partial(lax.composite, name="acme.tangent", version=2)
def tangent(x: Any, /, *, scale: float, label: Any = None) -> Any:
    return lax.sin(x) / lax.cos(x) * scale


def test_it_means_its_decomposition() -> None:
    f = lambda x: tangent(x, scale=2.0)
    for transformed in (f, corejax.jit(f), corejax.vmap(f), corejax.jit(corejax.vmap(f))):
        np.testing.assert_allclose(transformed(X), 2 * np.tan(X), rtol=1e-5)
    slope = corejax.jit(corejax.vmap(corejax.grad(f)))(X)
    np.testing.assert_allclose(slope, 2 / np.cos(X) ** 2, rtol=1e-5)
    assert corejax.make_jaxpr(f)(X).jaxpr.eqns[0].primitive.name == "composite"
    assert tangent.__name__ == "tangent"
    assert "composite" not in str(corejax.make_jaxpr(corejax.grad(lambda x: f(x).sum()))(X)), "derivatives have no name"


def test_the_name_is_in_the_compiled_program() -> None:
    attributes = {
        "flag": True,
        "axes": (0, 1),
        "label": 'a "b"',
        "kind": np.dtype("float32"),
        "real": 0.5,
        "none": None,
    }
    attributes |= {"table": np.array([[1, 2]], np.int32), "small": ml_dtypes.bfloat16, "flags": np.array([True, False])}
    f = lax.composite(lambda x, **kwargs: (x + 1, x * 2), "acme.op")
    text = corejax.jit(lambda x: f(x, **attributes)).lower(X).as_text()
    for part in (
        'composite "acme.op"',
        "flag = true",
        "axes = [0, 1]",
        'label = "a \\22b\\22"',
        "kind = f32",
        "real = 5.000000e-01 : f64",
        "table = dense<[[1, 2]]> : tensor<1x2xi32>",
        "flags = dense<[true, false]> : tensor<2xi1>",
        "small = bf16",
        "decomposition = @acme_op",
    ):
        assert part in text, (part, text)
    assert "none" not in text
    out = corejax.jit(lambda x: f(x, **attributes))(X)
    np.testing.assert_array_equal(out[0], X + 1)
    assert "version = 2 : i32" in corejax.jit(lambda x: tangent(x, scale=1.0)).lower(X).as_text()


def test_arguments_are_trees_and_constants_are_operands() -> None:
    table = np.arange(4, dtype=np.float32)
    f = lax.composite(lambda tree: {"sum": tree["a"] + tree["b"][0] + corejax.numpy.asarray(table)}, "acme.sum")
    for g in (f, corejax.jit(f)):
        np.testing.assert_array_equal(g({"a": X, "b": [X]})["sum"], X + X + table)


def test_what_is_traced_is_an_argument() -> None:
    with pytest.raises(TypeError, match=r"'acme.tangent': attribute 'scale' must be static"):
        corejax.jit(lambda x, s: tangent(x, scale=s))(X, 2.0)
    with pytest.raises(TypeError, match=r"'acme.c': its decomposition .* closes over a traced value"):
        corejax.jit(lambda x, y: lax.composite(lambda x: x + y, "acme.c")(x))(X, X)
    with pytest.raises(TypeError, match=r"attribute 'label' must be a number, a string, .* of type set"):
        tangent(X, scale=1.0, label={1})
    with pytest.raises(TypeError, match="its name must be a non-empty string, got 3"):
        lax.composite(lambda x: x, 3)
