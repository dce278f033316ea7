"""Pytrees: nested containers of arrays. JAX's `tree_util` names, and the short ones of `jax.tree`.

`_kinds` says which classes are nodes and which are leaves. `_treedef` flattens trees into leaves and a structure, by
optree. `_paths` has the key paths of leaves. `_registry` registers classes as nodes. `_functions` has map, and compares
trees. Plugins add further functions under both names. `__init__.pyi` lists the names, each of which is imported at
first use: optree takes 10 ms, and a first operation on arrays does without it.
"""

from corejax.base.plugin_access import complete_from_plugins as _complete_from_plugins
from corejax.base.stubs import names_of_stub as _names_of_stub

_names = _names_of_stub(__name__)
for _short in ("flatten", "flatten_with_path", "leaves", "map", "map_with_path", "structure", "unflatten"):
    _names[_short] = _names[f"tree_{_short}"]
__all__ = sorted(_names)
_complete_from_plugins(globals(), _names)
