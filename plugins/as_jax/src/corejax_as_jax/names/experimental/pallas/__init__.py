"""`jax.experimental.pallas`: corejax has no Pallas."""
