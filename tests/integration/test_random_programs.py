"""Random programs under random nests of transformations: corejax against jax, and corejax against itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import corejax
import corejax.lax as lax
import corejax.numpy as jnp
from corejax.ir import check_jaxpr
from tests.integration.random_programs import COLUMNS, ROWS, Program, programs


@pytest.fixture(scope="module", autouse=True)
def wide() -> Iterator[None]:
    with corejax.config.override(default_dtype_bits=64):
        yield


X = np.linspace(-1.0, 1.5, ROWS * COLUMNS).reshape(ROWS, COLUMNS)
Y = np.cos(np.arange(ROWS * COLUMNS) * 1.7).reshape(ROWS, COLUMNS)
WORDS = ("jit", "grad", "vmap", "jvp", "linearize", "columns", "scan", "checkpoint", "empty")


def transformed(lib: Any, numpy: Any, word: str, f: Any) -> Any:
    """A function of two arrays made of another by one transformation; the result is an array."""
    if word == "jit":
        return lib.jit(f)
    if word == "grad":
        return lib.grad(lambda x, y: numpy.sum(f(x, y)) * 0.1)
    if word == "vmap":
        return lambda x, y: numpy.sum(lib.vmap(lambda s: f(x * s, y))(numpy.array([0.5, 1.0])), axis=0)
    if word == "columns":
        both = lib.vmap(f, in_axes=(1, None), out_axes=2)
        return lambda x, y: numpy.sum(both(numpy.stack([x, 0.5 * y], 1), y), axis=2)
    if word == "scan":
        lax = lib.lax
        return lambda x, y: lax.scan(lambda c, s: (c + 0.1 * f(c * s, y), None), x, numpy.array([0.5, 1.0]))[0]
    if word == "checkpoint":
        return lib.checkpoint(f)
    if word == "empty":
        return lambda x, y: f(x, y) + numpy.sum(lib.vmap(f, in_axes=(0, None))(x[None][:0], y), axis=0)
    if word == "jvp":
        return lambda x, y: lib.jvp(f, (x, y), (y, x))[1]
    return lambda x, y: lib.linearize(lambda a: f(a, y), x)[1](y)


def nest(lib: Any, numpy: Any, words: tuple[str, ...], f: Any) -> Any:
    for word in words:
        f = transformed(lib, numpy, word, f)
    return f


def check_against_jax(program: Program, words: tuple[str, ...]) -> None:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        try:
            theirs = nest(jax, jax.numpy, words, program(jax, jax.lax, jax.numpy))(X, Y)
        except (NotImplementedError, ValueError):  # ragged_dot has few of its rules in jax, igamma no derivative by a
            reject()
    ours = nest(corejax, jnp, words, program(corejax, lax, jnp))(X, Y)
    np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-8)


@settings(max_examples=15)
@given(program=programs(), words=st.lists(st.sampled_from(WORDS), max_size=3).map(tuple))
def test_against_jax(program: Program, words: tuple[str, ...]) -> None:
    check_against_jax(program, words)


@pytest.mark.slow
@settings(max_examples=60)
@given(program=programs(), words=st.lists(st.sampled_from(WORDS), max_size=3).map(tuple))
def test_against_jax_at_length(program: Program, words: tuple[str, ...]) -> None:
    check_against_jax(program, words)


def check_eager_compiled_and_program_agree(program: Program, words: tuple[str, ...]) -> None:
    f = nest(corejax, jnp, words, program(corejax, lax, jnp))
    eager = f(X, Y)
    np.testing.assert_allclose(corejax.jit(f)(X, Y), eager, rtol=1e-8, atol=1e-9)
    staged = corejax.make_jaxpr(f)(X, Y)
    check_jaxpr(staged)
    np.testing.assert_allclose(corejax.eval_jaxpr(staged.jaxpr, staged.consts, [X, Y])[0], eager, rtol=1e-8, atol=1e-9)


@settings(max_examples=25)
@given(program=programs(), words=st.lists(st.sampled_from(WORDS[1:]), max_size=2).map(tuple))
def test_eager_compiled_and_program_agree(program: Program, words: tuple[str, ...]) -> None:
    check_eager_compiled_and_program_agree(program, words)


@pytest.mark.slow
@settings(max_examples=40)
@given(program=programs(), words=st.lists(st.sampled_from(WORDS[1:]), max_size=2).map(tuple))
def test_eager_compiled_and_program_agree_at_length(program: Program, words: tuple[str, ...]) -> None:
    check_eager_compiled_and_program_agree(program, words)


def check_reverse_mode_is_the_transpose_of_forward_mode(program: Program) -> None:
    f = program(corejax, lax, jnp)
    out, pullback = corejax.vjp(f, X, Y)
    _, tangent = corejax.jvp(f, (X, Y), (Y, X))
    ct = np.sin(np.arange(np.size(out))).reshape(np.shape(out))
    x_bar, y_bar = pullback(ct)
    forward = np.sum(np.asarray(tangent) * ct)
    np.testing.assert_allclose(
        np.sum(np.asarray(x_bar) * Y) + np.sum(np.asarray(y_bar) * X), forward, rtol=1e-8, atol=1e-9
    )


@settings(max_examples=15)
@given(program=programs())
def test_reverse_mode_is_the_transpose_of_forward_mode(program: Program) -> None:
    check_reverse_mode_is_the_transpose_of_forward_mode(program)


@pytest.mark.slow
@settings(max_examples=40)
@given(program=programs())
def test_reverse_mode_is_the_transpose_of_forward_mode_at_length(program: Program) -> None:
    check_reverse_mode_is_the_transpose_of_forward_mode(program)
