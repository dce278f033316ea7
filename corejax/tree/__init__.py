"""Pytrees: nested containers of arrays. JAX's `tree_util` names, and the short ones of `jax.tree`.

`_treedef` flattens trees into leaves and a structure, over optree; `_paths` says where in a tree a leaf is; `_registry`
makes classes nodes; `_prefix` holds trees against trees; `_functions` are map, reduce and transpose.
"""

from typing import TYPE_CHECKING, Any

import corejax.tree._optree  # before any other import of optree
from corejax.tree._functions import (
    build_tree,
    tree_all,
    tree_map,
    tree_map_with_path,
    tree_reduce,
    tree_reduce_associative,
    tree_transpose,
)
from corejax.tree._functions import tree_all as all
from corejax.tree._functions import tree_map as map
from corejax.tree._functions import tree_map_with_path as map_with_path
from corejax.tree._functions import tree_reduce as reduce
from corejax.tree._functions import tree_reduce_associative as reduce_associative
from corejax.tree._functions import tree_transpose as transpose
from corejax.tree._paths import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    SequenceKey,
    flatten_one_level,
    flatten_one_level_with_keys,
    keystr,
    tree_flatten_with_path,
    tree_leaves_with_path,
    unflatten_one_level,
)
from corejax.tree._paths import tree_flatten_with_path as flatten_with_path
from corejax.tree._paths import tree_leaves_with_path as leaves_with_path
from corejax.tree._prefix import (
    broadcast_prefix,
    equality_errors,
    flatten_axes,
    prefix_errors,
    tree_broadcast,
)
from corejax.tree._prefix import tree_broadcast as broadcast
from corejax.tree._registry import (
    Partial,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    static,
)
from corejax.tree._treedef import (
    PyTreeDef,
    all_leaves,
    is_registered_node,
    is_tree_node,
    mark_leaf_types,
    metadata_content,
    tree_flatten,
    tree_leaves,
    tree_structure,
    tree_unflatten,
    treedef_children,
    treedef_is_leaf,
    treedef_is_strict_leaf,
    treedef_tuple,
)
from corejax.tree._treedef import tree_flatten as flatten
from corejax.tree._treedef import tree_leaves as leaves
from corejax.tree._treedef import tree_structure as structure
from corejax.tree._treedef import tree_unflatten as unflatten

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all",
    "all_leaves",
    "broadcast",
    "broadcast_prefix",
    "build_tree",
    "equality_errors",
    "flatten",
    "flatten_axes",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "flatten_with_path",
    "is_registered_node",
    "is_tree_node",
    "keystr",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "mark_leaf_types",
    "metadata_content",
    "prefix_errors",
    "reduce",
    "reduce_associative",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "static",
    "structure",
    "transpose",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_is_strict_leaf",
    "treedef_tuple",
    "unflatten",
    "unflatten_one_level",
]

for _class in (DictKey, FlattenedIndexKey, GetAttrKey, Partial, PyTreeDef, SequenceKey):
    _class.__module__ = __name__
del _class


if not TYPE_CHECKING:  # a type checker would take it for every name that there is not

    def __getattr__(name: str) -> Any:
        if name.startswith("_"):  # the import system asks for some
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from corejax.texts import no_such_name  # needed for an error only

        raise no_such_name(__name__, name, globals())
