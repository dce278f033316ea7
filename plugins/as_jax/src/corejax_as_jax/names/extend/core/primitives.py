"""`jax.extend.core.primitives`: corejax's primitives by JAX's names."""

from corejax_as_jax.primitives import primitive_of_name as __getattr__
