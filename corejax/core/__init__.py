"""Types, traces and primitives. The names exported here are those of `jax.core`."""

from __future__ import annotations

from corejax.base.dims import max_dim as max_dim
from corejax.base.dims import min_dim as min_dim
from corejax.core.avals import ShapedArray as ShapedArray
from corejax.core.trace import Tracer as Tracer

__all__ = ["ShapedArray", "Tracer", "max_dim", "min_dim"]
