"""`jax.experimental.pallas.ops.tpu`: corejax has no Pallas."""
