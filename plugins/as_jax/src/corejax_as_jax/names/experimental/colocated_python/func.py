"""`jax.experimental.colocated_python.func`."""
