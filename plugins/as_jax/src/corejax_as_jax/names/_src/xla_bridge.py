"""`jax._src.xla_bridge`."""

from corejax_as_jax.backends import backends, get_backend

_backends: dict = {}
