"""corejax programs in JAX, and JAX functions in corejax; see `corejax.to_jax` and `corejax.from_jax`."""
