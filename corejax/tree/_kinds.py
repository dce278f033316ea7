"""Which classes are nodes of pytrees, and which are leaves."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from corejax.base.seams import Signal
from corejax.base.tables import Table

NAMESPACE = "corejax"


class Registration(NamedTuple):
    """The functions that flatten and unflatten the nodes of a registered class.

    Attributes:
        flatten: `node -> (children, metadata)`.
        unflatten: `(metadata, children) -> node`.
        flatten_with_keys: `node -> (((key, child), ...), metadata)`, or None.
    """

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, Any], Any]
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None


def _update_optree(kind: type, registration: Registration | None) -> None:
    from corejax.tree._optree import optree

    if kind in _in_optree:
        optree.unregister_pytree_node(kind, namespace=NAMESPACE)
        _in_optree.remove(kind)
    if registration is not None:
        with warnings.catch_warnings():
            # optree warns if a namedtuple is registered, since namedtuples are nodes without registration.
            warnings.simplefilter("ignore", UserWarning)
            optree.register_pytree_node(kind, registration.flatten, registration.unflatten, namespace=NAMESPACE)
        _in_optree.add(kind)


_in_optree: set[type] = set()  # the classes that are registered with optree


node_types_changed = Signal("pytree nodes")  # sent with a class and its Registration, or None
node_types_changed.connect(_update_optree)
node_types: Table[type, Registration] = Table("pytree node", changed=node_types_changed.send)

leaf_types: set[type] = {bool, int, float, complex, str, np.ndarray}
leaf_types.update({np.bool_, np.int32, np.int64, np.float32, np.float64, np.complex64, np.complex128})


def mark_leaf_types(*types: type) -> None:
    """Declare that instances of these classes (not of subclasses) are leaves; flattening them is then faster.

    Raises:
        ValueError: one of them is registered as a node.
    """
    for kind in types:
        if kind in node_types:
            raise ValueError(f"{kind.__qualname__} is a pytree node, registered by {node_types.provenance(kind)}")
        leaf_types.add(kind)
