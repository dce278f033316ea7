"""Structures of arguments and results in artifacts."""

from __future__ import annotations

import json
from collections import OrderedDict, deque, namedtuple
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import export
from corejax.tree_util import register_pytree_node, tree_structure
from corejax_xla_backend.export import trees

Pair = namedtuple("Pair", ["first", "second"])


class Scaled:
    """A node with metadata."""

    def __init__(self, value: Any, unit: str) -> None:
        self.value, self.unit = value, unit


register_pytree_node(Scaled, lambda s: ((s.value,), s.unit), lambda unit, children: Scaled(*children, unit))


@pytest.fixture(autouse=True)
def own_registrations() -> Iterator[None]:
    """What a test registers is its own."""
    earlier = trees._by_type.copy(), trees._by_name.copy()
    yield
    for table, before in zip((trees._by_type, trees._by_name), earlier, strict=True):
        table.clear()
        table.update(before)


def round_trip(tree: Any) -> Any:
    return trees.tree_from_json(json.loads(json.dumps(trees.tree_to_json(tree_structure(tree)))))


@pytest.mark.parametrize(
    "tree",
    [
        1,
        None,
        (),
        [],
        {},
        ((1, None), [2, (), {"b": 3, "a": [4]}], {2: 1, 1: 1}),
        OrderedDict([("b", 1), ("a", (2, 3))]),
        {"*": 1, "tuple": [None]},
    ],
)
def test_builtin_containers(tree: Any) -> None:
    assert round_trip(tree) == tree_structure(tree)


def test_registered_nodes_and_namedtuples() -> None:
    export.register_namedtuple_serialization(Pair, serialized_name="test.Pair")
    same = export.register_pytree_node_serialization(
        Scaled, serialized_name="test.Scaled", serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode
    )
    assert same is Scaled
    tree = Pair(Scaled((1, 2), "m\0é"), {"x": Pair(None, 3)})
    assert round_trip(tree) == tree_structure(tree)
    assert round_trip(Scaled(1, "m")) != tree_structure(Scaled(1, "s"))

    def f(p: Any) -> Any:
        return Pair(Scaled(p.first.value + p.second, p.first.unit), 0)

    argument = Pair(Scaled(np.float32(1), "kg"), np.float32(2))
    found = export.deserialize(export.export(corejax.jit(f))(argument).serialize())
    out = found.call(argument)
    assert type(out) is Pair and (float(out.first.value), out.first.unit) == (3.0, "kg")
    with pytest.raises(ValueError, match="structure"):
        found.call(argument._replace(first=Scaled(np.float32(1), "g")))


def test_nodes_that_are_not_registered() -> None:
    for tree, advice in ((Pair(1, 2), "register_namedtuple_"), (Scaled(1, ""), "register_pytree_node_")):
        with pytest.raises(ValueError, match=f"nodes of class .*{type(tree).__name__}: call corejax.export.{advice}"):
            export.export(corejax.jit(lambda x: 0))(tree).serialize()
    with pytest.raises(ValueError, match=r"class collections\.deque"):
        trees.tree_to_json(tree_structure(deque([1])))
    with pytest.raises(ValueError, match=r"strings or integers, got 1\.5"):
        trees.tree_to_json(tree_structure({1.5: 0}))


def test_names_and_classes_are_registered_once() -> None:
    export.register_namedtuple_serialization(Pair, serialized_name="test.Pair")
    with pytest.raises(ValueError, match=r"registered for artifacts already, as 'test\.Pair'"):
        export.register_namedtuple_serialization(Pair, serialized_name="test.Other")
    with pytest.raises(ValueError, match=r"'test\.Pair' is registered for Pair"):
        export.register_pytree_node_serialization(
            Scaled, serialized_name="test.Pair", serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode
        )
    with pytest.raises(ValueError, match="not a namedtuple"):
        export.register_namedtuple_serialization(Scaled, serialized_name="test.Scaled")
    with pytest.raises(ValueError, match="not a pytree node"):
        export.register_pytree_node_serialization(
            int, serialized_name="test.int", serialize_auxdata=bytes, deserialize_auxdata=bytes
        )


def test_a_namedtuple_whose_fields_have_changed() -> None:
    export.register_namedtuple_serialization(Pair, serialized_name="test.Pair")
    written = trees.tree_to_json(tree_structure(Pair(1, 2)))
    trees._by_type.clear()
    trees._by_name.clear()
    export.register_namedtuple_serialization(namedtuple("Pair", ["first", "third"]), serialized_name="test.Pair")
    with pytest.raises(ValueError, match=r"'test.Pair' has the fields \['first', 'second'\], Pair has"):
        trees.tree_from_json(written)
