# The names of `corejax.tree`: the module imports each of them at first use. `_contributed` has the names of plugins.

from corejax.tree._contributed import *
from corejax.tree._functions import broadcast_prefix as broadcast_prefix
from corejax.tree._functions import equality_errors as equality_errors
from corejax.tree._functions import flatten_axes as flatten_axes
from corejax.tree._functions import prefix_errors as prefix_errors
from corejax.tree._functions import tree_map as tree_map
from corejax.tree._functions import tree_map_with_path as tree_map_with_path
from corejax.tree._kinds import mark_leaf_types as mark_leaf_types
from corejax.tree._kinds import node_types as node_types
from corejax.tree._kinds import node_types_changed as node_types_changed
from corejax.tree._paths import DictKey as DictKey
from corejax.tree._paths import FlattenedIndexKey as FlattenedIndexKey
from corejax.tree._paths import GetAttrKey as GetAttrKey
from corejax.tree._paths import KeyEntry as KeyEntry
from corejax.tree._paths import KeyPath as KeyPath
from corejax.tree._paths import SequenceKey as SequenceKey
from corejax.tree._paths import flatten_one_level as flatten_one_level
from corejax.tree._paths import flatten_one_level_with_keys as flatten_one_level_with_keys
from corejax.tree._paths import keystr as keystr
from corejax.tree._paths import tree_flatten_with_path as tree_flatten_with_path
from corejax.tree._paths import unflatten_one_level as unflatten_one_level
from corejax.tree._registry import Partial as Partial
from corejax.tree._registry import register_pytree_node as register_pytree_node
from corejax.tree._registry import register_pytree_node_class as register_pytree_node_class
from corejax.tree._treedef import PyTreeDef as PyTreeDef
from corejax.tree._treedef import all_leaves as all_leaves
from corejax.tree._treedef import is_registered_node as is_registered_node
from corejax.tree._treedef import is_tree_node as is_tree_node
from corejax.tree._treedef import metadata_content as metadata_content
from corejax.tree._treedef import tree_flatten as tree_flatten
from corejax.tree._treedef import tree_leaves as tree_leaves
from corejax.tree._treedef import tree_structure as tree_structure
from corejax.tree._treedef import tree_unflatten as tree_unflatten
from corejax.tree._treedef import treedef_is_strict_leaf as treedef_is_strict_leaf
from corejax.tree._treedef import treedef_tuple as treedef_tuple

flatten = tree_flatten
flatten_with_path = tree_flatten_with_path
leaves = tree_leaves
map = tree_map
map_with_path = tree_map_with_path
structure = tree_structure
unflatten = tree_unflatten
