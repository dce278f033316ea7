"""Names of functions and files are not part of what a program means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import jit

pytest.importorskip("jaxlib")

X = np.arange(3, dtype=np.float32)
NAMES = [
    "main",
    "main_1",
    "jit_f",
    "",
    "é",
    "日本",
    "ªº²",
    "a\0b",
    "a\nb",
    '"quoted"',
    "1st",
    "%arg0",
    "@x",
    "jit(f",
    "\\",
]
NAMES += ["loc(#corejax0)", "\ud800", "x" * 10_000]


def named(name: str, file: str = "file.py") -> Any:
    """A function of that name, in a file of that name."""

    def f(x: Any) -> Any:
        return jnp.sin(x) + 1

    f.__name__ = f.__qualname__ = name
    f.__code__ = f.__code__.replace(co_filename=file, co_name=name)
    return f


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_functions_of_any_name(name: str) -> None:
    f = jit(named(name))
    np.testing.assert_allclose(f(X), np.sin(X) + 1, rtol=1e-6)
    whole = jit(lambda x: f(x) * 2 + jit(named(name))(2 * x))
    np.testing.assert_allclose(whole(X), 3 + 2 * np.sin(X) + np.sin(2 * X), rtol=1e-5)
    np.testing.assert_allclose(jit(corejax.named_call(f, name=name))(X), np.sin(X) + 1, rtol=1e-6)
    assert "stablehlo.sine" in f.lower(X).as_text(debug_info=True)


@pytest.mark.parametrize("name", ["main", "main_1"])
def test_the_whole_program_is_what_runs(name: str) -> None:
    """An inner function called like the entry point of the compiled program."""
    inner, other = jit(named(name)), jit(named("main"))
    whole = jit(lambda x: inner(x) + 10 * other(x))
    np.testing.assert_allclose(whole(X), 11 * (np.sin(X) + 1), rtol=1e-6)
    text = whole.lower(X).as_text()
    assert text.count("func.func public @main(") == text.count("func.func public") == 1


@pytest.mark.parametrize("file", ["a\0b.py", "é.py", 'a"b\\c.py', "a\nb.py", "\ud800.py"], ids=ascii)
def test_files_of_any_name(file: str) -> None:
    f = jit(named("f", file))
    np.testing.assert_allclose(f(X), np.sin(X) + 1, rtol=1e-6)
    assert "stablehlo.sine" in f.lower(X).as_text(debug_info=True)
