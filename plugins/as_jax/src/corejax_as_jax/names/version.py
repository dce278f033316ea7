"""`jax.version`."""

from corejax_as_jax.version import JAX_VERSION as __version__

__version_info__ = tuple(int(number) for number in __version__.split("."))
