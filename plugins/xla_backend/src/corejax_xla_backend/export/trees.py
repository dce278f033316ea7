"""Structures of arguments and results in artifacts, as JSON; nodes of registered classes by names that users give."""

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
    """How nodes of a class are written and read."""

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
    """Have artifacts hold nodes of a registered class. The process that loads one registers the same name.

    Args:
        nodetype: the class.
        serialized_name: what artifacts call it; one with your package's name cannot clash.
        serialize_auxdata: bytes of a node's metadata.
        deserialize_auxdata: the metadata of these bytes.
        from_children: `(metadata, children) -> node`; by default what the class was registered with.

    Returns:
        The class.

    Raises:
        ValueError: the class or the name is registered, or the class is no node and `from_children` is missing.
    """
    if nodetype in _by_type:
        raise ValueError(f"{nodetype.__qualname__} is serialized already, as {_by_type[nodetype].serialized_name!r}")
    if serialized_name in _by_name:
        other = _by_name[serialized_name].nodetype.__qualname__
        raise ValueError(f"the name {serialized_name!r} is that of {other} in artifacts: choose another one")
    if from_children is None:
        if not tree.is_tree_node(nodetype):
            raise ValueError(
                f"{nodetype.__qualname__} is no pytree node: call corejax.tree_util.register_pytree_node first, or "
                "give from_children"
            )

        def from_children(metadata: Any, children: Sequence[Any]) -> Any:
            return tree.unflatten_one_level(nodetype, metadata, children)

    given = NodeSerialization(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children)
    _by_type[nodetype] = _by_name[serialized_name] = given
    return nodetype


def register_namedtuple_serialization(nodetype: T, *, serialized_name: str) -> T:
    """Have artifacts hold a namedtuple, by its fields' names, which the class that loads it has to have too.

    Raises:
        ValueError: it is no namedtuple, or registered already.
    """
    if not (issubclass(nodetype, tuple) and hasattr(nodetype, "_fields")):
        raise ValueError(
            f"{nodetype.__qualname__} is no namedtuple: use register_pytree_node_serialization for other classes"
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
    """A structure as JSON.

    Raises:
        ValueError: it has nodes of a class that is not registered, or dict keys that are neither text nor integers.
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
            raise ValueError(f"dict keys in artifacts are text or integers, got {key!r} of type {type(key).__name__}")
    return list(keys)


def tree_from_json(data: Any) -> Any:
    """The structure of `tree_to_json`'s JSON.

    Raises:
        ValueError: it has nodes by a name that is not registered, or is no such JSON.
    """
    return tree.tree_structure(_skeleton(data))


def _skeleton(data: Any) -> Any:
    """A tree of the structure."""
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
            f"the artifact has nodes by the name {name!r}, which nobody has registered here: import what calls "
            "corejax.export.register_pytree_node_serialization (or register_namedtuple_serialization) for it first"
        )
    given = how.deserialize_auxdata(base64.b64decode(metadata))
    return how.from_children(given, [_skeleton(child) for child in children])


class NotKnownHereError(ValueError):
    """An artifact has nodes of a class, or keys of a generator, that are not registered in this process."""
