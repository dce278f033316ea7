"""`jax.tree`."""

from corejax_as_jax.trees import tree_functions as _functions

globals().update(_functions)
