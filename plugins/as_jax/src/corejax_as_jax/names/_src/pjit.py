"""`jax._src.pjit`."""

from corejax_as_jax.primitives import primitive_of_name as __getattr__
