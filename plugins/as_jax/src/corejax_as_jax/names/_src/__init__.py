"""`jax._src`: private names that known libraries use; docs/how-to/use-jax-libraries.md lists them by library."""
