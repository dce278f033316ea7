"""`dce_sink`: what is computed for nobody stays in programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
from corejax import lax


def sunk(lax: Any, kept: bool = False) -> Any:
    def f(x: Any) -> Any:
        lax.dce_sink({"a": x + 1.0, "b": (x * 2.0,)}, prevent_mlir_dce=kept)
        return x * x

    return f


def names(program: Any) -> list[str]:
    return [eqn.primitive.name for eqn in program.eqns]


def test_programs_are_jaxs() -> None:
    jax = pytest.importorskip("jax")
    x = np.float32(2)
    assert names(corejax.make_jaxpr(sunk(lax))(x)) == [e.primitive.name for e in jax.make_jaxpr(sunk(jax.lax))(x).eqns]


@pytest.mark.parametrize("kept", [False, True])
def test_values_stay_through_transformations(kept: bool) -> None:
    f, x = sunk(lax, kept), np.arange(3, dtype=np.float32)
    for g, value in (
        (corejax.vmap(f), x**2),
        (corejax.grad(lambda x: f(x).sum()), 2 * x),
        (corejax.checkpoint(f), x**2),
    ):
        assert str(corejax.make_jaxpr(corejax.jit(g))(x)).count("dce_sink") >= 2
        np.testing.assert_allclose(np.asarray(g(x)), value)
        np.testing.assert_allclose(np.asarray(corejax.jit(g)(x)), value)
    looped = corejax.make_jaxpr(lambda x: lax.scan(lambda c, a: (c, f(a)), 0, x))(x)
    assert str(corejax.extend.programs.dce(looped.jaxpr)).count("dce_sink") == 2


def test_what_the_compiler_keeps() -> None:
    x = np.arange(3, dtype=np.float32)
    for kept in (False, True):
        text = corejax.jit(sunk(lax, kept)).lower(x).compile().as_text()
        assert ('custom_call_target="dce_sink"' in text) is kept


def test_what_is_no_array() -> None:
    with pytest.raises(TypeError, match=r"argument val\[0\] is 'a'"):
        lax.dce_sink(["a"])
    assert lax.dce_sink(()) is None
