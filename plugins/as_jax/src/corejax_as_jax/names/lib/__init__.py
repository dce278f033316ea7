"""`jax.lib`."""

from importlib.metadata import version as _version

__version__ = _version("jaxlib")
