"""`corejax.core`: names that JAX's users know from `jax.core`."""

from corejax.extend import ShapedArray, Tracer, max_dim, min_dim

__all__ = ["ShapedArray", "Tracer", "max_dim", "min_dim"]
