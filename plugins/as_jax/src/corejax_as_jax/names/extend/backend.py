"""`jax.extend.backend`."""

from corejax_as_jax.backends import backends, clear_backends, get_backend, get_default_device
