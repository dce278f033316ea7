"""Names, order and defaults of arguments are jax's."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import corejax
import corejax.experimental

jax = pytest.importorskip("jax")
pytest.importorskip("jax.experimental")

PRIVATE = "_use_logging"
FUNCTIONS = ["pure_callback", "experimental.io_callback", "effects_barrier", "debug_nans", "debug_infs"]
FUNCTIONS += [f"debug.{name}" for name in dir(jax.debug) if inspect.isfunction(getattr(jax.debug, name))]


def found(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part)
    return module


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments(name: str) -> None:
    ours, theirs = (found(module, name) for module in (corejax, jax))
    if not inspect.isfunction(theirs):  # a setting's context manager
        assert list(inspect.signature(ours).parameters) == ["new_val"]
        return
    wanted = [p for p in inspect.signature(theirs).parameters.values() if p.name != PRIVATE]
    given = list(inspect.signature(ours).parameters.values())
    assert [(p.name, p.kind, p.default) for p in given] == [(p.name, p.kind, p.default) for p in wanted]


def test_every_function_of_jax_debug_is_there() -> None:
    theirs = {name for name in dir(jax.debug) if name[0].islower() and callable(getattr(jax.debug, name))}
    assert theirs <= set(corejax.debug.__all__)
