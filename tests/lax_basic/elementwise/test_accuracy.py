"""Functions that can be asked for an accuracy: programs, values and derivatives as without, errors."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import lax
from corejax.ir import parse_jaxpr, same_jaxpr
from tests.lax_basic.support import assert_same, jax

__all__ = ["jax"]

FUNCTIONS = ("exp", "exp2", "expm1", "log", "log1p", "tanh", "logistic", "sin", "cos", "tan", "sqrt", "rsqrt", "cbrt")
ACCURACIES = [lax.AccuracyMode.HIGHEST, lax.AccuracyMode.DEFAULT, lax.Tolerance(1e-3, 1e-7, 2), lax.Tolerance(ulps=64)]


def test_values_and_derivatives_run_and_compiled(jax: Any) -> None:
    x = np.linspace(0.1, 2, 5)

    def ours(x: Any) -> list[Any]:
        functions = [
            partial(getattr(lax, name), accuracy=ACCURACIES[i % len(ACCURACIES)]) for i, name in enumerate(FUNCTIONS)
        ]
        return [corejax.vmap(corejax.grad(function))(x) for function in functions]

    theirs = [jax.vmap(jax.grad(getattr(jax.lax, name)))(x) for name in FUNCTIONS]
    for run, compiled, expected in zip(ours(x), corejax.jit(ours)(x), theirs, strict=True):
        assert_same(run, np.asarray(expected), rtol=1e-9)
        assert_same(compiled, np.asarray(expected), rtol=1e-9)
    for name in FUNCTIONS:
        for accuracy in ACCURACIES:
            np.testing.assert_array_equal(getattr(lax, name)(x, accuracy=accuracy), getattr(lax, name)(x))


def test_programs_say_it() -> None:
    def f(x: Any) -> Any:
        return lax.exp(lax.sin(x, accuracy=lax.AccuracyMode.HIGHEST), accuracy=lax.Tolerance(rtol=1e-7))

    program = corejax.make_jaxpr(f)(1.0)
    assert "sin[accuracy=AccuracyMode.HIGHEST]" in str(program)
    assert "Tolerance(atol=0.0, rtol=1e-07, ulps=0)" in str(program)
    assert same_jaxpr(parse_jaxpr(str(program)), program)
    text = corejax.jit(f).lower(1.0).as_text()
    assert "result_accuracy_mode<HIGHEST>" in text
    assert "result_accuracy_mode<TOLERANCE>" in text
    assert "accuracy" not in str(corejax.make_jaxpr(lax.exp)(1.0))


def test_the_highest_accuracy_is_that_of_the_derivative_too() -> None:
    """Where a function is almost constant, its derivative is not lost."""
    for function, x, expected in ((lax.tanh, 20.0, 4 * np.exp(-40.0)), (lax.logistic, 40.0, np.exp(-40.0))):
        highest = corejax.grad(lambda v, f=function: f(v, accuracy=lax.AccuracyMode.HIGHEST))(x)
        np.testing.assert_allclose(highest, expected, rtol=1e-5)
    highest = corejax.grad(lambda v: lax.expm1(v, accuracy=lax.AccuracyMode.HIGHEST))(-40.0)
    np.testing.assert_allclose(highest, np.exp(-40.0), rtol=1e-5)


def test_errors() -> None:
    with pytest.raises(TypeError, match=r"sin: `accuracy` has to be a lax.Tolerance, .*, got 'highest'"):
        lax.sin(1.0, accuracy="highest")
    with pytest.raises(ValueError, match=r"nonnegative, got Tolerance\(atol=-1"):
        lax.Tolerance(-1)
    with pytest.raises(ValueError, match="at least one of atol, rtol and ulps"):
        lax.Tolerance()
    with pytest.raises(TypeError):
        lax.sin(1.0, lax.AccuracyMode.HIGHEST)  # by name only
