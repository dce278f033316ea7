"""`jax._src.flatten_util`."""

from corejax.flatten_util import ravel_pytree
