"""What a library does with pytrees: tests/as_jax/test_trees.py compares the output on corejax with that on JAX."""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
import pickle
import threading
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import export, tree_util
from jax._src import tree_util as private
from jax.experimental.serialize_executable import deserialize_and_load, serialize

Point = namedtuple("Point", "x y")
NESTED = {"b": [1, (2, None)], "a": Point(3, {}), "c": OrderedDict(z=4, y=5), "d": defaultdict(list, q=6, p=7)}


def attempt(f: Callable[[], Any]) -> Any:
    """Return a function's result, or the name of the error that it raises."""
    try:
        return f()
    except Exception as error:
        return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")


def structures() -> None:
    for tree in (1, (), None, NESTED, OrderedDict(b=1, a=2), defaultdict(None, a=1), deque([1]), {1: 2, 0: 3}):
        structure = jax.tree.structure(tree)
        print(structure, structure.num_leaves, structure.num_nodes, structure.children(), structure.node_data())
        for other in (copy.copy(structure), copy.deepcopy(structure), pickle.loads(pickle.dumps(structure))):
            print(other == structure, other != structure, hash(other) == hash(structure))
    print(jax.tree.structure(OrderedDict(a=1)) == jax.tree.structure({"a": 1}))
    print(jax.tree.structure(OrderedDict(a=1, b=2)) == jax.tree.structure(OrderedDict(b=1, a=2)))
    print(tree_util.treedef_tuple([jax.tree.structure(1), jax.tree.structure([2])]))
    print(jax.tree.structure([0]).compose(jax.tree.structure({"a": 0})))


def structures_of_programs() -> None:
    def f(x: Any, *, k: Any) -> Any:
        return {"s": x["a"] + k, "t": (Point(x["b"], None),)}

    x = {"a": 1.0, "b": 2.0}
    arguments, result = jax.tree.structure(((x,), {"k": 0})), jax.tree.structure(f(x, k=3.0))
    lowered = jax.jit(f).lower(x, k=3.0)
    compiled, exported = lowered.compile(), export.export(jax.jit(lambda x, *, k: (x["a"] + k, x)))(x, k=3.0)
    for program in (lowered, compiled):
        print(arguments == program.in_tree, program.in_tree != arguments, arguments != program.in_tree)
        print(result == program.out_tree, isinstance(program.out_tree, tree_util.PyTreeDef), program.out_tree)
        print({program.in_tree: 1}[arguments], program.out_tree.unflatten("xy"))
    print(exported.in_tree == arguments, exported.in_tree != arguments)
    print(exported.out_tree == jax.tree.structure((0, x)), attempt(lambda: exported.call(x)))
    serialized, in_tree, out_tree = serialize(compiled)
    print(in_tree == arguments, out_tree == result)
    loaded = deserialize_and_load(serialized, arguments, result, execution_devices=jax.devices()[:1])
    print(loaded(x, k=3.0)["s"] + 0)
    print(jax.jit(lambda x, structure: structure.unflatten([x, x]), static_argnums=1)(1, jax.tree.structure([0, 0])))


def maps() -> None:
    print(jax.tree.map(lambda x: x + 1, NESTED), jax.tree.leaves(NESTED))
    print(jax.tree.map(lambda x, y: (x, y), [(1, 2), {"a": 3}], ["q", {"a": (7, 8)}], is_leaf=lambda x: x == (1, 2)))
    print(jax.tree.map(lambda x, y: (x, y), (1, None), (2, 3), is_leaf=lambda x: x is None))
    trees = ((1, 2), [1, 2], Point(1, 2), (1, None), {"a": 1}, OrderedDict(a=1), defaultdict(int, a=1), None, 5)
    more = (defaultdict(list, a=1), OrderedDict(a=1, b=2), OrderedDict(b=2, a=1), {"a": 1, "b": (2,)}, (1, 2, 3))
    for map_trees in (jax.tree.map, tree_util.tree_map_with_path):
        for tree, other in itertools.product(trees + more, repeat=2):
            print(tree, other, attempt(functools.partial(map_trees, lambda *x: 0, tree, other)))
    unsorted = {1: 1, "a": 2}
    for use in (jax.tree.leaves, jax.tree.structure, jax.jit(lambda x: x), tree_util.tree_leaves_with_path):
        print(attempt(lambda use=use: use(unsorted)))
    print(attempt(lambda: jax.tree.map(lambda x: 1 / 0, (1,))), attempt(lambda: jax.tree.leaves((1,), lambda x: 1 / 0)))


def paths() -> None:
    pairs = tree_util.tree_leaves_with_path(NESTED)
    print(pairs, [tree_util.keystr(path) for path, _ in pairs])
    print([tree_util.keystr(path, simple=True, separator="/") for path, _ in pairs])
    print(tree_util.tree_map_with_path(lambda path, x: (len(path), x), NESTED))
    print(tree_util.tree_map_with_path(lambda p, x: p, (1, [2]), is_leaf=lambda p, x: p != (), is_leaf_takes_path=True))
    for key in pairs[0][0] + pairs[1][0]:
        print(repr(key), str(key), copy.deepcopy(key) == key, hash(copy.copy(key)) == hash(key))


def one_level() -> None:
    for node in (NESTED, NESTED["c"], NESTED["d"], (1, [2]), [1], None, Point(1, 2), tree_util.Partial(max, 1, key=2)):
        print(private.flatten_one_level(node), tree_util.flatten_one_level_with_keys(node))
    print(attempt(lambda: private.flatten_one_level(3)))
    for kind in (list, dict, tuple, type(None), OrderedDict, deque, int, Point):
        print(kind in private._registry, tree_util.is_tree_node(kind))
    entry = private._registry[dict]
    children, metadata = entry.to_iter({"b": 1, "a": 2})
    print(list(children), entry.from_iter(metadata, children))
    print(jax.tree.broadcast((1, 2), ((3, 4), [5, 6])), private.broadcast_prefix((1, 2), ((3, 4), [5, 6])))
    print(jax.tree.transpose(jax.tree.structure([0, 0]), jax.tree.structure((0, 0)), [(1, 2), (3, 4)]))


def leaves_of_jax() -> None:
    """Use trees of objects that corejax takes for nodes: references, and deques."""
    for leaf in (jax.new_ref(jnp.zeros(2)), deque([1, 2])):
        print(tree_util.all_leaves([leaf]), tree_util.all_leaves([leaf, None]), tree_util.all_leaves([1, ()]))
        print(private.broadcast_prefix(1, {"a": leaf, "b": [2, 3]}), jax.tree.broadcast(0, {"a": leaf, "b": None}))
        print(
            jax.tree.leaves([leaf]) == [leaf],
            jax.tree.map(type, {"a": leaf})["a"] is type(leaf),
            type(leaf) in private._registry,
        )
        print(jax.tree.reduce(lambda count, x: count + 1, {"a": leaf, "b": leaf}, 0))
    print(attempt(lambda: jax.tree.broadcast((1, 2), (3,))), tree_util.all_leaves([(1,)], lambda x: x == (1,)))


@functools.partial(tree_util.register_dataclass, data_fields=["a"], meta_fields=["n"])
@dataclasses.dataclass
class Data:
    a: Any
    n: int = 1


@tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Static:
    n: int


@tree_util.register_pytree_with_keys_class
class Keyed:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def tree_flatten_with_keys(self) -> Any:
        return ((tree_util.GetAttrKey("a"), self.a), ("other", self.b)), "metadata"

    @classmethod
    def tree_unflatten(cls, metadata: Any, children: Any) -> Any:
        return cls(*children)


class Late:
    def __init__(self, a: Any) -> None:
        self.a = a


class Named(NamedTuple):
    a: Any
    b: Any


def registered() -> None:
    for tree in (Data((1, 2)), Static(3), Keyed(1, [2])):
        structure = jax.tree.structure(tree)
        print(structure.num_nodes, structure == jax.tree.structure(copy.copy(tree)))
        print([(tree_util.keystr(path), path, x) for path, x in tree_util.tree_leaves_with_path(tree)])
        print(type(jax.tree.map(lambda x: x, tree)), type(jax.jit(lambda x: x)(tree)))
    print(jax.tree.structure(Data(1)) == jax.tree.structure(Data(1, 2)), jax.tree.structure(Data(1)))
    print(attempt(lambda: jax.tree.map(lambda x, y: x, Data(1), Data(1, 2))))
    late, before = Late((1, 2)), jax.tree.structure(Late(1))
    print(len(jax.tree.leaves(late)), attempt(lambda: jax.jit(lambda x: x)(late)))
    tree_util.register_pytree_node(Late, lambda x: ((x.a,), None), lambda _, children: Late(*children))
    print(jax.tree.leaves(late), jax.jit(lambda x: x)(late).a, before == jax.tree.structure(Late(1)))
    print(attempt(lambda: tree_util.register_pytree_node(Late, lambda x: ((), None), lambda _, children: None)))
    tree_util.register_pytree_node(Named, lambda x: ((x.a,), x.b), lambda b, children: Named(*children, b))
    print(jax.tree.map(lambda x: x + 1, Named(1, 2)), jax.vmap(lambda x: x.a)(Named(jnp.arange(2), 3)))


def names() -> None:
    names: dict[str, Any] = {}
    exec("from jax.core import *; from jax.tree_util import *", names)
    print(sorted(set(names) & set(dir(tree_util)) - set(dir(jax.core))), "map" in names, "tree_map" in names)


def threads() -> None:
    failures: list[str] = []

    def register() -> None:
        for _ in range(20):
            kind = type("Kind", (Late,), {})
            tree_util.register_pytree_node(
                kind, lambda x: ((x.a,), None), lambda _, children, kind=kind: kind(*children)
            )
            if jax.tree.leaves(jax.tree.map(lambda x: x + 1, (kind(1), [kind(2)]))) != [2, 3]:
                failures.append(repr(kind))

    running = [threading.Thread(target=register) for _ in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    print(failures)


for use in (structures, structures_of_programs, maps, paths, one_level, leaves_of_jax, registered, names, threads):
    print(use.__name__)
    use()
