"""`jax.extend`."""
