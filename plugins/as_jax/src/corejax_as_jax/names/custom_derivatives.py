"""`jax.custom_derivatives`."""

from corejax_as_jax.derivatives import custom_jvp
