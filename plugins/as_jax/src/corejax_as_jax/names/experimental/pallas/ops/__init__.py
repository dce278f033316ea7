"""`jax.experimental.pallas.ops`: corejax has no Pallas."""
