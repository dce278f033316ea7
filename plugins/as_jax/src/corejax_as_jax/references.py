"""`jax.Ref`, the functions that make references and end them, and `jax.typeof`, which knows references."""

from __future__ import annotations

from typing import Any

import corejax
from corejax import ref as refs
from corejax.ref import AbstractRef, Ref, free_ref, freeze

__all__ = ["Ref", "empty_ref", "free_ref", "freeze", "new_ref", "typeof"]

made: list[bool] = []
"""Not empty after the program has made a reference."""


def new_ref(init_val: Any, **options: Any) -> Ref:
    """Make a reference; see `corejax.new_ref`."""
    made[:] = [True]
    return refs.new_ref(init_val, **options)


def empty_ref(ty: Any, **options: Any) -> Ref:
    """Make a reference without a value; see `corejax.empty_ref`."""
    made[:] = [True]
    return refs.empty_ref(ty, **options)


def typeof(x: Any) -> Any:
    """Return the type of a value; for a reference an `AbstractRef`, as in JAX, where corejax returns its value's."""
    return AbstractRef(x.aval) if type(x) is Ref else corejax.typeof(x)
