"""`jax.experimental.array_serialization.tensorstore_impl`."""
