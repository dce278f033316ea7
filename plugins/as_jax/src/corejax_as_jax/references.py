"""`jax.Ref`, the functions that make references and end them, and `jax.typeof`, which knows references."""

from __future__ import annotations

from typing import Any

import corejax
from corejax.ref import AbstractRef, Ref, empty_ref, free_ref, freeze, new_ref

__all__ = ["Ref", "empty_ref", "free_ref", "freeze", "new_ref", "typeof"]


def typeof(x: Any) -> Any:
    """Return the type of a value; for a reference an `AbstractRef`, as in JAX, where corejax returns its value's."""
    return AbstractRef(x.aval) if type(x) is Ref else corejax.typeof(x)
