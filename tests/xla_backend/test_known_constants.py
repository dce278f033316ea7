"""Constants whose values are written into compiled programs: small arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax_xla_backend._xla import compiling

X = np.arange(12, dtype=np.float32).reshape(4, 3)
POSITIONS = np.array([[0, 2], [3, 3]])


def signature(f: Any, *args: Any) -> str:
    """What the entry point of the compiled program takes."""
    text = corejax.jit(f).lower(*args).as_text()
    return text.partition("@main(")[2].partition(") ->")[0]


@pytest.mark.parametrize(
    "known",
    [POSITIONS, np.array([True, False, True]), jnp.array([1, 0]), np.zeros((0,), np.int8), X, jnp.ones(2) * 1j],
    ids=lambda x: f"{x.dtype}{list(x.shape)}",
)
def test_small_arrays_are_in_the_program(known: Any) -> None:
    assert signature(lambda x: (x * 2, known), X) == "%arg0: tensor<4x3xf32>"


@pytest.mark.parametrize("other", [np.ones(2000, np.float32), np.zeros(2, np.uint32), np.arange(5000)], ids=len)
def test_other_constants_are_arguments(other: Any) -> None:
    assert signature(lambda x: (x * 2, other), X).count("tensor") == 2


def test_single_rows_become_slices() -> None:
    row = np.array([2])
    text = corejax.jit(lambda x: x[row] + jnp.take(x, jnp.array([1]), axis=0, mode="wrap")).lower(X).compile().as_text()
    assert " slice(" in text and " gather(" not in text and "dynamic" not in text


def test_calls_and_transformations_are_as_without() -> None:
    mask = np.array([True, False, True])

    def f(x: Any) -> Any:
        return jnp.where(mask, x[POSITIONS], -1.0).sum(0)

    wanted = f(X)
    compiled = corejax.jit(f)
    ahead = compiled.lower(X).compile()
    for _ in range(3):
        for call in (compiled, ahead, corejax.jit(compiled), corejax.jit(f, keep_unused=True)):
            np.testing.assert_array_equal(call(X), wanted)
    gradient = corejax.grad(lambda x: (f(x) ** 2).sum())(X)
    np.testing.assert_array_equal(corejax.jit(corejax.grad(lambda x: (f(x) ** 2).sum()))(X), gradient)
    np.testing.assert_array_equal(corejax.grad(lambda x: (compiled(x) ** 2).sum())(X), gradient)
    np.testing.assert_array_equal(corejax.vmap(compiled)(X[None]), wanted[None])


def test_a_program_is_of_its_constants() -> None:
    """Functions that differ in what they close over alone, and one that is traced again."""
    for _ in range(2):
        for k in range(3):
            where = np.array([k, 0])
            np.testing.assert_array_equal(corejax.jit(lambda x, where=where: x[where])(X), X[where])

    def f(x: Any) -> Any:
        return x[kept]

    for k in range(3):
        kept = np.array([k, 1])
        np.testing.assert_array_equal(corejax.jit(f)(X), X[kept])


def test_other_numbers_are_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that is traced again compiles once more, and not for each."""
    texts: list[str] = []
    lower = compiling.lower
    monkeypatch.setattr(compiling, "lower", lambda *a, **k: (found := lower(*a, **k), texts.append(found.text))[0])

    def f(x: Any) -> Any:
        return x * weights

    for k in (1, 2, 3, 1, 4):
        weights = np.full(3, k, np.float32)
        np.testing.assert_array_equal(corejax.jit(f)(X), X * k)
    assert [text.partition("@main(")[2].partition(") ->")[0].count("tensor") for text in texts] == [1, 2]


def test_what_depends_on_numbers_alone_is_computed_by_the_compiler() -> None:
    angles = np.array([0.25, 0.5, 0.75], np.float32)
    text = corejax.jit(lambda x: x * jnp.tan(angles)).lower(X).compile().as_text()
    assert " tan(" not in text and " multiply(" in text


def test_donated_arguments_are_counted_right() -> None:
    call = corejax.jit(lambda x, y: (x[POSITIONS].sum(), y + 1), donate_argnums=1)
    y = jnp.asarray(X) + 0
    total, more = call(X, corejax.device_put(y))
    assert float(total) == X[POSITIONS].sum()
    np.testing.assert_array_equal(more, X + 1)
