"""`jax.tree`."""

from corejax_as_jax.trees import functions as _functions

globals().update(_functions)
