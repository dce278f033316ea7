"""Types, traces and primitives. The names exported here are those of `jax.core`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from corejax.base.dims import max_dim as max_dim
from corejax.base.dims import min_dim as min_dim

if TYPE_CHECKING:
    from corejax.core.avals import ShapedArray as ShapedArray
    from corejax.core.trace import Tracer as Tracer

__all__ = ["ShapedArray", "Tracer", "max_dim", "min_dim"]

_HOMES = {"ShapedArray": "corejax.core.avals", "Tracer": "corejax.core.trace"}  # imported at first use, with NumPy


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
