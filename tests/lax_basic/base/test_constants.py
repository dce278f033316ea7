"""A NumPy array that a traced function uses again is one constant of its program, whatever uses it."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import lax
from corejax.extend import as_array

X = np.array([1.0, 2.0, 3.0], np.float32)


def constants(fun: Any, *args: Any) -> list[list[float]]:
    """Values of the constants of a function's program."""
    return [np.asarray(c).tolist() for c in corejax.make_jaxpr(fun)(*args).consts]


def fresh() -> Any:
    return np.array([5.0, 6.0, 7.0], np.float32)


PROGRAMS = {
    "arithmetic": lambda x, c: x + c - c * x,
    "powers and divisions": lambda x, c: x**c / c % c,
    "comparisons": lambda x, c: (x < c) | (c == x),
    "products": lambda x, c: (c @ x) + (x @ c),
    "methods": lambda x, c: x.clip(c, c).dot(c),
    "broadcasting": lambda x, c: (x[:, None] + c) * c,
    "conversion": lambda x, c: x.astype(np.float64) * c + x * c,
    "asarray": lambda x, c: lax.asarray(c) * x + c,
    "jit inside": lambda x, c: corejax.jit(lambda x: x * c + c)(x),
}


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: corejax.vmap(f, axis_size=3, in_axes=None)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_once(name: str, wrap: Any) -> None:
    c = fresh()
    assert constants(wrap(lambda x: PROGRAMS[name](x, c)), X) == [c.tolist()]


def test_derivatives_use_the_same() -> None:
    c = fresh()
    f = lambda x: ((x * c) ** 2 * c).sum()
    assert constants(corejax.grad(f), X) == [c.tolist()]
    assert constants(lambda x: corejax.jvp(f, (x,), (x,)), X) == [c.tolist()]
    assert constants(corejax.jit(corejax.grad(f)), X) == [c.tolist()]


def test_one_that_is_written_to_is_two() -> None:
    c = fresh()

    def f(x: Any) -> Any:
        y = x * c
        c[0] = -1.0
        y = y + c
        c[0] = 5.0
        return y

    assert constants(f, X) == [[5.0, 6.0, 7.0], [-1.0, 6.0, 7.0]]
    np.testing.assert_array_equal(corejax.jit(f)(X), [4.0, 18.0, 28.0])


def test_later_writes_do_not_show() -> None:
    c = fresh()
    x = as_array(X)
    _, linear = corejax.linearize(lambda x: x * c, x)
    program = corejax.make_jaxpr(lambda x: x * c + c)(x)
    compiled = corejax.jit(lambda x: x * c + c)
    compiled(x)
    c[:] = 0
    np.testing.assert_array_equal(linear(x), [5.0, 12.0, 21.0])
    np.testing.assert_array_equal(corejax.eval_jaxpr(program.jaxpr, program.consts, [x])[0], [10.0, 18.0, 28.0])
    np.testing.assert_array_equal(compiled(x), [10.0, 18.0, 28.0])


def test_not_a_number_and_signed_zeros() -> None:
    c = np.array([np.nan, 0.0, 1.0], np.float32)
    assert len(constants(lambda x: x + c - c, X)) == 1

    def f(x: Any) -> Any:
        y = x * c
        c[1] = -0.0
        return y * c

    assert len(constants(f, X)) == 2


def test_views_and_other_types_are_others() -> None:
    c = np.arange(6, dtype=np.float32)
    assert constants(lambda x: x + c[::2] + c[::2], X)[0] == [0.0, 2.0, 4.0]
    assert len(constants(lambda x: x + c[:3] + c[:3].view(np.int32), X)) == 2


def test_copies_do_not_outlive_their_use() -> None:
    from corejax_lax_basic._base import constants as module

    c = fresh()
    corejax.make_jaxpr(lambda x: x + c)(X)
    gc.collect()
    assert id(c) not in module._copies


def test_what_is_written_to_a_numpy_array_later_does_not_reach_derivatives() -> None:
    c = np.array([2.0, 3.0])
    x = np.array([1.0, 1.0])
    _, f_lin = corejax.linearize(lambda x: lax.mul(x, c), x)
    _, pullback = corejax.vjp(lambda x: lax.mul(x, c), x)
    c[:] = 100.0
    np.testing.assert_array_equal(f_lin(x), [2.0, 3.0])
    np.testing.assert_array_equal(pullback(x)[0], [2.0, 3.0])
