"""Dataclasses and static objects as nodes of pytrees."""

from __future__ import annotations

import dataclasses
import functools

import pytest

from corejax import tree


def test_dataclass_with_given_fields():
    @functools.partial(tree.register_dataclass, data_fields=["x"], meta_fields=["n"], drop_fields=["cache"])
    @dataclasses.dataclass
    class Given:
        x: int
        n: int
        cache: int = 0

    assert tree.tree_map(lambda x: -x, Given(1, 2, 3)) == Given(-1, 2)

    class NoDataclass:
        def __init__(self, x, n):
            self.x, self.n = x, n

    tree.register_dataclass(NoDataclass, ["x"], [])
    assert tree.tree_leaves(NoDataclass(1, 2)) == [1]


@pytest.mark.parametrize(
    "fields, error, words",
    [
        ({"data_fields": ["x"]}, TypeError, "both data_fields and meta_fields"),
        ({"data_fields": ["x"], "meta_fields": []}, ValueError, "neither data nor meta: n"),
        ({"data_fields": ["x", "n"], "meta_fields": ["n"]}, ValueError, "both data and meta: n"),
        ({"data_fields": ["x", "n", "m"], "meta_fields": []}, ValueError, "m cannot be passed"),
    ],
)
def test_dataclass_fields_are_checked(fields, error, words):
    @dataclasses.dataclass
    class Checked:
        x: int
        n: int

    with pytest.raises(error, match=words):
        tree.register_dataclass(Checked, **fields)
    with pytest.raises(TypeError, match="not a dataclass"):
        tree.register_dataclass(type("Plain", (), {}))


def test_static():
    @tree.register_static
    @dataclasses.dataclass(frozen=True)
    class Flag:
        on: bool

    leaves, treedef = tree.tree_flatten((1, Flag(True)))
    assert leaves == [1] and treedef.unflatten([2]) == (2, Flag(True))
    assert treedef != tree.tree_structure((1, Flag(False)))
    assert tree.tree_leaves_with_path((1, Flag(True))) == [((tree.SequenceKey(0),), 1)]
