"""`jax._src.tree_util`."""

from importlib import import_module as _import_module
from typing import Any as _Any

from corejax_as_jax.trees import NodeTypes as _NodeTypes

_registry = _NodeTypes()


def __getattr__(name: str) -> _Any:
    return getattr(_import_module("jax.tree_util"), name)
