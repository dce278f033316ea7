"""`jax.tree_util`."""

from corejax_as_jax.trees import default_registry
from corejax_as_jax.trees import tree_functions as _functions

globals().update({f"tree_{name}": function for name, function in _functions.items()})
