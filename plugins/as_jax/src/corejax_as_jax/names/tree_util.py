"""`jax.tree_util`."""

from typing import Any as _Any

from corejax.extend import tree as _tree
from corejax_as_jax.trees import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    PyTreeDef,
    SequenceKey,
    all_leaves,
    broadcast_prefix,
    default_registry,
    flatten_one_level,
    flatten_one_level_with_keys,
    keystr,
)
from corejax_as_jax.trees import functions as _functions
from corejax_as_jax.trees import treedefs_tuple as treedef_tuple

_PUBLIC = """
DictKey FlattenedIndexKey GetAttrKey KeyEntry KeyPath Partial PyTreeDef SequenceKey all_leaves default_registry
flatten_one_level flatten_one_level_with_keys is_tree_node keystr register_dataclass register_pytree_node
register_pytree_node_class register_pytree_with_keys register_pytree_with_keys_class register_static tree_all
tree_broadcast tree_flatten tree_flatten_with_path tree_leaves tree_leaves_with_path tree_map tree_map_with_path
tree_reduce tree_reduce_associative tree_structure tree_transpose tree_unflatten treedef_children treedef_is_leaf
treedef_tuple
"""
__all__ = _PUBLIC.split()  # the names of `corejax.tree` include `map`, which `import *` must not bind

is_tree_node = default_registry.is_node
globals().update({f"tree_{name}": function for name, function in _functions.items()})


def __getattr__(name: str) -> _Any:
    """Return the names of `corejax.tree` but the short ones; `corejax.tree_util`, which has them, loads all plugins."""
    if f"tree_{name}" in vars(_tree):
        raise AttributeError(name)
    return getattr(_tree, name)
