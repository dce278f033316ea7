"""Pytrees, with jax.tree_util as the oracle."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import gc
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corejax import tree, tree_util
from corejax.extend import as_array


def is_none(x):
    return x is None


Point = collections.namedtuple("Point", "x y")


@tree.register_pytree_node_class
class Pair:
    def __init__(self, a, b, tag=None):
        self.a, self.b, self.tag = a, b, tag

    def tree_flatten(self):
        return (self.a, self.b), self.tag

    @classmethod
    def tree_unflatten(cls, tag, children):
        return cls(*children, tag)

    def __eq__(self, other):
        return (self.a, self.b, self.tag) == (other.a, other.b, other.tag)


@tree.register_dataclass
@dataclasses.dataclass
class Layer:
    w: object
    b: object
    act: str = dataclasses.field(default="relu", metadata={"static": True})


class Keyed(Pair):
    def tree_flatten_with_keys(self):
        return ((tree.GetAttrKey("a"), self.a), (tree.DictKey("b"), self.b)), self.tag


tree.register_pytree_with_keys_class(Keyed)

EXAMPLES = [
    1,
    None,
    (),
    [],
    {},
    (1, 2),
    [1, [2, (3,)], {}],
    {"b": 1, "a": (2, None)},
    {2: "x", 1: [None]},
    collections.OrderedDict([("b", 1), ("a", {"d": 2, "c": 3})]),
    collections.defaultdict(list, {"b": 1, "a": 2}),
    Point(1, {"a": 2}),
    ((((1,),),), None),
]

keys = st.text("abc", max_size=2)
trees = st.recursive(
    st.integers() | st.none() | st.floats(allow_nan=False),
    lambda children: (
        st.lists(children, max_size=4)
        | st.lists(children, max_size=4).map(tuple)
        | st.dictionaries(keys, children, max_size=4)
        | st.dictionaries(keys, children, max_size=3).map(collections.OrderedDict)
        | st.builds(Point, children, children)
        | st.builds(Pair, children, children, st.sampled_from([None, "t", 1]))
        | st.builds(Layer, children, children)
    ),
    max_leaves=20,
)


@pytest.fixture
def jtu():
    return pytest.importorskip("jax.tree_util")


# Round trips ----------------------------------------------------------------------------------------


@given(trees)
def test_round_trip(t):
    leaves, treedef = tree.tree_flatten(t)
    assert treedef.unflatten(leaves) == t
    assert tree.tree_unflatten(treedef, leaves) == t
    assert tree.tree_leaves(t) == leaves
    assert treedef.num_leaves == len(leaves)
    again = tree.tree_structure(tree.tree_map(lambda x: (x, x), t))
    assert again == treedef.compose(tree.tree_structure((0, 0)))
    assert hash(again) == hash(treedef.compose(tree.tree_structure((0, 0))))


@given(trees)
def test_paths_agree_with_leaves(t):
    pairs, treedef = tree.tree_flatten_with_path(t)
    assert [leaf for _, leaf in pairs] == tree.tree_leaves(t)
    assert treedef == tree.tree_structure(t)
    assert len({path for path, _ in pairs}) == len(pairs)


@given(trees, trees)
def test_equality_errors_say_whether_structures_are_equal(a, b):
    equal = tree.tree_structure(a) == tree.tree_structure(b)
    assert (tree.equality_errors(a, b) == []) == equal
    assert (tree.equality_errors(tree.tree_structure(a), tree.tree_structure(b)) == []) == equal
    if equal:
        assert hash(tree.tree_structure(a)) == hash(tree.tree_structure(b))


@given(trees)
def test_treedefs_rebuild_from_their_parts(t):
    treedef = tree.tree_structure(t)
    assert tree.tree_structure((t, t)) == tree.treedef_tuple([treedef, treedef])
    assert hash(tree.tree_structure((t, t))) == hash(tree.treedef_tuple([treedef, treedef]))
    for child in tree.tree_structure((t, 1)).children():
        assert child in (treedef, tree.tree_structure(1))
        assert hash(child) in (hash(treedef), hash(tree.tree_structure(1)))
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    assert copy.deepcopy(treedef) is treedef


# Against jax ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("t", EXAMPLES, ids=str)
def test_as_jax(jtu, t):
    leaves, treedef = tree.tree_flatten(t)
    expected_leaves, expected = jtu.tree_flatten(t)
    assert leaves == expected_leaves
    assert repr(tree.tree_map(lambda x: x, t)) == repr(jtu.tree_map(lambda x: x, t))
    assert (treedef.num_leaves, treedef.num_nodes) == (expected.num_leaves, expected.num_nodes)
    assert tree.treedef_is_leaf(treedef) == jtu.treedef_is_leaf(expected)
    assert len(tree.treedef_children(treedef)) == len(jtu.treedef_children(expected))
    ours, theirs = tree.tree_leaves_with_path(t), jtu.tree_leaves_with_path(t)
    assert repr(ours) == repr(theirs)
    for (path, _), (expected_path, _) in zip(ours, theirs, strict=True):
        assert tree.keystr(path) == jtu.keystr(expected_path)
        assert tree.keystr(path, simple=True, separator="/") == jtu.keystr(expected_path, simple=True, separator="/")
    for is_leaf in (is_none, lambda x: isinstance(x, list), lambda x: True):
        assert tree.tree_leaves(t, is_leaf) == jtu.tree_leaves(t, is_leaf)
        assert repr(tree.tree_leaves_with_path(t, is_leaf)) == repr(jtu.tree_leaves_with_path(t, is_leaf))
    assert tree.all_leaves([t, 1]) == jtu.all_leaves([t, 1])
    assert tree.all_leaves([t, None], is_none) == jtu.all_leaves([t, None], is_none)
    assert tree.tree_all(t) == jtu.tree_all(t)
    assert tree.tree_reduce(lambda a, b: f"{a},{b}", t, "") == jtu.tree_reduce(lambda a, b: f"{a},{b}", t, "")
    if "CustomNode" not in repr(expected):
        assert repr(treedef) == repr(expected)


def test_equality_as_jax(jtu):
    for a in EXAMPLES:
        for b in EXAMPLES:
            ours = tree.tree_structure(a) == tree.tree_structure(b)
            assert ours == (jtu.tree_structure(a) == jtu.tree_structure(b)), (a, b)
            assert ours == (tree.tree_structure(a) is tree.tree_structure(b)), (a, b)


@pytest.mark.parametrize(
    "prefix, full",
    [(1, (1, 2)), ((1, 2), (3, [4, 5])), ({"a": 1}, {"a": (1, None)}), ([None, 1], [None, 2]), (None, None)],
)
def test_broadcast_as_jax(jtu, prefix, full):
    assert tree.tree_broadcast(prefix, full) == jtu.tree_broadcast(prefix, full)


@pytest.mark.parametrize(
    "prefix, full",
    [((1, 2), (1, 2, 3)), ({"a": 1}, {"b": 1}), ((1,), [1]), (None, 1), ({"a": (1, 1)}, {"a": 1})],
)
def test_mismatches_as_jax(jtu, prefix, full):
    for module in (tree, jtu):
        with pytest.raises(ValueError):
            module.tree_broadcast(prefix, full)
        with pytest.raises(ValueError):
            module.tree_map(lambda a, b: a, prefix, full)


def test_transpose_as_jax(jtu):
    for outer, inner, t in [
        ([0, 0], None, [(1, 2, 3), (4, 5, 6)]),
        ({"a": 0, "b": 0}, {"x": 0}, {"a": {"x": 1}, "b": {"x": 2}}),
    ]:
        results = [
            m.tree_transpose(m.tree_structure(outer), None if inner is None else m.tree_structure(inner), t)
            for m in (tree, jtu)
        ]
        assert results[0] == results[1]
    with pytest.raises(TypeError, match="expected"):
        tree.tree_transpose(tree.tree_structure((0, 0)), tree.tree_structure([0, 0, 0]), ((1, 2), (3, 4)))


def test_partial_as_jax(jtu):
    for module in (tree, jtu):
        inner = module.Partial(max, 1)
        outer = module.Partial(inner, 2, key=abs)
        assert module.tree_leaves(module.Partial(inner, 2)) == [2]
        assert module.tree_map(lambda x: x, outer)(-3) == -3
        assert module.tree_leaves(module.Partial(functools.partial(max, 1), 5)) == [5]
        same = [module.tree_structure(module.Partial(max, 1)) for _ in range(2)]
        assert same[0] == same[1] and hash(same[0]) == hash(same[1])


def test_path_functions_as_jax(jtu):
    for t in EXAMPLES:
        ours = tree.tree_map_with_path(lambda path, x: tree.keystr(path) + str(x), t)
        assert ours == jtu.tree_map_with_path(lambda path, x: jtu.keystr(path) + str(x), t)
    deep = {"a": [1, [2, 3]], "b": (4,)}

    def shallow(path, x):
        return len(path) == 2

    pairs, treedef = tree.tree_flatten_with_path(deep, shallow, is_leaf_takes_path=True)
    expected, _ = jtu.tree_flatten_with_path(deep, shallow, is_leaf_takes_path=True)
    assert repr(pairs) == repr(expected)
    assert repr(treedef) == "PyTreeDef({'a': [*, *], 'b': (*,)})"
    total = tree.tree_map_with_path(lambda path, x, y: (str(path[-1]), x + y), (1, 2), (10, 20))
    assert total == (("[0]", 11), ("[1]", 22))


# Treedefs -------------------------------------------------------------------------------------------


def test_repr():
    assert repr(tree.tree_structure({"b": (1, 2), "a": 3})) == "PyTreeDef({'a': *, 'b': (*, *)})"
    assert repr(tree.tree_structure(None)) == "PyTreeDef(None)"
    assert repr(tree.tree_structure([Pair(1, {"k": 2}, "t")])) == "PyTreeDef([CustomNode(Pair['t'], [*, {'k': *}])])"


def test_equal_dicts_rebuild_alike_whatever_was_flattened_first():
    for t in (
        {"b": 1, "a": {"d": 2, "c": 3}},
        Pair({"b": 1, "a": 2}, collections.defaultdict(int, {"z": 1, "y": 2})),
    ):
        rebuilt = tree.tree_map(lambda x: x, t)
        assert rebuilt == t
        inner = [rebuilt] if isinstance(t, dict) else [rebuilt.a, rebuilt.b]
        assert all(list(d) == sorted(d) for d in inner)
    one, two = {"q": 1, "p": 2}, {"p": 2, "q": 1}
    assert list(tree.tree_structure(one).unflatten([1, 2])) == list(tree.tree_structure(two).unflatten([1, 2]))
    assert tree.tree_structure(one) is tree.tree_structure(two)


def test_metadata_that_are_equal_are_not_exchanged():
    assert type(tree.tree_map(lambda x: x, Pair(0, 0, 1)).tag) is int
    assert type(tree.tree_map(lambda x: x, Pair(0, 0, True)).tag) is bool
    assert type(tree.tree_map(lambda x: x, Pair(0, 0, 1.0)).tag) is float


def test_what_is_registered():
    assert tree.is_registered_node(Pair) and tree.is_tree_node(Pair)
    assert not tree.is_registered_node(collections.OrderedDict) and tree.is_tree_node(collections.OrderedDict)
    assert tree.flatten_one_level(Pair(1, [2], "x")) == ([1, [2]], "x")


def test_metadata_need_not_be_hashable():
    @dataclasses.dataclass
    class Options:
        sizes: list
        note: str = dataclasses.field(default="", compare=False)

    t = Pair(1, 2, tag=[3])
    assert tree.tree_map(lambda x: -x, t) == Pair(-1, -2, [3])
    assert tree.tree_structure(t) == tree.tree_structure(Pair(5, 6, [3]))
    for tag in ([3], {"a": [1], "b": 2}, {1, 2}, ("x", {}, [slice(0, 2)]), Options([1]), collections.deque([[1]])):
        one, two = (tree.tree_structure(Pair(0, 0, copy.deepcopy(tag))) for _ in range(2))
        assert one == two and hash(one) == hash(two)
        assert hash(one) != hash(tree.tree_structure(Pair(0, 0, None)))
    assert hash(tree.tree_structure(Pair(0, 0, Options([1], "a")))) == hash(
        tree.tree_structure(Pair(0, 0, Options([1])))
    )
    for tag in (np.array([2.5]), [np.array(2.5)]):
        one, two = (tree.tree_structure(Pair(0, 0, copy.deepcopy(tag))) for _ in range(2))
        assert one == two and hash(one) == hash(two)
    one, two = (tree.tree_structure(Pair(0, 0, ("x", as_array(np.float32(2.5))))) for _ in range(2))
    assert one == two and hash(one) == hash(two)
    for tag in (np.arange(2), [np.arange(2)]):
        with pytest.raises(TypeError, match="unhashable type: 'ndarray', in the metadata of pytree node Pair"):
            hash(tree.tree_structure(Pair(0, 0, tag)))


def test_interned_treedefs_are_forgotten():
    from corejax.tree import _treedef

    name = "a key of this test only"
    t = tree.tree_structure({name: 1})
    assert t is tree.tree_structure({name: 2})
    # 512 others push it out of what is kept of late.
    for i in range(600):
        tree.tree_structure({f"other {i}": 1})
    del t
    gc.collect()
    assert not any(name in repr(spec) for spec in _treedef._interned)
    assert tree.tree_structure({name: 1}) is tree.tree_structure({name: 2})


def test_threads_agree_on_one_treedef():
    found = []
    barrier = threading.Barrier(4)

    def work():
        barrier.wait()
        found.append([tree.tree_structure({f"thread {i}": (1, i)}) for i in range(200)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len({id(t) for t in same}) == 1 for same in zip(*found, strict=True))


def test_treedef_methods():
    treedef = tree.tree_structure((1, {"a": 2}, None))
    assert treedef.children() == tree.treedef_children(treedef)
    assert treedef.children()[0] is tree.tree_structure(0)
    assert treedef.flatten_up_to(([5], {"a": (6, 7)}, None)) == [[5], (6, 7)]
    assert treedef.node_data() == (tuple, None)
    assert tree.tree_structure({"b": 1, "a": 2}).node_data() == (dict, ["a", "b"])
    assert tree.tree_structure(Pair(1, 2, "t")).node_data() == (Pair, "t")
    assert tree.tree_structure(1).node_data() is None
    assert tree.tree_structure(None).node_data() == (type(None), None)
    assert tree.treedef_is_strict_leaf(tree.tree_structure(1))
    assert not tree.treedef_is_strict_leaf(tree.tree_structure(()))
    with pytest.raises(ValueError, match="leaves"):
        treedef.unflatten([1])
    with pytest.raises(ValueError, match="leaves"):
        tree.tree_unflatten(treedef, [1, 2, 3])
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = treedef.nonsense


def test_parts_of_trees_with_registered_nodes_are_like_others():
    plain, custom = tree.tree_structure(((1, 2), Pair(1, 2))).children()
    assert plain is tree.tree_structure((1, 2))
    assert custom == tree.tree_structure(Pair(3, 4))
    assert tree.treedef_tuple([plain]) is tree.tree_structure(((1, 2),))


def test_build_tree():
    treedef = tree.tree_structure({"a": (1, 2), "b": None, "c": 3})
    assert tree.build_tree(treedef, [[10, 20], None, 30]) == {"a": (10, 20), "b": None, "c": 30}
    with pytest.raises(ValueError):
        tree.build_tree(treedef, [[10], None, 30])


def test_arrays_are_leaves():
    x, y = np.ones(2), np.float32(3)
    leaves, treedef = tree.tree_flatten((x, y))
    assert leaves[0] is x and leaves[1] is y
    assert treedef is tree.tree_structure((0, 0))
    assert tree.tree_flatten(x) == ([x], tree.tree_structure(0))


# Registration ---------------------------------------------------------------------------------------


def test_second_registration_names_the_first_owner():
    with pytest.raises(ValueError, match=r"Pair is a pytree node already: registered by module .*test_tree"):
        tree.register_pytree_node(Pair, lambda p: ((), None), lambda m, c: None)
    with pytest.raises(ValueError, match="dict is a pytree node already: registered built in"):
        tree.register_pytree_node(dict, lambda p: ((), None), lambda m, c: None)
    with pytest.raises(TypeError, match="expected a class"):
        tree.register_pytree_node(3, lambda p: ((), None), lambda m, c: None)


def test_marked_leaf_types_are_not_nodes():
    class Value:
        pass

    tree.mark_leaf_types(Value)
    value = Value()
    assert tree.tree_flatten((value,)) == ([value], tree.tree_structure((0,)))
    with pytest.raises(ValueError, match="is a leaf"):
        tree.register_static(Value)
    with pytest.raises(ValueError, match="registered by module"):
        tree.mark_leaf_types(Pair)


def test_subclasses_are_not_registered():
    class Sub(Pair):
        pass

    assert tree.all_leaves([Sub(1, 2)])
    assert tree.is_tree_node(Pair) and not tree.is_tree_node(Sub)


def test_dataclass():
    layer = Layer(1, {"k": 2}, act="tanh")
    assert tree.tree_map(lambda x: x + 1, layer) == Layer(2, {"k": 3}, act="tanh")
    assert [tree.keystr(path) for path, _ in tree.tree_leaves_with_path(layer)] == [".w", ".b['k']"]
    assert tree.tree_structure(layer) != tree.tree_structure(Layer(1, {"k": 2}))
    assert repr(tree.tree_structure(layer)) == "PyTreeDef(CustomNode(Layer[('tanh',)], [*, {'k': *}]))"


def test_keys_of_registered_classes():
    assert [tree.keystr(p) for p, _ in tree.tree_leaves_with_path(Keyed(1, (2,)))] == [".a", "['b'][0]"]
    assert [tree.keystr(p) for p, _ in tree.tree_leaves_with_path(Pair(1, (2,)))] == [
        "[<flat index 0>]",
        "[<flat index 1>][0]",
    ]
    assert tree.flatten_one_level_with_keys({"b": 1, "a": 2})[0] == [
        (tree.DictKey("a"), 2),
        (tree.DictKey("b"), 1),
    ]
    assert tree.flatten_one_level((1, [2])) == ([1, [2]], None)
    with pytest.raises(ValueError, match="leaves"):
        tree.flatten_one_level(3)


def test_keys_are_values():
    for make, name in [
        (tree.SequenceKey, "idx"),
        (tree.DictKey, "key"),
        (tree.GetAttrKey, "name"),
        (tree.FlattenedIndexKey, "key"),
    ]:
        key = make(**{name: "a"})
        assert getattr(key, name) == "a" and repr(key) == f"{make.__name__}({name}='a')"
        assert key == make("a") != make("b") and hash(key) == hash(make("a"))
        assert pickle.loads(pickle.dumps(key)) == key
        with pytest.raises(AttributeError, match="immutable"):
            setattr(key, name, "b")
    assert tree.DictKey(0) != tree.SequenceKey(0)
    match tree.GetAttrKey("w"):
        case tree.GetAttrKey(name):
            assert name == "w"


def test_registered_namedtuple():
    Row = collections.namedtuple("Row", "a b")
    tree.register_pytree_node(Row, lambda r: ((r.a,), r.b), lambda b, children: Row(children[0], b))
    assert tree.tree_leaves(Row(1, 2)) == [1]
    assert tree.keystr(tree.tree_leaves_with_path(Row(1, 2))[0][0]) == "[<flat index 0>]"


# Prefixes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "axes, value, expected",
    [
        (0, (1, {"a": 2}), [0, 0]),
        (None, [1, 2], [None, None]),
        ((0, None), (1, {"a": 2, "b": 3}), [0, None, None]),
        ((None, {"a": 1, "b": None}), (1, {"a": 2, "b": [3, 4]}), [None, 1, None, None]),
        ([0, [1]], [1, [2]], [0, 1]),
        ((0, 1), (None, 5), [1]),
        (Pair(0, None), Pair((1, 2), 3), [0, 0, None]),
        (Point(0, 1), Point(1, 2), [0, 1]),
        ((), (), []),
        ("x", (1, 2), ["x", "x"]),
        (({},), ({},), []),
    ],
)
def test_flatten_axes(axes, value, expected):
    assert tree.flatten_axes("in_axes", tree.tree_structure(value), axes) == expected


@pytest.mark.parametrize(
    "axes, value, where",
    [
        ((0,), (1, 2), "at in_axes: tuple of 1 against tuple of 2"),
        ((0, (1, 2)), (1, (2,)), "at in_axes[1]: tuple of 2 against tuple of 1"),
        ((0, {"a": 0}), (1, {"b": 2}), "at in_axes[1]: dict with keys ['a'] against dict with keys ['b']"),
        ([0, 0], (1, 2), "at in_axes: list of 2 against tuple of 2"),
        ({"k": [0]}, {"k": 1}, "at in_axes['k']: list of 1 against a leaf"),
        (
            Pair(0, 0, "s"),
            Pair(1, 2, "t"),
            "at in_axes: Pair with metadata 's' against Pair with metadata 't'",
        ),
        ((0, 0), None, "at in_axes: tuple of 2 against None"),
    ],
)
def test_flatten_axes_mismatch(axes, value, where):
    with pytest.raises(ValueError) as caught:
        tree.flatten_axes("in_axes", tree.tree_structure(value), axes)
    message = str(caught.value)
    assert message.startswith("in_axes does not match the value it applies to")
    assert repr(tree.tree_structure(value)).removeprefix("PyTreeDef(").removesuffix(")") in message
    assert where in message


def test_prefix_and_equality_errors():
    assert tree.prefix_errors((1, 2), (1, (2, 3))) == []
    assert tree.prefix_errors({"a": [1, 2]}, {"a": [1]}) == ["at ['a']: list of 2 against list of 1"]
    assert tree.equality_errors((1, 2), (1, (2, 3))) == ["at [1]: a leaf of type int against tuple of 2"]
    assert tree.equality_errors((1, None), ([1], 2), name="out") == [
        "at out[0]: a leaf of type int against list of 1",
        "at out[1]: None against a leaf of type int",
    ]
    assert tree.equality_errors(tree.tree_structure((1, 2)), (3, 4)) == []


def test_map_says_where_trees_differ():
    with pytest.raises(ValueError, match=r"at \['a'\]\[1\]: tuple of 1 against list of 1"):
        tree.tree_map(lambda *xs: xs, {"a": [1, (2,)]}, {"a": [1, [2]]})


# The rest -------------------------------------------------------------------------------------------


def test_reductions():
    t = {"a": 1, "b": (2, [3])}
    assert tree.tree_reduce(lambda a, b: a + b, t) == 6
    assert tree.tree_reduce_associative(lambda a, b: a + b, t) == 6
    assert tree.tree_reduce_associative(lambda a, b: f"({a}{b})", (1, 2, 3, 4)) == "((12)(34))"
    assert tree.tree_reduce_associative(max, (), identity=7) == 7
    with pytest.raises(TypeError, match="identity"):
        tree.tree_reduce_associative(max, ())
    assert not tree.tree_all({"a": True, "b": 0})


def test_mixed_keys_have_an_order():
    assert tree.tree_leaves({1: "i", "a": "s"}) == tree.tree_leaves({"a": "s", 1: "i"})


def test_both_modules_offer_the_same():
    assert all(getattr(tree_util, name) is getattr(tree, name) for name in tree_util.__all__)
    assert tree.map is tree.tree_map and tree.leaves is tree.tree_leaves


def test_star_import_has_the_names_of_plugins():
    names: dict[str, object] = {}
    exec("from corejax.tree_util import *", names)
    assert {"tree_map", "tree_transpose", "register_dataclass"} <= names.keys() <= {*dir(tree_util), "__builtins__"}
    assert not {"map", "all", "leaves"} & names.keys()


def test_every_name_of_jax_is_there(jtu):
    missing = {n for n in dir(jtu) if not n.startswith("_")} - set(dir(tree_util)) - {"default_registry"}
    assert not missing


def test_paths_that_are_kept_are_those_of_the_tree() -> None:
    class Named:
        """A node that names its children as it likes."""

        def __init__(self, name: str, child: object) -> None:
            self.name, self.child = name, child

    tree_util.register_pytree_with_keys(
        Named, lambda x: (((x.name, x.child),), None), lambda _, children: Named("new", children[0])
    )
    for trees in (
        [{"a": [1, (2, None)], "b": {}}, {"a": [3, (4, None)], "b": {}}],
        [{1: 2}, {True: 2}, {1.0: 2}],
        [Named("x", [1]), Named("y", [1])],
        [{"a": Named("x", 1)}, {"a": Named("y", 1)}],
        [(1, [2]), [1, (2,)]],
    ):
        for t in trees * 2:
            pairs, treedef = tree_util.tree_flatten_with_path(t)
            slowly = tree_util.tree_flatten_with_path(t, lambda node: False)[0]
            assert repr(pairs) == repr(slowly)
            assert treedef == tree_util.tree_structure(t)


def test_an_iterator_that_ends_too_early():
    """`tree.map(lambda p: draw(next(keys)), params)`: what `next` raises is no end of the leaves."""
    keys = iter([1])
    with pytest.raises(StopIteration):
        tree.map(lambda x: next(keys), [1, 2])
    with pytest.raises(StopIteration):
        tree.map(lambda x, y: next(keys), [1, 2], [3, 4])
    with pytest.raises(StopIteration):
        tree.map_with_path(lambda path, x: next(keys), [1, 2])
