"""`jax._src.tree_util`."""

from typing import Any as _Any

import corejax as _corejax
from corejax.extend import tree as _tree
from corejax_as_jax.trees import NodeTypes as _NodeTypes
from corejax_as_jax.trees import default_registry

_registry = _NodeTypes()
flatten_one_level = _tree.flatten_one_level


def __getattr__(name: str) -> _Any:
    return getattr(_corejax.tree_util, name)
