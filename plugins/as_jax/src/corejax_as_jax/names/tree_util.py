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

is_tree_node = default_registry.is_node
globals().update({f"tree_{name}": function for name, function in _functions.items()})


def __getattr__(name: str) -> _Any:
    """Return the names of `corejax.tree` but the short ones; `corejax.tree_util`, which has them, loads all plugins."""
    if f"tree_{name}" in vars(_tree):
        raise AttributeError(name)
    return getattr(_tree, name)
