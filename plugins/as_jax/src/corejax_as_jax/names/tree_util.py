"""`jax.tree_util`."""

from corejax_as_jax.trees import default_registry
