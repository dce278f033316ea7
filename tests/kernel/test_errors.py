"""`corejax.errors` beside `jax.errors`: names, and what is caught by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import errors, export

X = np.arange(3, dtype=np.float32)


def leak(m: Any) -> None:
    kept: list[Any] = []
    m.vmap(kept.append)(X)
    m.numpy.sin(kept[0])


def branch(m: Any) -> None:
    m.jit(lambda x: 1 if x.sum() > 0 else 2)(X)


CAUGHT: dict[str, Callable[[Any], Any]] = {
    "TracerBoolConversionError": branch,
    "ConcretizationTypeError": branch,
    "TracerArrayConversionError": lambda m: m.jit(np.asarray)(X),
    "TracerIntegerConversionError": lambda m: m.jit(lambda n: [1, 2][n])(1),
    "UnexpectedTracerError": leak,
    "NonConcreteBooleanIndexError": lambda m: m.jit(lambda x: x[x > 0])(X),
}


def test_names_are_jaxs() -> None:
    theirs = pytest.importorskip("jax").errors
    names = {name for name in dir(theirs) if isinstance(getattr(theirs, name), type)}
    assert names <= set(dir(errors))
    for name in names:
        assert issubclass(getattr(errors, name), Exception)


@pytest.mark.parametrize("name", CAUGHT)
def test_code_that_catches_jaxs(name: str) -> None:
    for m in (corejax, pytest.importorskip("jax")):
        with pytest.raises(getattr(m.errors, name)):
            CAUGHT[name](m)


def test_keys_and_symbolic_sizes() -> None:
    from corejax.experimental import key_reuse

    key = corejax.random.key(0)
    with corejax.debug_key_reuse(True), pytest.raises(errors.KeyReuseError):
        [corejax.random.normal(key) for _ in range(2)]
    assert key_reuse.KeyReuseError is errors.KeyReuseError
    with pytest.raises(errors.InconclusiveDimensionOperation):
        bool(export.symbolic_shape("b")[0] > 5)
    assert export.InconclusiveDimensionOperation is errors.InconclusiveDimensionOperation


def test_what_fails_while_a_program_runs() -> None:
    x = corejax.jit(lambda x: x + 1)(X)
    x.delete()
    with pytest.raises(errors.JaxRuntimeError):
        np.asarray(x)
    with pytest.raises(errors.JaxRuntimeError):
        corejax.devices()[0].memory("tape")
