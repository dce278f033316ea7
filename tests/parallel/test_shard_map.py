"""`shard_map` beside jax's: run, compiled, differentiated, batched, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as cjnp
from corejax import P, lax
from corejax.extend import ShapedArray
from corejax.extend.types import ValueType
from corejax.sharding import AxisType
from tests.recorded import Recorded
from tests.value_types import Stacked, dense, symmetric

RECORDED = Recorded("shard_map")
rng = np.random.default_rng(0)
X = rng.standard_normal((8, 16)).astype(np.float32)
W = rng.standard_normal((16, 8)).astype(np.float32)
RING = [(i, (i + 1) % 4) for i in range(4)]
ANY = [(i, (3 * i + 1) % 8) for i in range(8)]

# name -> function of blocks, specs of arguments, of the result, arguments, options
CASES: dict[str, tuple[Callable[..., Any], list[Any], Any, tuple[Any, ...], dict[str, Any]]] = {
    "matmul": (lambda m, jnp, a, b: m.lax.psum(a @ b, "y"), [("x", "y"), ("y",)], ("x",), (X, W), {}),
    "two axes of one dimension": (lambda m, jnp, a: jnp.sin(a), [(None, ("y", "x"))], (("x", "y"),), (X,), {}),
    "indices": (
        lambda m, jnp, a: a * (m.lax.axis_index("x") * 10 + m.lax.axis_index(("y", "x"))),
        [("x", "y")],
        ("x", "y"),
        (X,),
        {},
    ),
    "gather": (
        lambda m, jnp, a: m.lax.all_gather(a, "y", axis=1, tiled=True),
        [("x", "y")],
        ("x",),
        (X,),
        {"check_vma": False},
    ),
    "scatter": (
        lambda m, jnp, a: m.lax.psum_scatter(a, "x", scatter_dimension=1, tiled=True),
        [("x",)],
        (None, "x"),
        (X,),
        {},
    ),
    "exchange": (lambda m, jnp, a: m.lax.all_to_all(a, "x", 1, 0, tiled=True), [("x",)], (None, "x"), (X,), {}),
    "ring": (lambda m, jnp, a: m.lax.ppermute(a, "x", RING), [("x", "y")], ("x", "y"), (X,), {}),
    "permutation": (lambda m, jnp, a: m.lax.ppermute(a, ("x", "y"), ANY), [("x", "y")], ("x", "y"), (X,), {}),
    "mean": (lambda m, jnp, a, b: m.lax.pmean(jnp.sum(jnp.tanh(a @ b) ** 2), "x"), [("x",), ()], (), (X, W), {}),
    "scan": (
        lambda m, jnp, a: m.lax.scan(
            lambda c, r: (m.lax.pmean(jnp.tanh(c + r), "x"), c * r), jnp.ones(16, jnp.float32), a
        )[1],
        [("x",)],
        ("x",),
        (X,),
        {},
    ),
    "jit and checkpoint inside": (
        lambda m, jnp, a: m.checkpoint(m.jit(lambda b: m.lax.psum(jnp.sin(b), "x") * b))(a),
        [("x", "y")],
        ("x", "y"),
        (X,),
        {},
    ),
    "one axis the compiler's": (
        lambda m, jnp, a, b: m.lax.psum(jnp.sin(a) @ b, "y") + m.lax.axis_size("y"),
        [(None, "y"), ("y",)],
        (),
        (X, W),
        {"axis_names": {"y"}},
    ),
    "index, one axis the compiler's": (
        lambda m, jnp, a: a * m.lax.axis_index("y"),
        [(None, "y")],
        (None, "y"),
        (X,),
        {"axis_names": {"y"}},
    ),
}


def mesh(m: Any) -> Any:
    types = {} if m is corejax else {"axis_types": (m.sharding.AxisType.Auto,) * 2}
    return m.make_mesh((4, 2), ("x", "y"), **types)


def mapped(m: Any, jnp: Any, name: str) -> Any:
    fun, ins, out, _, options = CASES[name]
    spec = m.sharding.PartitionSpec
    return m.shard_map(
        lambda *blocks: fun(m, jnp, *blocks),
        mesh=mesh(m),
        in_specs=tuple(spec(*s) for s in ins),
        out_specs=spec(*out),
        **options,
    )


def same(got: Any, wanted: Any) -> None:
    for a, b in zip(corejax.tree.leaves(got), corejax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-3, atol=1e-3)


@pytest.mark.numbers
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_are_jaxs(name: str) -> None:
    """Values, gradients and a batch: one program. Run, and as derivatives of a compiled function, too."""
    jax = pytest.importorskip("jax")
    args = CASES[name][3]
    several = [np.stack([x, x * 2]) for x in args]
    everything = tuple(range(len(args)))

    def loss(jnp: Any, fun: Any) -> Any:
        return lambda *xs: jnp.sum(jnp.sin(fun(*xs)))

    def of(m: Any, jnp: Any) -> Any:
        fun = mapped(m, jnp, name)
        slopes = m.grad(loss(jnp, fun), argnums=everything)
        return m.jit(lambda xs, batch: [fun(*xs), *slopes(*xs), m.vmap(fun)(*batch)])

    value, *slopes, batch = RECORDED.of(name, lambda: of(jax, jax.numpy)(args, several))
    same(of(corejax, cjnp)(args, several), [value, *slopes, batch])
    ours = mapped(corejax, cjnp, name)
    same(ours(*args), value)
    same(corejax.grad(loss(cjnp, corejax.jit(ours)), argnums=everything)(*args), tuple(slopes))


def test_results_lie_where_the_specs_say() -> None:
    for call in (mapped(corejax, cjnp, "matmul"), corejax.jit(mapped(corejax, cjnp, "matmul"))):
        out = call(X, W)
        assert out.sharding.is_equivalent_to(corejax.NamedSharding(mesh(corejax), P("x")), 2)
        assert len(out.addressable_shards) == 8 and out.addressable_shards[0].data.shape == (2, 8)


def test_one_collective_for_each_that_is_written() -> None:
    text = corejax.jit(mapped(corejax, cjnp, "matmul")).lower(X, W).compile().as_text()
    assert text.count(" all-reduce(") == 1 and "all-gather" not in text


def test_nested_over_other_axes() -> None:
    over = mesh(corejax)

    def inner(b: Any) -> Any:
        return lax.psum(b, "y") * b + lax.axis_index("x")

    def outer(a: Any) -> Any:
        return corejax.shard_map(inner, mesh=over, in_specs=(P(None, "y"),), out_specs=P(None, "y"), axis_names={"y"})(
            a
        )

    nested = corejax.shard_map(outer, mesh=over, in_specs=(P("x"),), out_specs=P("x"), axis_names={"x"})
    halves = X.reshape(8, 2, 8).sum(1)
    want = np.tile(halves, (1, 2)) * X + np.repeat(np.arange(4), 2)[:, None]
    np.testing.assert_allclose(np.asarray(nested(X)), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.asarray(corejax.jit(nested)(X)), want, rtol=1e-5, atol=1e-5)


def test_nested_over_the_same_axis() -> None:
    """Values are blocks along it already; over the others the mesh is that of the outer one."""
    mesh = corejax.make_mesh((2, 4), ("x", "y"))

    def within(**options: Any) -> Any:
        inner = corejax.shard_map(corejax.numpy.sin, **options)
        return corejax.shard_map(inner, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})

    for options in (
        {"in_specs": P("x"), "out_specs": P("x"), "axis_names": {"x"}},
        {"in_specs": P("y"), "out_specs": P("y")},
    ):
        for given in ({}, {"mesh": mesh}):
            f = within(**options, **given)
            for run in (f, corejax.jit(f), corejax.grad(lambda x, f=f: f(x).sum())):
                with pytest.raises(
                    ValueError, match=r"shard_map of sin: axis 'x' is already manual in the enclosing shard_map of"
                ):
                    run(X)
    f = within(in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"})
    for run in (f, corejax.jit(f)):
        np.testing.assert_allclose(np.asarray(run(X)), np.sin(X), rtol=1e-6)
    with pytest.raises(ValueError, match="it needs a mesh"):  # nothing is left of the outer ones
        corejax.shard_map(corejax.numpy.sin, in_specs=P("x"), out_specs=P("x"))(X)


@pytest.mark.parametrize("jitted", [False, True])
def test_the_mesh_of_a_nested_one_is_that_around_it(jitted: bool) -> None:
    mesh = corejax.make_mesh((4, 2), ("x", "y"))
    options = {"in_specs": P(None, "y"), "out_specs": P(), "axis_names": {"y"}}
    seen = []

    def block(a: Any) -> Any:
        context = corejax.sharding.get_abstract_mesh()
        seen.append(context.axis_types)
        sums = [
            corejax.shard_map(lambda b: lax.psum(b * lax.axis_index("x"), "y"), mesh=given, **options)(a)
            for given in (None, context, context.update_axis_types({"x": corejax.sharding.AxisType.Auto}))
        ]
        inner = corejax.jit(corejax.shard_map(lambda b: lax.psum(noted(b), "y"), **options))
        return lax.with_sharding_constraint(sum(sums), P(None, "y")) + inner(a)

    def noted(b: Any) -> Any:
        seen.append(corejax.sharding.get_abstract_mesh().axis_types)
        return b * 0

    f = corejax.shard_map(block, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    wanted = 3 * (X[:, :8] + X[:, 8:]) * np.repeat(np.arange(4), 2)[:, None]
    np.testing.assert_allclose((corejax.jit(f) if jitted else f)(X), wanted, rtol=1e-5)
    manual, auto = corejax.sharding.AxisType.Manual, corejax.sharding.AxisType.Auto
    assert seen == [(manual, auto), (manual, manual)]
    assert corejax.sharding.get_abstract_mesh().empty


def test_a_function_around_is_compiled_again_for_another_mesh() -> None:
    @corejax.jit
    def total(a: Any) -> Any:
        return corejax.shard_map(
            lambda b: lax.psum(cjnp.sum(b), "y") * lax.axis_size("y"), in_specs=P("y"), out_specs=P(), axis_names={"y"}
        )(a) * lax.psum(1, "x")

    for sizes in ((2, 4), (2, 2)):
        mesh = corejax.make_mesh(sizes, ("x", "y"), devices=corejax.devices()[: sizes[0] * sizes[1]])
        f = corejax.shard_map(total, mesh=mesh, in_specs=P(), out_specs=P(), axis_names={"x"})
        np.testing.assert_allclose(f(X), 2 * sizes[1] * X.sum(), rtol=1e-4)


def test_unbound_names_list_axes_alone() -> None:
    f = corejax.shard_map(
        lambda a: lax.psum(a, "z"), mesh=corejax.make_mesh((8,), ("x",)), in_specs=P("x"), out_specs=P("x")
    )
    with pytest.raises(NameError, match=r"active axes: .x.\. Names are bound"):
        f(X)


def test_compiled_calls_that_are_waited_for_take_part_in_transformations() -> None:
    """Calls of them wait for their results, and those of a transformation are no arrays."""
    f = corejax.jit(
        corejax.shard_map(lambda a: lax.psum(cjnp.sin(a), "x"), mesh=mesh(corejax), in_specs=P("x"), out_specs=P())
    )
    for x in (X[:, :6], np.ones((8, 2**16), np.float32)):  # also one that calls copy
        wanted = np.sin(x).reshape(4, 2, -1).sum(0)
        np.testing.assert_allclose(f(x), wanted, rtol=1e-5)
        np.testing.assert_allclose(corejax.grad(lambda x: cjnp.sum(f(x)))(x), np.cos(x), rtol=1e-5)
        np.testing.assert_allclose(corejax.vmap(f)(x[None]), wanted[None], rtol=1e-5)
        np.testing.assert_allclose(corejax.jvp(f, (x,), (x,))[0], wanted, rtol=1e-5)


def test_in_loops_and_with_closed_over_arrays() -> None:
    weights = cjnp.asarray(W)

    def block(a: Any) -> Any:
        return lax.pmean(cjnp.tanh(a @ weights[:, :4]).sum(), ("x", "y")) * a

    step = corejax.shard_map(block, mesh=mesh(corejax), in_specs=P(("x", "y")), out_specs=P(("x", "y")))
    run = corejax.jit(lambda x: lax.scan(lambda c, _: (step(c), None), x, None, length=3)[0])
    want = X
    for _ in range(3):
        want = want * np.mean([np.tanh(row @ W[:, :4]).sum() for row in want])
    np.testing.assert_allclose(np.asarray(run(X)), want, rtol=1e-3)


@pytest.mark.parametrize("operands", [(), (X,)])
def test_effects_without_results(operands: tuple[Any, ...]) -> None:
    seen = []

    def block(*xs: Any) -> tuple[()]:
        corejax.debug.callback(lambda: seen.append(1))
        return ()

    tell = corejax.shard_map(block, mesh=mesh(corejax), in_specs=(P("x"),) * len(operands), out_specs=())
    for call in (tell, corejax.jit(tell)):
        assert call(*operands) == ()
        corejax.effects_barrier()
        assert len(seen) == 8
        seen.clear()


def test_the_mesh_of_the_context_and_decorators() -> None:
    with corejax.set_mesh(mesh(corejax)):
        doubled = corejax.shard_map(in_specs=P("x"), out_specs=P("x"))(lambda a: a * 2)
        np.testing.assert_array_equal(np.asarray(doubled(X)), X * 2)
        swapped = corejax.smap(lambda a: lax.psum(a, "y"), in_axes=1, out_axes=None, axis_name="y")
        np.testing.assert_allclose(np.asarray(swapped(X)), X[:, :8] + X[:, 8:], rtol=1e-6)


def test_programs_are_text_that_parses_back() -> None:
    program = corejax.make_jaxpr(mapped(corejax, cjnp, "matmul"))(X, W)
    assert "shard_map[" in str(program) and "psum[" in str(program)
    corejax.ir.check_jaxpr(program)


@pytest.mark.parametrize(
    ("options", "args", "error", "words"),
    [
        (
            {"in_specs": P("x"), "out_specs": P("x")},
            (X[:6],),
            ValueError,
            r"dimension 0 of argument 0.*4 blocks.*6 is no",
        ),
        ({"in_specs": P("z"), "out_specs": P("x")}, (X,), ValueError, "names 'z'"),
        ({"in_specs": P("x", None, "y"), "out_specs": P()}, (X,), ValueError, "3 entries"),
        ({"in_specs": (P("x"), P()), "out_specs": P("x")}, (X,), ValueError, "in_specs is not a prefix"),
        ({"in_specs": P("x"), "out_specs": P()}, (X,), ValueError, r"result 0 may differ along axis 'x'.*psum"),
        ({"in_specs": "x", "out_specs": P()}, (X,), TypeError, "PartitionSpecs"),
        ({"in_specs": P("x"), "out_specs": P("x")}, ("text",), TypeError, "arguments must be pytrees of arrays"),
        ({"in_specs": P("x"), "out_specs": P("x"), "axis_names": {"z"}}, (X,), ValueError, "axis_names has 'z'"),
        ({"in_specs": P("x"), "out_specs": P("x"), "mesh": 3}, (X,), TypeError, "mesh is a Mesh"),
        ({"in_specs": P("x"), "out_specs": P("x"), "mesh": None}, (X,), ValueError, "it needs a mesh"),
    ],
)
def test_what_is_refused(options: dict[str, Any], args: Any, error: type[Exception], words: str) -> None:
    def f(a: Any) -> Any:
        return a * 2

    options = {"mesh": mesh(corejax), **options}
    with pytest.raises(error, match=words):
        corejax.shard_map(f, **options)(*args)
    assert corejax.extend.transforms.axes_in_scope() == ()


def test_arguments_with_none_for_a_spec_are_not_cut_and_may_be_objects() -> None:
    mesh = corejax.make_mesh((4, 2), ("x", "y"))
    thing = object()

    def f(first: Any, x: Any, last: Any) -> Any:
        assert first is thing and last[1]["k"] is thing and x.shape == (2, 16)
        return x + last[0]

    g = corejax.shard_map(f, mesh=mesh, in_specs=(None, P("x"), None), out_specs=P("x"))
    for run in (lambda x: g(thing, x, (W[0, 0], {"k": thing})),) * 2 + (
        corejax.jit(lambda x: g(thing, x, (W[0, 0], {"k": thing}))),
    ):
        np.testing.assert_allclose(run(X), X + W[0, 0])
    whole = corejax.shard_map(lambda x: x * 2, mesh=mesh, in_specs=None, out_specs=P())
    assert whole(3.0) == 6 and corejax.grad(whole)(3.0) == 2
    with pytest.raises(ValueError, match="in_specs is not a prefix"):
        corejax.shard_map(f, mesh=mesh, in_specs=(None,), out_specs=P())(thing, X)


@pytest.mark.parametrize("wrap", [lambda f: f, corejax.checkpoint, corejax.jit])
@pytest.mark.parametrize("check_vma", [True, False])
def test_derivative_rules_of_users_may_use_the_axes(wrap: Any, check_vma: bool) -> None:
    @corejax.custom_vjp
    def scaled(x: Any) -> Any:
        return x * 2

    def forward(x: Any) -> Any:
        return lax.psum(x, "x") * 2, (x,)

    scaled.defvjp(forward, lambda residuals, ct: (lax.psum(cjnp.cos(residuals[0]) * ct, "x"),))

    @corejax.custom_jvp
    def pushed(x: Any) -> Any:
        return x * 2

    pushed.defjvp(lambda primals, tangents: (pushed(primals[0]), lax.psum(tangents[0], "x") * primals[0]))
    mesh, x = corejax.make_mesh((4,), ("x",)), np.arange(4, dtype=np.float32)
    expected = {scaled: np.full(4, np.cos(x).sum()), pushed: np.full(4, x.sum())}
    for f, want in expected.items():
        mapped = corejax.shard_map(wrap(f), mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=check_vma)
        gradient = corejax.grad(lambda x, g=mapped: g(x).sum())
        np.testing.assert_allclose(gradient(x), want, rtol=1e-5)
        np.testing.assert_allclose(corejax.vmap(gradient)(np.stack([x, x])), [want, want], rtol=1e-5)


def test_called_by_itself_it_is_traced_and_compiled_once() -> None:
    traced: list[Any] = []

    def block(a: Any, w: Any) -> Any:
        traced.append(type(a).__name__)
        return lax.psum(cjnp.tanh(a @ w), "x")

    call = corejax.shard_map(block, mesh=mesh(corejax), in_specs=(P("x"), P()), out_specs=P())
    gradient = corejax.grad(lambda x, w: call(x, w).sum(), argnums=(0, 1))
    compiled: list[str] = []
    with corejax.extend.messages.observe.observing(
        lambda event: compiled.append(event.name) if event.kind == "compile" else None
    ):
        for _ in range(3):
            same(call(X, W), sum(np.tanh(X[i : i + 2] @ W) for i in range(0, 8, 2)))
        assert compiled == ["block"]
        for _ in range(3):
            got = gradient(X, W)
        first = len(compiled)
        gradient(X, W), call(X, W)
        assert len(compiled) == first
    t = 1 - np.tanh(X @ W) ** 2
    same(got, (t @ W.T, X.T @ t))
    assert len(traced) == 1
    call(X[:4], W)
    assert len(traced) == 2, "another signature"
    with corejax.config.override(context_mesh=mesh(corejax)):
        call(X, W)
    assert got[1].devices() == set(corejax.devices())


def test_what_it_closes_over_may_be_traced() -> None:
    def scaled(s: Any) -> Any:
        call = corejax.shard_map(lambda a: a * s, mesh=mesh(corejax), in_specs=P("x"), out_specs=P("x"))
        return (call(X) + call(X)).sum()

    np.testing.assert_allclose(corejax.grad(scaled)(2.0), 2 * X.sum(), rtol=1e-4)
    np.testing.assert_allclose(corejax.vmap(scaled)(cjnp.arange(2.0)), [0, 2 * X.sum()], rtol=1e-4)


def test_without_jit_its_body_is_evaluated_piece_by_piece() -> None:
    evaluated: list[str] = []

    def block(a: Any) -> Any:
        return lax.psum(cjnp.sin(a), "x")

    call = corejax.shard_map(block, mesh=mesh(corejax), in_specs=P("x"), out_specs=P())
    pmapped = corejax.pmap(lambda a: a / lax.psum(a, "i"), axis_name="i")
    want, ratios = call(X), pmapped(X)
    with (
        corejax.config.override(disable_jit=True),
        corejax.extend.messages.observe.observing(
            lambda event: evaluated.append(event.name) if event.kind == "compile" else None
        ),
    ):
        out = call(X)
        same(out, want)
        same(pmapped(X), ratios)
        assert out.sharding.is_equivalent_to(want.sharding, 2)
        same(corejax.grad(lambda x: call(x).sum())(X), np.cos(X))
    assert evaluated == ["reduce_sum"], "of the sharded array outside of the body"


def test_callbacks_and_errors_of_calls_by_themselves() -> None:
    seen: list[float] = []

    def block(a: Any) -> Any:
        corejax.debug.callback(lambda v: seen.append(float(v)), a.sum())
        return corejax.pure_callback(lambda v: np.asarray(v) * 2, corejax.ShapeDtypeStruct(a.shape, a.dtype), a)

    call = corejax.shard_map(block, mesh=mesh(corejax), in_specs=P("x", "y"), out_specs=P("x", "y"))
    np.testing.assert_array_equal(call(X), X * 2)
    corejax.effects_barrier()
    np.testing.assert_allclose(sorted(seen), sorted(X.reshape(4, 2, 2, 8).sum((1, 3)).ravel()), rtol=1e-4, atol=1e-5)

    def roots(a: Any) -> Any:
        return cjnp.sqrt(a - 100)

    bad = corejax.shard_map(roots, mesh=mesh(corejax), in_specs=P("x"), out_specs=P("x"))
    with corejax.debug_nans(True), pytest.raises(FloatingPointError, match=r"sqrt, at .*test_shard_map.py.*roots"):
        bad(X)
    with corejax.debug_nans(True), pytest.raises(FloatingPointError, match=r"sqrt, at .*test_shard_map.py.*roots"):
        corejax.jit(bad)(X)

    def failing(a: Any) -> Any:
        raise KeyError("the user's own")

    with pytest.raises(KeyError, match="the user's own"):
        corejax.shard_map(failing, mesh=mesh(corejax), in_specs=P(), out_specs=P())(X)
    assert corejax.extend.transforms.axes_in_scope() == ()
    alone = corejax.device_put(X, corejax.devices()[3])
    with pytest.raises(ValueError, match=r"jit of roots: argument a, float32\[8,16\], is on devices \[3\]"):
        bad(alone)


def test_what_is_the_same_everywhere_is_known() -> None:
    def scanned(a: Any) -> Any:
        return lax.scan(lambda c, r: (lax.pmax(c + r.sum(), "x"), c * r), 0.0, a)

    # function, whether each result is the same along "x"
    cases: list[tuple[Callable[..., Any], list[bool]]] = [
        (scanned, [True, False]),
        (corejax.jit(lambda a: (lax.psum(a, "x"), a, 3.0)), [True, False, True]),
        (lambda a: (lax.psum(1, "x"), lax.axis_index("x"), a[:0] * 0), [True, False, False]),
        (lambda a: (lax.psum(lax.axis_index("x"), ("x", "y")), lax.psum(a, "y")), [True, False]),
        (lambda a: lax.ppermute(a, "x", RING), [False]),
        (lambda a: corejax.checkpoint(lambda b: (lax.pmean(b, "x"), cjnp.sin(b)))(a), [True, False]),
    ]
    for fun, same_along in cases:
        for i, is_same in enumerate(same_along):

            def one(a: Any, fun: Any = fun, i: int = i) -> Any:
                return corejax.tree.leaves(fun(a))[i]

            call = corejax.shard_map(one, mesh=mesh(corejax), in_specs=P("x"), out_specs=P())
            if is_same:
                corejax.make_jaxpr(call)(X)
            else:
                with pytest.raises(ValueError, match="may differ along axis 'x'"):
                    corejax.make_jaxpr(call)(X)


def test_types_of_arguments_say_specs_that_are_left_out() -> None:
    mesh = corejax.make_mesh((4, 2), ("i", "j"), axis_types=(AxisType.Explicit,) * 2)
    with corejax.set_mesh(mesh):
        x = corejax.device_put(X, P("i", "j"))
        f = corejax.shard_map(lambda x: x - lax.psum(x, "i"), out_specs=P("i", "j"))
        g = corejax.smap(lambda x: x - lax.psum(x, "i"), out_axes=0, axis_name="i")
        want = X - np.tile(X.reshape(4, 2, 16).sum(0), (4, 1))
        for h in (f, corejax.jit(f), g, corejax.jit(g)):
            np.testing.assert_allclose(h(x), want, rtol=1e-4, atol=1e-5)
        with pytest.raises(TypeError, match=r"in_specs may be left out only if all axes are of type Explicit.*'k'"):
            corejax.shard_map(lambda x: x, mesh=corejax.make_mesh((8,), ("k",)), out_specs=P("k"))(X)


class _Pair(ValueType):
    """Two arrays of one shape, which are sharded alike."""

    def parts(self) -> tuple[ShapedArray, ...]:
        return (ShapedArray(self.shape, self.dtype),) * 2


def test_values_of_value_types_are_sharded_as_their_parts() -> None:
    x = cjnp.arange(8.0).reshape(4, 2)
    pair = lax.pack(_Pair(x.shape, x.dtype), x, 2 * x)

    def body(pair: Any) -> Any:
        one, two = lax.unpack(pair)
        return lax.pack(pair.aval, two, one + lax.axis_index("x").astype(one.dtype)), (two - one).sum(axis=1)

    for wrap in (lambda f: f, corejax.jit):
        mapped = corejax.shard_map(body, mesh=mesh(corejax), in_specs=P("x"), out_specs=P("x"))
        out, sums = wrap(mapped)(pair)
        one, two = lax.unpack(out)
        np.testing.assert_array_equal(one, 2 * x)
        np.testing.assert_array_equal(two, x + np.arange(4)[:, None])
        np.testing.assert_array_equal(sums, x.sum(axis=1))


def test_axes_of_values_that_their_parts_store() -> None:
    x = cjnp.arange(16.0).reshape(4, 4)
    value = lax.pack(Stacked(x.shape, x.dtype), x, cjnp.stack([x, 2 * x]))
    scaled = lambda v: lax.pack(v.aval, *(part * (1 + lax.axis_index("x")) for part in lax.unpack(v)))
    keys = corejax.random.split(corejax.random.key(0), 4)
    over = {"mesh": mesh(corejax), "in_specs": P(None, "x"), "out_specs": P(None, "x")}
    for wrap in (lambda f: f, corejax.jit):
        one, two = lax.unpack(wrap(corejax.shard_map(scaled, **over))(value))
        np.testing.assert_array_equal(one, x * np.arange(1, 5))
        np.testing.assert_array_equal(two, np.stack([x, 2 * x]) * np.arange(1, 5))
        blocks = wrap(corejax.shard_map(lambda k: k, mesh=mesh(corejax), in_specs=P("x"), out_specs=P("x")))(keys)
        np.testing.assert_array_equal(corejax.random.key_data(blocks), corejax.random.key_data(keys))
    rows = corejax.vmap(symmetric)(cjnp.ones((1, 4, 4)))
    with pytest.raises(NotImplementedError, match=r"Symmetric\[f32\[1,4,4\]\] is split as .* part 0 of it, f32"):
        corejax.jit(corejax.shard_map(dense, mesh=mesh(corejax), in_specs=P(None, "x"), out_specs=P("x")))(rows)


def test_shardings_of_values_are_those_of_their_parts() -> None:
    batch = corejax.vmap(symmetric)(cjnp.arange(36.0).reshape(4, 3, 3))
    sharding = corejax.NamedSharding(mesh(corejax), P("x"))
    for f in (lambda b: lax.with_sharding_constraint(b, sharding), lambda b: corejax.device_put(b, sharding)):
        for wrap in (lambda f: f, corejax.jit):
            out = wrap(f)(batch)
            assert out.aval is batch.aval
            assert out.parts[0].sharding.is_equivalent_to(sharding, 2)
            np.testing.assert_array_equal(out.parts[0], batch.parts[0])
    f = corejax.jit(lambda b: symmetric(2 * dense(b)), in_shardings=sharding, out_shardings=sharding)
    exported = corejax.export.deserialize(corejax.export.export(f)(batch).serialize())
    assert exported.nr_devices == mesh(corejax).size
    out = corejax.jit(exported.call)(corejax.device_put(batch, sharding))
    np.testing.assert_array_equal(out.parts[0], 2 * batch.parts[0])


def test_gradients_of_values_that_all_devices_have() -> None:
    s, x = symmetric(cjnp.arange(9.0).reshape(3, 3)), cjnp.arange(24.0).reshape(8, 3) / 10
    product = lambda s, x: cjnp.sin(x @ dense(s))
    want = corejax.grad(lambda s: product(s, x).sum())(s)
    mapped = corejax.shard_map(product, mesh=mesh(corejax), in_specs=(P(), P("x")), out_specs=P("x"))
    by_pmap = corejax.pmap(lambda s, x: product(s, x), in_axes=(None, 0))
    for f, arg in ((mapped, x), (by_pmap, x.reshape(8, 1, 3))):
        for wrap in (lambda g: g, corejax.jit):
            got = wrap(corejax.grad(lambda s, f=f, arg=arg: f(s, arg).sum()))(s)
            assert got.aval is want.aval
            np.testing.assert_allclose(got.parts[0], want.parts[0], rtol=1e-5)
    total = corejax.shard_map(lambda b: lax.psum(b, "x"), mesh=mesh(corejax), in_specs=P("x"), out_specs=P("x"))
    batch = corejax.vmap(symmetric)(cjnp.ones((4, 2, 2)))
    np.testing.assert_array_equal(total(batch).parts[0], 4 * batch.parts[0])


def test_values_over_an_axis_of_one_device() -> None:
    """Mapped over all blocks at once, since the program is not over the mesh."""
    batch = corejax.vmap(symmetric)(cjnp.arange(9.0).reshape(1, 3, 3))
    one = corejax.make_mesh((1,), ("x",), devices=corejax.devices()[:1])

    def body(s: Any) -> Any:
        doubled = symmetric(2 * dense(s))
        return doubled, lax.psum(doubled, "x"), dense(s).sum()[None]

    mapped = corejax.shard_map(body, mesh=one, in_specs=P("x"), out_specs=(P("x"), P(), P("x")), check_vma=False)
    sliced = corejax.pmap(lambda s: symmetric(2 * dense(s)), devices=corejax.devices()[:1])
    for wrap in (lambda f: f, corejax.jit):
        split, summed, total = wrap(mapped)(batch)
        assert split.aval is summed.aval is batch.aval
        for out in (split, summed, wrap(sliced)(batch)):
            np.testing.assert_array_equal(out.parts[0], 2 * batch.parts[0])
        np.testing.assert_array_equal(total, [dense(batch).sum()])
