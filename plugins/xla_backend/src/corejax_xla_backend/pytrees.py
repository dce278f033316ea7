"""jaxlib's pytrees: node types, structures and keys in C++, for code that needs JAX's own."""

from __future__ import annotations

from typing import Any

from corejax_xla_backend._jaxlib import pytrees

registry: Any = pytrees.default_registry()
"""The process-wide registry, which JAX uses."""

PyTreeDef = pytrees.PyTreeDef
KEY_TYPES = (pytrees.SequenceKey, pytrees.DictKey, pytrees.GetAttrKey, pytrees.FlattenedIndexKey)
treedef_tuple = pytrees.treedef_tuple
