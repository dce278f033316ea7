"""`jax._src.config`."""

from corejax import config
