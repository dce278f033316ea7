"""Pytree structures in artifacts, as JSON; nodes of registered classes are identified by names that users choose."""

from __future__ import annotations

import base64
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from corejax.extend import tree

T = TypeVar("T", bound=type)

_LEAF = "*"


class NodeSerialization(NamedTuple):
    """How nodes of a class are serialized; see `register_pytree_node_serialization`."""

    nodetype: type
    serialized_name: str
    serialize_auxdata: Callable[[Any], bytes]
    deserialize_auxdata: Callable[[bytes], Any]
    from_children: Callable[[Any, Sequence[Any]], Any]


_by_type: dict[type, NodeSerialization] = {}
_by_name: dict[str, NodeSerialization] = {}


def register_pytree_node_serialization(
    nodetype: T,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> T:
    """Register how artifacts store nodes of a pytree class; the loading process must register the same name.

    Args:
        nodetype: a class that is registered as a pytree node.
        serialized_name: the name of the class in artifacts; prefix it with your package's name to avoid clashes.
        serialize_auxdata: function from a node's metadata to bytes.
        deserialize_auxdata: the inverse of `serialize_auxdata`.
        from_children: `(metadata, children) -> node`; by default the function that the class was registered with.

    Returns:
        The class.

    Raises:
        ValueError: the class or the name is already registered, or the class is not a pytree node and `from_children`
            is missing.
    """
    if nodetype in _by_type:
        raise ValueError(
            f"{nodetype.__qualname__} is registered for artifacts already, as {_by_type[nodetype].serialized_name!r}"
        )
    if serialized_name in _by_name:
        other = _by_name[serialized_name].nodetype.__qualname__
        raise ValueError(f"the name {serialized_name!r} is registered for {other}: choose another one")
    if from_children is None:
        if not tree.is_tree_node(nodetype):
            raise ValueError(
                f"{nodetype.__qualname__} is not a pytree node: call corejax.tree_util.register_pytree_node first, or "
                "pass from_children"
            )

        def from_children(metadata: Any, children: Sequence[Any]) -> Any:
            return tree.unflatten_one_level(nodetype, metadata, children)

    entry = NodeSerialization(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children)
    _by_type[nodetype] = _by_name[serialized_name] = entry
    return nodetype


def register_namedtuple_serialization(nodetype: T, *, serialized_name: str) -> T:
    """Register a namedtuple class for artifacts, which store the names of its fields.

    The loading process must register a class with the same fields, in any order.

    Raises:
        ValueError: the class is not a namedtuple, or is already registered.
    """
    if not (issubclass(nodetype, tuple) and hasattr(nodetype, "_fields")):
        raise ValueError(
            f"{nodetype.__qualname__} is not a namedtuple: use register_pytree_node_serialization for other classes"
        )
    fields = list(nodetype._fields)

    def from_children(names: list[str], children: Sequence[Any]) -> Any:
        if sorted(names) != sorted(fields):
            raise ValueError(
                f"the artifact's {serialized_name!r} has the fields {names}, {nodetype.__qualname__} has {fields}"
            )
        return nodetype(**dict(zip(names, children, strict=True)))

    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda metadata: json.dumps(fields).encode(),
        deserialize_auxdata=json.loads,
        from_children=from_children,
    )


# -- to and from JSON ----------------------------------------------------------------------------------------------


def tree_to_json(treedef: Any) -> Any:
    """Convert a structure to JSON.

    Raises:
        ValueError: a node's class is not registered, or a dict key is neither a string nor an integer.
    """
    node = treedef.node_data()
    if node is None:
        return _LEAF
    kind, metadata = node
    children = [tree_to_json(child) for child in treedef.children()]
    if kind in _by_type:
        how = _by_type[kind]
        written = base64.b64encode(bytes(how.serialize_auxdata(metadata))).decode()
        return ["node", how.serialized_name, written, *children]
    if kind is type(None):
        return None
    if kind in (tuple, list):
        return [kind.__name__, *children]
    if kind in (dict, OrderedDict):
        return [kind.__name__, _keys(metadata), *children]
    advice = "register_namedtuple_serialization" if hasattr(kind, "_fields") else "register_pytree_node_serialization"
    raise ValueError(
        f"artifacts cannot hold nodes of class {kind.__module__}.{kind.__qualname__}: call corejax.export.{advice} for "
        "it, where the function is exported and where it is loaded"
    )


def _keys(keys: Sequence[Any]) -> list[Any]:
    for key in keys:
        if type(key) not in (str, int):
            raise ValueError(
                f"dict keys in artifacts must be strings or integers, got {key!r} of type {type(key).__name__}"
            )
    return list(keys)


def tree_from_json(data: Any) -> Any:
    """Convert the JSON of `tree_to_json` back to a structure.

    Raises:
        NotKnownHereError: a node's name is not registered.
        ValueError: the JSON is malformed.
    """
    return tree.tree_structure(_skeleton(data))


def _skeleton(data: Any) -> Any:
    """Return a tree with the structure that the JSON describes, with 0 as each leaf."""
    if data == _LEAF:
        return 0
    if data is None:
        return None
    kind, *rest = data
    if kind in ("tuple", "list"):
        children = [_skeleton(child) for child in rest]
        return tuple(children) if kind == "tuple" else children
    if kind in ("dict", "OrderedDict"):
        items = zip(rest[0], map(_skeleton, rest[1:]), strict=True)
        return dict(items) if kind == "dict" else OrderedDict(items)
    if kind != "node":
        raise ValueError(f"unknown kind of node {kind!r}")
    name, metadata, *children = rest
    how = _by_name.get(name)
    if how is None:
        raise NotKnownHereError(
            f"the artifact has nodes named {name!r}, which are not registered in this process: first import the module "
            "that calls corejax.export.register_pytree_node_serialization (or register_namedtuple_serialization) for it"
        )
    auxdata = how.deserialize_auxdata(base64.b64decode(metadata))
    return how.from_children(auxdata, [_skeleton(child) for child in children])


class NotKnownHereError(ValueError):
    """Raised if an artifact has nodes of a class, or keys of a generator, that are not registered in this process."""
