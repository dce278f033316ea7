"""What `jit` takes and returns: functions, arguments static and traced, pytrees, dtypes, and errors about them."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections import OrderedDict, defaultdict, deque, namedtuple
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
from corejax import Array, float0, grad, jit, lax, tree_util, vmap
from corejax.extend import as_array

pytest.importorskip("jaxlib")

from corejax_xla_backend._jit import jit as jit_page
from corejax_xla_backend._xla import dispatch

# -- functions -------------------------------------------------------------------------------------


def test_methods() -> None:
    class Model:
        scale = 3.0

        @functools.partial(jit, static_argnums=0)
        def __call__(self, x: Any) -> Any:
            return x * self.scale

        @jit
        def of_pytree(weights: Any, x: Any) -> Any:
            return weights["w"] * x

    model = Model()
    assert float(model(2.0)) == float(model(2.0)) == 6.0
    assert float(jit(model)(2.0)) == float(jit(model.__call__)(2.0)) == 6.0
    assert float(Model.of_pytree({"w": 2.0}, 3.0)) == 6.0


def test_a_pytree_as_self() -> None:
    @tree_util.register_dataclass
    @dataclasses.dataclass
    class Linear:
        w: Any

        @jit
        def __call__(self, x: Any) -> Any:
            return self.w * x

    for _ in range(2):
        assert float(Linear(2.0)(3.0)) == 6.0
    np.testing.assert_array_equal(vmap(Linear(2.0))(np.float32([1, 2])), [2, 4])


def test_partials_and_builtins() -> None:
    def f(x: Any, y: Any, *, z: Any) -> Any:
        return x + y * z

    assert float(jit(functools.partial(f, 1.0, z=2.0))(3.0)) == 7.0
    assert float(jit(functools.partial(f, z=2.0))(1.0, y=3.0)) == 7.0
    assert float(jit(abs)(-2.0)) == 2.0
    assert float(jit(jit(f))(1.0, 3.0, z=2.0)) == 7.0


def test_name_and_documentation() -> None:
    @jit
    def f(x: Any) -> Any:
        """Add one."""
        return x + 1

    assert (f.__name__, f.__doc__, f.__wrapped__.__name__) == ("f", "Add one.", "f")
    assert f.__module__ == __name__


def test_only_functions() -> None:
    with pytest.raises(TypeError, match="jit: Expected a callable value, got 3 of type int"):
        jit(3)


# -- static arguments ------------------------------------------------------------------------------


def counting(seen: list[Any]) -> Any:
    def f(x: Any, n: Any, mode: str = "up", *, flag: Any = None) -> Any:
        seen.append((n, mode, flag))
        return x * n if mode == "up" else x - n

    return f


@pytest.mark.parametrize(
    "static",
    [{"static_argnums": (1, 2)}, {"static_argnames": ("n", "mode")}, {"static_argnums": 1,
    "static_argnames": "mode"},
     {"static_argnums": (-2, -1)}],
    ids=str,
)  # fmt: skip
def test_static_arguments_by_number_and_by_name(static: dict[str, Any]) -> None:
    seen: list[Any] = []
    f = jit(counting(seen), **static)
    assert float(f(3.0, 2)) == float(f(3.0, n=2)) == float(f(x=3.0, n=2)) == 6.0
    assert float(f(3.0, 2, "down")) == float(f(3.0, mode="down", n=2)) == 1.0
    count = len(seen)
    for _ in range(3):
        f(4.0, 2), f(4.0, n=2), f(4.0, 2, "down")
    assert len(seen) == count, "no new signature"
    assert all(type(n) is int and type(mode) is str for n, mode, _ in seen)


def test_equal_static_values_of_different_types_are_different() -> None:
    f = jit(lambda x, n: n if isinstance(n, float) else x, static_argnums=1)
    assert [float(f(5.0, n)) for n in (1, 1.0, True, 1, 1.0)] == [5.0, 1.0, 5.0, 5.0, 1.0]


EQUAL = [
    [0.0, -0.0, 0, False, 0j, complex(-0.0, 0.0), np.float32(0), np.float32(-0.0), np.float64(-0.0)],
    [(1,), (1.0,), (True,), ((1,),), ((1.0,),)],
    [(0.0,), (-0.0,), (0,), (("a", -0.0),), (("a", 0.0),)],
    [frozenset([0.0]), frozenset([-0.0])],
]


@pytest.mark.parametrize("values", EQUAL, ids=repr)
def test_static_values_that_are_equal_and_not_the_same_have_programs_of_their_own(values: list[Any]) -> None:
    seen: list[str] = []

    def f(x: Any, value: Any) -> Any:
        seen.append(repr(value))
        return x

    for wrapped in (jit(f, static_argnums=1), corejax.checkpoint(f, static_argnums=1)):
        seen.clear()
        for value in values * 2:
            wrapped(1.0, value)
        assert seen == list(map(repr, values))
    named = jit(f, static_argnames="value")
    seen.clear()
    for value in values * 2:
        named(1.0, value=value)
    assert seen == list(map(repr, values))


def test_a_static_nan_is_traced_once() -> None:
    seen: list[float] = []
    f = jit(lambda x, value: seen.append(value) or x, static_argnums=1)
    for _ in range(2):
        f(1.0, float("nan"))
    assert len(seen) == 1


def test_keyword_only_static_arguments() -> None:
    seen: list[Any] = []
    f = jit(counting(seen), static_argnames=["flag", "n", "mode"])
    f(1.0, 2, flag="a")
    f(1.0, 2, flag="b")
    f(2.0, 2, flag="b")
    assert [flag for *_, flag in seen] == ["a", "b"]


def test_extra_positional_static_arguments() -> None:
    f = jit(lambda *args: args[0] * len(args[1]) + args[2], static_argnums=1)
    assert float(f(2.0, "abc", 1.0)) == 7.0
    g = jit(lambda x, **options: x * options["n"], static_argnames="n")
    assert float(g(2.0, n=3)) == 6.0


def test_wrong_static_arguments() -> None:
    f = lambda x, n: x
    with pytest.raises(ValueError, match="static_argnums has 2, but the function takes 2 positional"):
        jit(f, static_argnums=2)
    with pytest.raises(ValueError, match="static_argnames has 'm', but the function has no such parameter"):
        jit(f, static_argnames="m")
    g = jit(f, static_argnums=1)
    by_name = jit(f, static_argnames="n")
    not_a_list = r"^jit of <lambda>: static argument 'n' has to be hashable, got \[1\] \(of type list\); pass a tuple"
    for call in (g.lower, g, by_name, jit(lambda x, n: g(x, n), static_argnums=1)):
        for args, kwargs in (((1.0, [1]), {}), ((1.0,), {"n": [1]})):
            with pytest.raises(TypeError, match=not_a_list) as caught:
                call(*args, **kwargs)
            assert caught.value.__suppress_context__  # jaxlib's own words are not shown
    with pytest.raises(TypeError, match=r"static argument 'n' has to be hashable, got .*\(a traced value\)"):
        jit(lambda x: g(x, x))(1.0)
    assert float(g(1.0, (1,))) == 1.0


def test_errors_in_functions_with_static_arguments_pass() -> None:
    def f(x: Any, n: int) -> Any:
        raise ValueError(f"n is {n}")

    with pytest.raises(ValueError, match=r"^n is 3$"):
        jit(f, static_argnums=1)(1.0, 3)


def test_what_users_hold() -> None:
    """The dispatcher itself where there is nothing static, else a function around it: the same to users."""

    def f(x: Any, n: int = 2) -> Any:
        "Times n."
        return x * n

    plain, static = jit(f), jit(f, static_argnums=1)
    assert type(plain).__name__ == "PjitFunction"
    for jitted in (plain, static):
        assert (jitted.__name__, jitted.__doc__, jitted.__wrapped__) == ("f", "Times n.", f)
        assert float(jitted(2.0)) == float(jitted.lower(2.0).compile()(2.0)) == 4.0
        assert jitted.eval_shape(2.0).shape == ()
        jitted.clear_cache()
        assert float(jitted(2.0)) == 4.0


# -- pytrees ---------------------------------------------------------------------------------------

Point = namedtuple("Point", "x y")


class Pair:
    """A registered container."""

    def __init__(self, first: Any, second: Any, label: str = "") -> None:
        self.first, self.second, self.label = first, second, label


tree_util.register_pytree_node(
    Pair, lambda p: ((p.first, p.second), p.label), lambda label, children: Pair(*children, label)
)


def test_registered_containers_have_a_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    @jit
    def f(pair: Pair) -> Any:
        calls.append(pair.label)
        return Pair({"s": pair.first + pair.second["v"]}, (pair.first, None), pair.label + "!")

    argument = Pair(1.0, {"v": 2.0}, "a")
    f(argument)  # here the dispatcher learns the class, and at the second call the signature
    f(argument)
    misses = []
    monkeypatch.setattr(jit_page, "compiled", lambda *args: misses.append(args))
    monkeypatch.setattr(dispatch, "_one_level", lambda node: misses.append(node))  # no treedef is made for each
    for _ in range(2):
        out = f(Pair(3.0, {"v": 4.0}, "a"))
        assert (float(out.first["s"]), float(out.second[0]), out.label) == (7.0, 3.0, "a!")
    assert not misses, "neither traced nor looked up"
    monkeypatch.undo()
    assert f(Pair(1.0, {"v": 2.0}, "b")).label == "b!"
    assert calls == ["a", "b"], "metadata are part of the signature"


def test_metadata_that_are_written_to_are_looked_at_by_each_call() -> None:
    sizes, options = [1, 2], {"n": [1]}
    f = jit(lambda pair: pair.first * sum(pair.label))
    g = jit(lambda pair: pair.first * pair.label["n"][0])
    for _ in range(3):
        assert f(Pair(1.0, None, sizes)) == 3.0 and g(Pair(1.0, None, options)) == 1.0
    cell = np.array([2.0])  # of one element
    h = jit(lambda pair: pair.first * pair.label[0])
    assert [h(Pair(1.0, None, cell)) for _ in range(3)] == [2.0] * 3
    cell[0] = 3.0
    assert h(Pair(1.0, None, cell)) == 3.0
    sizes.append(3)
    options["n"][0] = 5
    assert f(Pair(1.0, None, sizes)) == 6.0 and g(Pair(1.0, None, options)) == 5.0
    assert f(Pair(1.0, None, [1, 2])) == 3.0
    shown = MappingProxyType(options)  # which before Python 3.12 has no hash
    assert [g(Pair(1.0, None, shown)), options.update(n=[6]), g(Pair(1.0, None, shown))] == [5.0, None, 6.0]
    inside = jit(lambda treedef, x: x * tree_util.tree_unflatten(treedef, [x, 0.0]).label[0], static_argnums=0)
    assert inside(tree_util.tree_structure(Pair(1.0, 2.0, [3])), 2.0) == 6.0


def test_arrays_of_one_element_are_metadata() -> None:
    calls = []

    @jit
    def f(pair: Any) -> Any:
        calls.append(pair.label)
        return lax.fori_loop(0, 3, lambda _, p: Pair(p.first * p.label, None, p.label), pair)

    cell = as_array(np.float32(2.0))
    for label in (cell, cell, as_array(np.float32(2.0)), np.array(2.0, np.float32)):
        out = f(Pair(1.0, None, label))
        assert out.first == 8.0 and out.label == 2.0
    assert f(Pair(1.0, None, as_array(np.float32(3.0)))).first == 27.0
    assert [float(c) for c in calls] == [2.0, 3.0]
    with pytest.raises(TypeError, match="unhashable type: 'Array'"):
        f(Pair(1.0, None, as_array(np.ones(2))))


@dataclasses.dataclass
class Scale:
    factor: Any


@pytest.mark.parametrize(
    "holder",
    [
        lambda x: [x],
        lambda x: {"x": {"y": x}},
        lambda x: ("cell", deque([x])),
        lambda x: MappingProxyType({"x": x}),  # which before Python 3.12 has no hash
        lambda x: ("cell", as_array(np.float32(x))),
        lambda x: [np.array([x])],
        Scale,
    ],
)
def test_metadata_without_a_hash_have_a_fast_path(holder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call compares their content with what it was when the program was found."""
    f = jit(lambda pair: pair.first * float(re.search(r"\d\.", str(pair.label))[0]))
    misses = []
    lookup = jit_page.compiled
    monkeypatch.setattr(jit_page, "compiled", lambda *args: (misses.append(args), lookup(*args))[1])
    assert [f(Pair(x, None, holder(2.0))) for x in (1.0, 1.0, 3.0)] == [2.0, 2.0, 6.0]
    assert len(misses) <= 2, "at the first call the dispatcher learns the class, at the second the signature"
    assert f(Pair(1.0, None, holder(3.0))) == 3.0


def test_the_hash_of_metadata_does_not_run_in_each_call() -> None:
    hashes = []

    @dataclasses.dataclass(frozen=True)
    class Hashed:
        factors: Any

        def __hash__(self) -> int:
            hashes.append(self)
            return hash(self.factors)

    f = jit(lambda pair: pair.first * sum(pair.label.factors))
    assert [f(Pair(x, None, Hashed((2.0,)))) for x in (1.0, 1.0, 1.0)] == [2.0] * 3
    hashes.clear()
    assert f(Pair(3.0, None, Hashed((2.0,)))) == 6.0 and f(Pair(3.0, None, Hashed((2.0,)))) == 6.0 and not hashes
    assert f(Pair(1.0, None, Hashed((3.0,)))) == 3.0
    factors = [2.0]  # in an object that has a hash only by its class
    for factor in (2.0, 3.0, 2.0):
        factors[0] = factor
        assert [f(Pair(1.0, None, Hashed(factors))) for _ in range(3)] == [factor] * 3


def test_containers_in_and_out() -> None:
    tree = {
        "t": (1.0, [2.0]), "n": None, "p": Point(3.0, 4.0), "o": OrderedDict(z=5.0, a=6.0), "e": (), "d": {},
        "f": defaultdict(list, k=7.0), "q": Pair(8.0, Pair(9.0, None)), "g": tree_util.Partial(lax.add, 10.0),
    }  # fmt: skip
    f = jit(lambda t, **kw: (t, kw))
    for _ in range(2):
        out, kw = f(tree, extra=tree)
        for got in (out, kw["extra"]):
            assert tree_util.tree_structure(got) == tree_util.tree_structure(tree)
            assert [float(x) for x in tree_util.tree_leaves(got)] == tree_util.tree_leaves(tree)
            assert type(got["p"]) is Point and list(got["o"]) == ["z", "a"] and got["f"].default_factory is list


def test_none_and_nothing() -> None:
    assert jit(lambda x: None)(1.0) is None
    assert jit(lambda: ())() == ()
    assert jit(lambda x: {"a": []})(None) == {"a": []}
    assert float(jit(lambda: lax.sin(0.0))()) == 0.0
    assert float(jit(lambda x, y: y)(None, 2.0)) == 2.0
    f = jit(lambda x, y: y if x is None else x)
    assert [float(f(None, 2.0)), float(f(1.0, 2.0)), float(f(None, 2.0))] == [2.0, 1.0, 2.0]


def test_outputs_that_are_inputs_constants_or_one_another() -> None:
    f = jit(lambda x, y: (y, x, 3.0, x, x + y, np.float32([1, 2])))
    for _ in range(2):
        out = f(1.0, 2)
        assert [np.asarray(x).tolist() for x in out] == [2, 1, 3, 1, 3, [1, 2]]
        assert all(type(x) is Array for x in out)


# -- dtypes and values -----------------------------------------------------------------------------

DTYPES = [
    bool, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float16,
    np.float32,
    np.float64, np.complex64, np.complex128, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4,
]  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0)], ids=str)
def test_dtypes_in_and_out(dtype: Any, shape: tuple[int, ...]) -> None:
    value = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    f = jit(lambda x, y: (y, x, x == y))
    for x in (value, jit(lambda x: x)(value), value[()]):
        for _ in range(2):
            first, second, same = f(x, value)
            assert first.dtype == second.dtype == np.dtype(dtype) and first.shape == second.shape == shape
            assert np.asarray(first).tobytes() == np.asarray(second).tobytes() == value.tobytes()
            assert np.asarray(same).all()


def test_python_scalars_are_weak() -> None:
    f = jit(lambda x: x)
    kinds = [(f(x).dtype.name, f(x).weak_type) for x in (True, 2, 2.5, 1j, np.float64(1), np.int64(1))]
    assert kinds == [
        ("bool", False), ("int32", True), ("float32", True), ("complex64", True), ("float64", False),
        ("int64", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "value",
    [np.arange(6.0).reshape(2, 3).T, np.arange(6)[::-2], np.broadcast_to(1.0, (2, 2))],
    ids=["transposed", "reversed", "broadcast"],
)
def test_numpy_arrays_of_any_layout(value: np.ndarray) -> None:
    f = jit(lambda x: x + x)
    for _ in range(2):
        np.testing.assert_array_equal(f(value), value + value)


def test_numpy_arguments_may_be_changed_afterwards() -> None:
    f = jit(lambda x: x * 2)
    x = np.zeros(1 << 16, np.float32)
    results = []
    for i in range(4):
        x[:] = i
        results.append(f(x))
    x[:] = -1
    assert [float(r[0]) for r in results] == [0, 2, 4, 6]
    table = np.ones(64, np.float32)
    g = jit(lambda x: x + table)
    first = g(0.0)
    table[:] = 5
    assert float(first[0]) == float(g(0.0)[0]) == 1.0, "constants are copied when the function is traced"


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["text", object(), {1, 2}, np.array(["a"]), np.array([object()])], ids=lambda v: type(v).__name__
)
def test_arguments_that_are_not_arrays_are_named(value: Any) -> None:
    def f(x: Any, options: Any) -> Any:
        return x

    for call in (jit(f), jit(f).lower, jit(f).eval_shape):
        with pytest.raises(TypeError, match=r"options\['k'\]") as caught:
            call(1.0, {"k": value})
        assert "f" in str(caught.value)


def test_arguments_beside_static_ones_are_named() -> None:
    f = jit(lambda n, x: x, static_argnums=0)
    with pytest.raises(TypeError, match="argument x is 'a'"):
        f(1, "a")


def test_results_that_are_not_arrays_are_named() -> None:
    with pytest.raises(TypeError, match=r"returns 'b' of type str \(\['a'\]\)"):
        jit(lambda x: {"a": "b"})(1.0)


def test_wrong_number_of_arguments_is_pythons_own_error() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        jit(lambda x, y: x)(1.0)


def test_numbers_that_do_not_fit() -> None:
    f = jit(lambda x: 0.0)
    for fits, too_large, name in ((1, 2**40, "x"), ([1], [2**40], r"x\[0\]")):
        f(fits)
        with pytest.raises(OverflowError, match=rf"jit of .* argument {name}: Python int {2**40} does not fit"):
            f(too_large)


class Fragile:
    """A node that cannot be taken apart once it is broken."""

    broken = False


def _children(node: Fragile) -> tuple[tuple[()], None]:
    if node.broken:
        raise ValueError("it is broken")
    return (), None


tree_util.register_pytree_node(Fragile, _children, lambda metadata, children: Fragile())


def _levels() -> int:
    """Calls that are left until Python says that there are too many."""
    try:
        return 1 + _levels()
    except RecursionError:
        return 1


@pytest.mark.parametrize("kind", ["number", "node"])
def test_arguments_that_are_refused_cost_no_levels_of_recursion(kind: str) -> None:
    f, node = jit(lambda x: 0.0), Fragile()
    f({"a": [1]}), f({"a": [node]})
    node.broken = True
    value, error = (2**40, OverflowError) if kind == "number" else (node, ValueError)
    before = _levels()
    for _ in range(3):
        with pytest.raises(error):
            f({"a": [value]})
    assert _levels() == before


# -- what JAX's users rely on ----------------------------------------------------------------------


@pytest.mark.parametrize("option", ["static_argnames", "donate_argnames"])
@pytest.mark.parametrize("name", ["a", "args"])
def test_what_is_given_by_position_only_has_no_name(option: str, name: str) -> None:
    def f(a: Any, /, b: Any, *args: Any, **kwargs: Any) -> Any:
        return b

    with pytest.raises(ValueError, match=rf"{option} has '{name}', which is positional-only"):
        jit(f, **{option: (name, "b")})
    jit(f, **{option: ("b", "c")})


@pytest.mark.parametrize("kind", [staticmethod, classmethod])
def test_methods_are_made_of_the_compiled_function(kind: Any) -> None:
    with pytest.raises(TypeError, match=rf"put @{kind.__name__} before @jit"):
        jit(kind(lambda x: x))


def test_tangents_of_integers_are_results() -> None:
    gradient = grad(lambda x, i: x[i], argnums=(0, 1), allow_int=True)
    compiled = jit(gradient)
    x = np.ones((3, 2), np.float32)
    for result in (compiled(x[0], 1), compiled(x[0], 1), compiled.lower(x[0], 1).compile()(x[0], 1)):
        np.testing.assert_array_equal(result[0], [0, 1])
        assert result[1].dtype == float0
        assert result[1].shape == ()
    mapped = vmap(compiled)(x, np.arange(3) % 2)
    np.testing.assert_array_equal(mapped[0], [[1, 0], [0, 1], [1, 0]])
    np.testing.assert_array_equal(jit(lambda x: compiled(x, 0)[0])(x[0]), [1, 0])
