"""`custom_partitioning` beside jax's: what is computed, where, by which collectives; derivatives, batches, refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import P
from corejax.experimental import custom_partitioning as partitioning
from corejax.experimental.custom_partitioning import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)

rng = np.random.default_rng(0)
X = rng.standard_normal((16, 8)).astype(np.float32)
W = rng.standard_normal((8, 8)).astype(np.float32)
MESHES = [((8,), ("x",)), ((4, 2), ("x", "y"))]
COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "collective-permute")


def mesh_of(m: Any, shape: tuple[int, ...] = (4, 2), names: tuple[str, ...] = ("x", "y")) -> Any:
    if m is corejax:
        return corejax.make_mesh(shape, names)
    return m.make_mesh(shape, names, axis_types=(m.sharding.AxisType.Auto,) * len(names))


def partitioning_of(m: Any) -> Any:
    return partitioning if m is corejax else pytest.importorskip("jax.experimental.custom_partitioning")


def put(m: Any, mesh: Any, x: Any, *spec: Any) -> Any:
    made = m.sharding.NamedSharding(mesh, m.sharding.PartitionSpec(*spec))
    return m.device_put(x, made)


def collectives(text: str) -> set[str]:
    return {name for name in COLLECTIVES if re.search(rf" {name}(-start)?\(", text)}


def compiled(m: Any, fun: Callable[..., Any], *args: Any) -> tuple[Any, set[str]]:
    program = m.jit(fun).lower(*args).compile()
    return (m.jit(fun) if m is corejax else program)(*args), collectives(program.as_text())


def leading(m: Any, sharding: Any, ndim: int) -> Any:
    """A sharding with the last dimension whole."""
    entries = [*sharding.spec, *[None] * ndim][: ndim - 1]
    return m.sharding.NamedSharding(sharding.mesh, m.sharding.PartitionSpec(*entries, None))


def fft_of(m: Any) -> Any:
    """FFT along the last axis, of parts."""
    module = partitioning_of(m)

    @module.custom_partitioning
    def my_fft(x: Any) -> Any:
        return m.numpy.fft.fft(x)

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        (x,) = args
        where = leading(m, x.sharding, len(x.shape))
        return mesh, m.numpy.fft.fft, where, (where,)

    my_fft.def_partition(partition, sharding_rule="... i -> ... i", need_replication_factors=("i",))
    return my_fft


def matmul_of(m: Any) -> Any:
    """A product of matrices that sums over the devices that have parts of its inner dimension."""
    module = partitioning_of(m)

    @module.custom_partitioning
    def product(a: Any, b: Any) -> Any:
        return a @ b

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        a, b = (x.sharding for x in args)
        inner = a.spec[1] if len(a.spec) > 1 else None

        def lower(a: Any, b: Any) -> Any:
            return a @ b if inner is None else m.lax.psum(a @ b, inner)

        return mesh, lower, result.sharding, (a, b)

    product.def_partition(partition, sharding_rule="i k, k j -> i j", reduction_factors=("k",))
    return product


def both(fun: Callable[[Any], tuple[Any, set[str]]]) -> tuple[Any, set[str]]:
    """The result by corejax, which is that of jax, by the same collectives."""
    got, ours = fun(corejax)
    wanted, theirs = fun(pytest.importorskip("jax"))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    assert ours == theirs
    assert tuple(got.sharding.spec) == tuple(wanted.sharding.spec)[: len(got.sharding.spec)]
    return got, ours


@pytest.mark.parametrize(
    "shape, names, spec",
    [*[(*mesh, spec) for mesh in MESHES for spec in (("x",), (None, "x"), ())], (*MESHES[1], ("x", "y"))],
)
def test_leading_dimensions_stay_split(shape: Any, names: Any, spec: Any) -> None:
    got, used = both(lambda m: compiled(m, fft_of(m), put(m, mesh_of(m, shape, names), X, *spec)))
    np.testing.assert_allclose(got, np.fft.fft(X), rtol=1e-4, atol=1e-4)
    assert spec[:1] != ("x",) or len(spec) > 1 or not used


@pytest.mark.parametrize("spec", [("x", "y"), (None, "y"), ("y", "x"), ()])
def test_a_collective_in_the_parts(spec: Any) -> None:
    def run(m: Any) -> Any:
        mesh = mesh_of(m)
        inner = spec[1] if spec else None
        return compiled(m, matmul_of(m), put(m, mesh, X, *spec), put(m, mesh, W, inner))

    got, used = run(corejax)
    wanted, theirs = run(pytest.importorskip("jax"))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(got, X @ W, rtol=1e-4, atol=1e-4)
    assert used == theirs == ({"all-reduce"} if spec else set())


def test_between_other_operations() -> None:
    def run(m: Any) -> Any:
        mesh, f = mesh_of(m), fft_of(m)
        return compiled(m, lambda x: m.numpy.sin(m.numpy.abs(f(x * 2 + 1))).sum(1), put(m, mesh, X, "x"))

    assert both(run)[1] == set()


def test_alone_and_eagerly_it_is_its_function() -> None:
    f = fft_of(corejax)
    for got in (f(X), corejax.jit(f)(X), f(put(corejax, mesh_of(corejax), X, "x"))):
        np.testing.assert_allclose(got, np.fft.fft(X), rtol=1e-4, atol=1e-4)


def test_in_shard_map_and_pmap_it_is_its_function() -> None:
    f, mesh = fft_of(corejax), mesh_of(corejax)
    got = corejax.jit(corejax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x")))(X)
    np.testing.assert_allclose(got, np.fft.fft(X), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(corejax.pmap(f)(X[:8]), np.fft.fft(X[:8]), rtol=1e-4, atol=1e-4)
    some = corejax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    np.testing.assert_allclose(corejax.jit(some)(X), np.fft.fft(X), rtol=1e-4, atol=1e-4)


def test_structures_static_arguments_and_keywords() -> None:
    def run(m: Any) -> Any:
        module = partitioning_of(m)

        def scaled(factor: float, args: Any, shift: Any = 1.0) -> Any:
            return {"sum": factor * (args["a"] + args["b"][0]), "a": args["a"] + shift}

        f = module.custom_partitioning(scaled, static_argnums=(0,))
        seen = []

        def partition(factor: float, mesh: Any, args: Any, result: Any) -> Any:
            seen.append((factor, args[0]["a"].shape, str(args[0]["a"].dtype), result["sum"].shape))
            where = result["sum"].sharding
            whole = m.sharding.NamedSharding(mesh, m.sharding.PartitionSpec())
            places = {"a": where, "b": [where]}
            return mesh, lambda args, shift: scaled(factor, args, shift), {"sum": where, "a": where}, (places, whole)

        f.def_partition(partition, sharding_rule="i j, i j,  -> i j, i j")
        x = put(m, mesh_of(m), X, "x")
        out, used = compiled(m, lambda x, y: f(3.0, {"a": x, "b": [y]}, shift=2.0), x, x * 2)
        assert set(seen) == {(3.0, (16, 8), "float32", (16, 8))}
        return out["sum"] + out["a"], used

    got, used = both(run)
    np.testing.assert_allclose(got, 10 * X + 2, rtol=1e-5)
    assert used == set()


RULES: dict[str, Callable[[Any], Any]] = {
    "text": lambda m: {"sharding_rule": "i j -> i j"},
    "object": lambda m: {
        "sharding_rule": m.SdyShardingRule((m.ArrayMapping(m.BATCHING, "j"),), (m.ArrayMapping(m.BATCHING, "j"),))
    },
    "function": lambda m: {"sharding_rule": lambda mesh, args, results: "i j -> i j"},
    "function with kinds": lambda m: {
        "sharding_rule": lambda mesh, args, results: ("i j -> i j", {"need_replication_factors": ("i",)})
    },
    "compound": lambda m: {"sharding_rule": "(a b) j -> (a b) j", "a": 4, "b": 4},
    "none": lambda m: {},
}


@pytest.mark.parametrize("name", RULES)
def test_rules_in_every_form(name: str) -> None:
    def run(m: Any) -> Any:
        module = partitioning_of(m)
        f = module.custom_partitioning(lambda x: m.numpy.sin(x))

        def partition(mesh: Any, args: Any, result: Any) -> Any:
            return mesh, m.numpy.sin, result.sharding, (result.sharding,)

        f.def_partition(partition, **RULES[name](module))
        return compiled(m, f, put(m, mesh_of(m), X, "x"))

    _got, used = both(run)
    assert used == ({"all-gather"} if name == "none" else set())


def test_a_derivative_of_its_own_and_its_cotangent() -> None:
    def run(m: Any) -> Any:
        product = matmul_of(m)

        @m.custom_vjp
        def layer(a: Any, b: Any) -> Any:
            return product(a, b)

        layer.defvjp(
            lambda a, b: (product(a, b), (a, b)),
            lambda kept, ct: (product(ct, kept[1].T), product(kept[0].T, ct)),
        )
        mesh = mesh_of(m)
        return compiled(m, m.grad(lambda a, b: m.numpy.sum(layer(a, b) ** 2)), put(m, mesh, X, "x"), put(m, mesh, W))

    got, _ = both(run)
    np.testing.assert_allclose(got, 2 * X @ W @ W.T, rtol=1e-4, atol=1e-4)


@pytest.mark.sampled
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("spec", [(), ("x",), (None, "x"), ("y", "x"), (None, None, "x")])
def test_a_batch_of_calls_is_split_as_well(axis: int, spec: Any) -> None:
    f = fft_of(corejax)
    x = rng.standard_normal((8, 8, 8)).astype(np.float32)
    args = put(corejax, mesh_of(corejax), x, *spec)
    got, used = compiled(corejax, corejax.vmap(f, in_axes=axis, out_axes=axis), args)
    moved = np.moveaxis(np.fft.fft(np.moveaxis(x, axis, 0)), 0, axis)
    np.testing.assert_allclose(got, moved, rtol=1e-4, atol=1e-4)
    transformed = 2 if axis < 2 else 1
    if len(spec) <= transformed or spec[transformed] is None:
        assert used == set()
        assert tuple(got.sharding.spec) == spec


def test_a_batch_of_one_operand_and_a_collective_in_it() -> None:
    product, mesh = matmul_of(corejax), mesh_of(corejax)
    x = rng.standard_normal((4, 8, 8)).astype(np.float32)
    args = put(corejax, mesh, x, "y", None, "x"), put(corejax, mesh, W, "x")
    for fun in (
        corejax.vmap(product, in_axes=(0, None)),
        corejax.vmap(corejax.vmap(lambda a, b: product(a[None], b)[0], (0, None)), (0, None)),
    ):
        got, used = compiled(corejax, fun, *args)
        np.testing.assert_allclose(got, x @ W, rtol=1e-4, atol=1e-4)
        assert used == {"all-reduce"}
        assert got.sharding.spec == P("y")
    np.testing.assert_allclose(corejax.vmap(product, in_axes=(0, None))(x, W), x @ W, rtol=1e-4, atol=1e-4)


def test_in_loops_and_branches() -> None:
    f, mesh = fft_of(corejax), mesh_of(corejax)

    def fun(x: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            return corejax.lax.cond(c.sum() > 1e9, lambda c: c, lambda c: corejax.numpy.abs(f(c)) / 8, c), None

        return corejax.lax.scan(step, x, None, length=2)[0]

    got, _used = compiled(corejax, fun, put(corejax, mesh, X, "x"))
    wanted = np.abs(np.fft.fft(np.abs(np.fft.fft(X)) / 8)) / 8
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
    assert got.sharding.spec == P("x")


def test_a_program_with_it_is_printed() -> None:
    program = corejax.make_jaxpr(corejax.vmap(fft_of(corejax)))(np.ones((2, 4), np.float32))
    assert "custom_partitioning[" in str(program)
    assert "my_fft" in str(program)


def test_shardings_that_are_not_named() -> None:
    seen = []

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        seen.append(type(result.sharding).__name__)
        return mesh, corejax.numpy.sin, result.sharding, (result.sharding,)

    f = custom_partitioning(corejax.numpy.sin)
    f.def_partition(partition, decode_shardings=False, sharding_rule="i j -> i j")
    got, used = compiled(corejax, lambda x: f(x), put(corejax, mesh_of(corejax), X, "x"))
    np.testing.assert_allclose(got, np.sin(X), rtol=1e-5)
    assert not used
    assert set(seen) == {"TiledSharding"}


def test_sizes_that_do_not_divide_are_whole() -> None:
    f, mesh = fft_of(corejax), mesh_of(corejax)
    got, _ = compiled(corejax, lambda x: f(x[:6]), put(corejax, mesh, X, "x"))
    np.testing.assert_allclose(got, np.fft.fft(X[:6]), rtol=1e-4, atol=1e-4)


def test_an_empty_operand() -> None:
    f, mesh = fft_of(corejax), mesh_of(corejax)
    got, _ = compiled(corejax, f, put(corejax, mesh, np.zeros((0, 8), np.float32), "x"))
    assert got.shape == (0, 8)


def answering(*answer: Any) -> Any:
    f = custom_partitioning(corejax.numpy.sin)
    f.def_partition(lambda mesh, args, result: tuple(a(mesh, args, result) for a in answer), sharding_rule="i j -> i j")
    return f


def place(mesh: Any, args: Any, result: Any) -> Any:
    return result.sharding


def places(mesh: Any, args: Any, result: Any) -> Any:
    return (result.sharding,)


def the_mesh(mesh: Any, args: Any, result: Any) -> Any:
    return mesh


BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "not four": (answering(the_mesh), TypeError, "partition must return \\(mesh, lower_fn"),
    "no mesh": (answering(lambda *a: None, place, place, places), TypeError, "a Mesh and a function first"),
    "no shardings": (
        answering(the_mesh, lambda *a: corejax.numpy.sin, lambda *a: 3, places),
        TypeError,
        "result_shardings of partition must be shardings, got 3",
    ),
    "structure": (
        answering(the_mesh, lambda *a: corejax.numpy.sin, place, lambda *a: (place(*a), place(*a))),
        ValueError,
        "arg_shardings of partition have another structure",
    ),
    "too many dimensions": (
        answering(
            the_mesh, lambda *a: corejax.numpy.sin, lambda m, *a: corejax.NamedSharding(m, P(None, None, "x")), places
        ),
        ValueError,
        "result_shardings of partition",
    ),
    "other types": (
        answering(the_mesh, lambda *a: lambda x: x[:1], place, places),
        ValueError,
        "lower_fn returns \\(f32\\[1,8\\]\\) for a device's part, but by result_shardings a part is \\(f32\\[4,8\\]\\)",
    ),
    "an error of its own": (
        answering(the_mesh, lambda *a: lambda x: {}["missing"], place, places),
        KeyError,
        "missing",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_partition_may_not_give(name: str) -> None:
    f, error, text = BAD[name]
    with pytest.raises(error, match=text):
        corejax.jit(f)(put(corejax, mesh_of(corejax), X, "x"))
    test_between_other_operations()  # nothing is left behind


def test_what_is_refused_before() -> None:
    f = custom_partitioning(corejax.numpy.sin)
    with pytest.raises(ValueError, match="call its def_partition first"):
        f(X)
    with pytest.raises(TypeError, match="takes a function, got 3"):
        custom_partitioning(3)
    with pytest.raises(TypeError, match="partition must be a function, got None"):
        f.def_partition(None)
    with pytest.raises(ValueError, match="reduction_factors belong to a sharding_rule that is text"):
        f.def_partition(lambda *a: None, reduction_factors=("i",))
    f.def_partition(lambda *a: None, infer_sharding_from_operands=lambda *a: None)
    with pytest.raises(NotImplementedError, match="give def_partition a sharding_rule"):
        f(X)
    g = fft_of(corejax)
    with pytest.raises(corejax.errors.NotDifferentiableError, match="wrap it in custom_vjp"):
        corejax.grad(lambda x: corejax.numpy.abs(g(x)).sum())(X)
    with pytest.raises(TypeError, match="my_fft"):
        g("text")
    with pytest.raises(TypeError, match="missing a required argument"):
        g()
    h = custom_partitioning(lambda n, x: x * n, static_argnums=(0,))
    h.def_partition(lambda *a: None)
    with pytest.raises(TypeError, match="argument 0 is static"):
        corejax.jit(h)(2, X)
    with pytest.raises(ValueError, match="traced outside of it"):

        def outer(y: Any) -> Any:
            inner = custom_partitioning(lambda x: x + y)
            inner.def_partition(lambda *a: None)
            return inner(X)

        corejax.jit(outer)(1.0)


@pytest.mark.parametrize(
    "rule, more, text",
    [
        ("i j", {}, "one arrow"),
        ("i j -> (i j", {}, "not balanced"),
        ("i -> ((i j) k)", {}, "not balanced, or nested"),
        ("(i) -> i", {}, "at least two"),
        ("1i -> 1i", {}, "'1i'"),
        ("i . -> i", {}, "no meaning"),
        ("i ... -> i", {}, "come first"),
        ("(i j) -> k", {}, "give its size, i="),
        ("(i j) -> i j", {"i": 3}, "which has its size"),
        ("i -> i", {"k": 3}, "no factor 'k'"),
        ("i -> i", {"reduction_factors": ("k",)}, "no factor of the rule"),
        ("i -> i", {"reduction_factors": ("i",), "permutation_factors": ("i",)}, "it can be in one"),
        ("i -> i", {"reduction_factors": ["i"]}, "is a tuple of factors"),
    ],
)
def test_rules_that_are_none(rule: str, more: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        custom_partitioning(corejax.numpy.sin).def_partition(lambda *a: None, sharding_rule=rule, **more)
    theirs = pytest.importorskip("jax.experimental.custom_partitioning")
    with pytest.raises((ValueError, TypeError)):
        theirs.custom_partitioning(lambda x: x).def_partition(lambda *a: None, sharding_rule=rule, **more)


def test_rules_of_other_types_than_text() -> None:
    with pytest.raises(TypeError, match="sharding_rule is a text"):
        custom_partitioning(corejax.numpy.sin).def_partition(lambda *a: None, sharding_rule=3)
    with pytest.raises(TypeError, match="size is an integer"):
        custom_partitioning(corejax.numpy.sin).def_partition(
            lambda *a: None, sharding_rule="(i j) -> (i j)", i=2.0, j=4
        )
    with pytest.raises(ValueError, match="a letter"):
        ArrayMapping("i", 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="come first"):
        ArrayMapping("i", BATCHING)


@pytest.mark.parametrize(
    "rule, more, text",
    [
        ("i -> i", {}, "has 1 dimensions, but it is f32\\[16,8\\]"),
        ("i j, k -> i j", {}, "has 2 operands, but it has 1"),
        ("i j -> i j, i", {}, "has 2 results, but it has 1"),
        ("(a b) j -> (a b) j", {"a": 3, "b": 4}, "dimension of size 16"),
        ("... i j k -> ... i j", {}, "dimensions"),
    ],
)
def test_rules_that_do_not_fit(rule: str, more: dict[str, Any], text: str) -> None:
    f = custom_partitioning(corejax.numpy.sin)
    f.def_partition(lambda *a: None, sharding_rule=rule, **more)
    with pytest.raises(ValueError, match=text):
        corejax.jit(f)(put(corejax, mesh_of(corejax), X, "x"))


def test_rules_are_readable() -> None:
    rule = SdyShardingRule(
        (ArrayMapping(BATCHING, CompoundFactor("a", "b")),), (ArrayMapping("a"),), reduction_factors=("a",), b=2
    )
    shown = "SdyShardingRule((ArrayMapping('…', CompoundFactor('a', 'b')),), (ArrayMapping('a'),), "
    assert repr(rule) == shown + "reduction_factors=('a',), b=2)"
    assert rule == SdyShardingRule(
        (ArrayMapping(BATCHING, CompoundFactor("a", "b")),), (ArrayMapping("a"),), reduction_factors=("a",), b=2
    )
