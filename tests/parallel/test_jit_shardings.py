"""Programs over several devices: where their arguments and results are, said or left to the compiler."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import grad, jit, lax, vmap
from corejax.ir import parse_jaxpr, same_jaxpr
from corejax.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding
from corejax.sharding import PartitionSpec as P

VALUE = np.arange(32, dtype=np.float32).reshape(8, 4) / 8


@pytest.fixture
def mesh() -> Mesh:
    return corejax.make_mesh((4, 2), ("a", "b"))


@pytest.fixture
def both(mesh: Mesh) -> NamedSharding:
    return NamedSharding(mesh, P("a", "b"))


def test_results_are_where_jax_has_them(mesh: Mesh, both: NamedSharding) -> None:
    jax = pytest.importorskip("jax")
    theirs = jax.sharding.NamedSharding(
        jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b")), jax.P("a", "b")
    )

    def program(np_: Any) -> Any:
        return lambda x, w: (np_.tanh(x @ w), x.sum(0), x.T, x[:6], np_.zeros((3, 5)))

    w = np.ones((4, 4), np.float32)
    ours, other = jit(program(jnp)), jax.jit(program(jax.numpy))
    x, y = corejax.device_put(VALUE, both), jax.device_put(VALUE, theirs)
    for _ in range(3):  # the first call, the dispatcher's first, and one that it repeats
        for a, b in zip(ours(x, w), other(y, w), strict=True):
            assert repr(a.sharding) == repr(b.sharding)
            np.testing.assert_allclose(a, b, rtol=1e-5)
    assert ours._cache_size() == 1


def test_results_have_the_spec_of_an_argument_in_the_same_places(mesh: Mesh) -> None:
    x = corejax.device_put(VALUE, NamedSharding(mesh, P("a", None)))
    for run in (corejax.jit(lambda x: x * 2), lambda x: x * 2, corejax.jit(lambda x: x)):
        assert run(x).sharding == x.sharding
    assert corejax.jit(lambda x: x.sum(1))(x).sharding.spec == P("a")


def test_shardings_are_given(mesh: Mesh, both: NamedSharding) -> None:
    rows = NamedSharding(mesh, P("b"))
    f = jit(
        lambda x, b, n: {"y": x * n, "s": x + b},
        in_shardings=(both, None),
        out_shardings={"y": rows, "s": None},
        static_argnums=2,
    )
    for value in (VALUE, jnp.array(VALUE), corejax.device_put(VALUE, both)):
        out = f(value, np.float32(1), 2)
        assert out["y"].sharding == rows and out["s"].sharding == both
        np.testing.assert_array_equal(out["y"], VALUE * 2)
    everywhere = jit(lambda x, y: (x, y), in_shardings=rows, out_shardings=both)
    assert [x.sharding for x in everywhere(VALUE, VALUE)] == [both, both]
    listed = jit(lambda x, *, y: x + y, in_shardings=[rows])
    assert listed(VALUE, y=VALUE).sharding == rows
    with corejax.set_mesh(mesh):
        named = jit(
            lambda x: lax.with_sharding_constraint(x * 2, P(None, "b")), in_shardings=P("a"), out_shardings=P("b")
        )
        assert named(VALUE).sharding == rows
    shapes = f.eval_shape(VALUE, 1.0, 2)
    assert shapes["y"].sharding == rows and shapes["s"].sharding is None


def test_constraints_in_every_transformation(mesh: Mesh, both: NamedSharding) -> None:
    def f(x: Any) -> Any:
        return (lax.with_sharding_constraint(jnp.sin(x), both) ** 2).sum()

    x = corejax.device_put(VALUE, NamedSharding(mesh, P()))
    expected = np.sin(2 * VALUE)
    for g in (grad(f), jit(grad(f)), grad(jit(f)), jit(grad(corejax.checkpoint(f)))):
        np.testing.assert_allclose(g(x), expected, rtol=1e-5, atol=1e-6)
    text = jit(grad(f)).lower(VALUE).as_text()
    assert text.count("sdy.sharding_constraint") == 2 and text.count("sdy.mesh") == 1
    _, tangent = corejax.jvp(f, (x,), (corejax.device_put(VALUE, NamedSharding(mesh, P())),))
    np.testing.assert_allclose(tangent, (expected * VALUE).sum(), rtol=1e-4)

    def row(x: Any) -> Any:
        return lax.with_sharding_constraint(x * 2, NamedSharding(mesh, P("b")))

    program = str(jit(vmap(row)).lower(VALUE).as_text())
    assert '[{?}, {"b"}]' in program
    np.testing.assert_array_equal(jit(vmap(row, in_axes=1, out_axes=1))(VALUE[:, :2]), VALUE[:, :2] * 2)
    carried, _ = jit(lambda x: lax.scan(lambda c, r: (row(c + r), None), jnp.zeros(4, jnp.float32), x))(x)
    np.testing.assert_allclose(carried, _doubling(VALUE), rtol=1e-5)
    assert carried.sharding.spec == P("b")


def _doubling(rows: Any) -> Any:
    carry = np.zeros(4, np.float32)
    for row in rows:
        carry = (carry + row) * 2
    return carry


def test_programs_with_shardings_are_text(mesh: Mesh, both: NamedSharding) -> None:
    turned = Mesh(
        np.array(corejax.devices())[[3, 1, 0, 2]].reshape(2, 2), ("x", "y"), (AxisType.Auto, AxisType.Explicit)
    )
    odd = both.like(np.arange(8).reshape(2, 1, 4))
    shardings = [both, NamedSharding(turned, P("y")), NamedSharding(mesh.abstract_mesh, P(P.UNCONSTRAINED, ("b", "a")))]
    for sharding in [*shardings, odd, SingleDeviceSharding(corejax.devices()[2])]:
        program = corejax.make_jaxpr(lambda x: lax.sharding_constraint_p.bind(x, sharding=sharding))(VALUE)  # noqa: B023
        parsed = parse_jaxpr(str(program))
        assert same_jaxpr(parsed, program) and parsed.eqns[0].params["sharding"] == sharding
    with pytest.raises(Exception, match=r"no devices \[9\]"):
        parse_jaxpr(str(program).replace("cpu:2", "cpu:9"))


def test_a_program_that_is_waited_for_can_be_traced(mesh: Mesh) -> None:
    """Collectives on CPUs are waited for when a call returns; a traced one is an equation, and nothing to wait for."""
    f = jit(corejax.shard_map(lambda x: lax.psum(x, "a"), mesh=mesh, in_specs=P("a"), out_specs=P()))
    for _ in range(3):
        f(VALUE)
    np.testing.assert_array_equal(np.asarray(grad(lambda x: f(x).sum())(VALUE)), np.ones_like(VALUE))
    assert vmap(f)(np.stack([VALUE, VALUE])).shape == (2, 2, 4)


def test_jit_in_jit_constrains(mesh: Mesh, both: NamedSharding) -> None:
    rows = NamedSharding(mesh, P("b"))
    inner = jit(lambda y: y**2, in_shardings=both, out_shardings=rows)
    assert jit(lambda x: inner(x + 1))(VALUE).sharding == rows
    np.testing.assert_allclose(grad(lambda x: inner(x).sum())(VALUE), 2 * VALUE)
    one = jit(lambda y: y * 2, in_shardings=NamedSharding(mesh, P("b")))
    np.testing.assert_array_equal(vmap(one)(VALUE), VALUE * 2)


def test_ahead_of_time(mesh: Mesh, both: NamedSharding) -> None:
    lowered = jit(lambda x, unused, y: (x @ y, {"n": x.sum()})).lower(
        corejax.ShapeDtypeStruct((8, 4), np.float32, sharding=both), VALUE, np.ones((4, 4), np.float32)
    )
    assert "mhlo.num_partitions = 8" in lowered.as_text() and 'sdy.mesh @mesh = <["a"=4, "b"=2]>' in lowered.as_text()
    compiled = lowered.compile()
    (x, unused, _), kwargs = compiled.input_shardings
    assert x == both and unused is None and kwargs == {}
    assert compiled.out_info[0].sharding == compiled.output_shardings[0]
    assert compiled.output_shardings[0].spec == P("a") and compiled.output_shardings[1]["n"].is_fully_replicated
    for _ in range(3):
        product, _ = compiled(corejax.device_put(VALUE, both), VALUE, np.ones((4, 4), np.float32))
        np.testing.assert_allclose(product, VALUE @ np.ones((4, 4)))
    assert product.sharding == compiled.output_shardings[0] and "all-reduce" in compiled.as_text()
    with pytest.raises(ValueError, match=r"in_shardings has .* committed to"):
        compiled(corejax.device_put(VALUE, NamedSharding(mesh, P("b"))), VALUE, np.ones((4, 4), np.float32))


def test_donated_arguments_give_their_memory(mesh: Mesh, both: NamedSharding) -> None:
    step = jit(lambda x, n: x + n, donate_argnums=0)
    x = corejax.device_put(VALUE, both)
    for n in range(4):
        earlier, x = x, step(x, np.float32(n))
        assert earlier.is_deleted() and not x.is_deleted()
    np.testing.assert_array_equal(x, VALUE + 6)


def test_values_that_are_closed_over(mesh: Mesh, both: NamedSharding) -> None:
    w, host = corejax.device_put(VALUE, both), jnp.array(VALUE)
    f = jit(lambda x: x + w + host + VALUE)
    for _ in range(3):
        y = f(VALUE)
        np.testing.assert_array_equal(y, VALUE * 4)
    assert y.sharding == both


def test_python_is_called_once_for_all_devices(mesh: Mesh, both: NamedSharding, capsys: Any) -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        corejax.debug.print("sum {}", x.sum())
        corejax.io_callback(lambda v: seen.append(v.shape), None, x, ordered=True)
        return corejax.pure_callback(lambda v: seen.append(v.shape) or np.sin(v), x, x)

    np.testing.assert_allclose(jit(f)(corejax.device_put(VALUE, both)), np.sin(VALUE), rtol=1e-6)
    corejax.effects_barrier()
    assert seen == [(8, 4), (8, 4)] and capsys.readouterr().out == f"sum {VALUE.sum()}\n"


def test_each_device_prints_its_parts(mesh: Mesh, both: NamedSharding, capsys: Any) -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        corejax.debug.print("part {}", x[:, 0], partitioned=True)
        corejax.debug.callback(seen.append, x * 2, partitioned=True)
        return x + 1

    x = corejax.device_put(VALUE, both)
    np.testing.assert_array_equal(jit(f)(x), VALUE + 1)
    corejax.effects_barrier()
    assert sorted(np.asarray(part).tolist() for part in seen) == sorted(
        (np.asarray(shard.data) * 2).tolist() for shard in x.addressable_shards
    )
    assert capsys.readouterr().out.count("part [") == len(x.addressable_shards)
    seen.clear()
    corejax.vmap(jit(lambda row: corejax.debug.callback(seen.append, row, partitioned=True)))(VALUE)
    jit(f)(VALUE)  # on one device
    corejax.effects_barrier()
    assert [np.shape(part) for part in seen] == [(4,)] * 8 + [(8, 4)]


def test_where_a_value_is_inside_of_a_program(both: NamedSharding) -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        y = x @ x.T
        corejax.debug.inspect_array_sharding(y, callback=seen.append)
        return y

    f(corejax.device_put(VALUE, both))
    jit(f)(corejax.device_put(VALUE, both))
    assert [s.spec for s in seen] == [P("a"), P("a")]


def test_meshes_in_another_order_and_of_one_device(mesh: Mesh) -> None:
    turned = Mesh(np.array(corejax.devices()).reshape(4, 2).T, ("x", "y"))

    def f(v: Any) -> Any:
        v = lax.with_sharding_constraint(v * 2, NamedSharding(mesh, P("a")))
        return lax.with_sharding_constraint(v + 1, NamedSharding(turned, P("x", "y")))

    np.testing.assert_array_equal(jit(f)(VALUE), VALUE * 2 + 1)
    assert "device_ids=[0, 2, 4, 6, 1, 3, 5, 7]" in jit(f).lower(VALUE).as_text()
    one = corejax.make_mesh((1,), ("z",), devices=corejax.devices()[3:])
    y = jit(lambda v: lax.with_sharding_constraint(v, NamedSharding(one, P("z"))) + 1)(VALUE)
    assert y.devices() == {corejax.devices()[3]}
    np.testing.assert_array_equal(y * 2, (VALUE + 1) * 2)


def test_the_cache_on_disk_tells_devices_and_shardings(mesh: Mesh, tmp_path: Any) -> None:
    settings = {"compilation_cache_dir": str(tmp_path), "persistent_cache_min_compile_time_secs": 0.0}
    with corejax.config.override(**settings):

        def entries() -> int:
            return len(list(tmp_path.glob("*.corejax-program")))

        for spec, count in ((P("a"), 1), (P("b"), 2), (P("a"), 2)):
            y = jit(lambda x: x * 3 + 1, in_shardings=NamedSharding(mesh, spec))(VALUE)
            np.testing.assert_array_equal(y, VALUE * 3 + 1)
            assert y.sharding.spec == spec and entries() == count
        turned = NamedSharding(Mesh(np.array(corejax.devices())[::-1].reshape(4, 2), ("a", "b")), P("a"))
        y = jit(lambda x: x * 3 + 1, in_shardings=turned)(VALUE)
        np.testing.assert_array_equal(y, VALUE * 3 + 1)
        assert y.sharding == turned and entries() == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda s, o: jit(lambda x: x, in_shardings=s)(np.ones((6, 4))),
            r"jit of <lambda>: in_shardings: .*into 4 parts",
        ),
        (lambda s, o: jit(lambda x: x[0], out_shardings=s)(VALUE), r"out_shardings: .*at least 2 dimensions"),
        (lambda s, o: jit(lambda x: x, in_shardings=(s, s))(VALUE), r"in_shardings: the shardings are not a prefix"),
        (lambda s, o: jit(lambda x: x, out_shardings=(s, s))(VALUE), r"out_shardings: the shardings are not a prefix"),
        (lambda s, o: jit(lambda x: x, in_shardings="a"), r"in_shardings: expected one of .*got 'a'"),
        (
            lambda s, o: jit(lambda x: x, in_shardings=s, out_shardings=o)(VALUE),
            r"over devices \[0, 1, 2, 3\], but the program",
        ),
        (
            lambda s, o: jit(lambda x: lax.with_sharding_constraint(x, o), in_shardings=s)(VALUE),
            r"all meshes and arguments",
        ),
        (lambda s, o: jit(lambda x: x, in_shardings=s, device=corejax.devices()[0]), r"give in_shardings or a device"),
        (
            lambda s, o: jit(lambda x: x, device=corejax.devices()[0])(corejax.device_put(VALUE, s)),
            r"the program is for cpu:0",
        ),
        (
            lambda s, o: jit(lambda x: x, in_shardings=s)(corejax.device_put(VALUE, NamedSharding(s.mesh, P("b")))),
            r"committed to",
        ),
        (lambda s, o: jit(lambda x: x, in_shardings=P("a"))(VALUE), r"in_shardings: .*no mesh is set"),
        (lambda s, o: lax.with_sharding_constraint(VALUE[:6], s), r"with_sharding_constraint: .*into 4 parts"),
        (lambda s, o: lax.with_sharding_constraint(VALUE[0], s), r"with_sharding_constraint: .*at least 2 dimensions"),
        (lambda s, o: lax.with_sharding_constraint(VALUE, "a"), r"shardings: expected one of .*got 'a'"),
        (lambda s, o: lax.with_sharding_constraint({"x": VALUE}, {"y": s}), r"not a prefix"),
        (lambda s, o: lax.with_sharding_constraint("x", s), r"with_sharding_constraint"),
    ],
)
def test_shardings_that_do_not_fit(both: NamedSharding, call: Any, message: str) -> None:
    other = NamedSharding(corejax.make_mesh((4,), ("z",)), P("z"))
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        call(both, other)
    np.testing.assert_array_equal(jit(lambda x: x + 1)(VALUE), VALUE + 1)


def test_an_argument_elsewhere_is_named() -> None:
    mesh, half = corejax.make_mesh((8,), ("x",)), corejax.make_mesh((4,), ("x",))
    a, b = (corejax.device_put(np.ones((8, 2)), NamedSharding(m, P("x"))) for m in (mesh, half))
    with pytest.raises(
        ValueError, match=r"jit of add: argument tree\['b'\], float64\[8,2\], is on devices \[0, 1, 2, 3\]"
    ):
        corejax.jit(add)({"a": a, "b": b})


def add(tree: Any) -> Any:
    return tree["a"] + tree["b"]


def test_a_mesh_without_devices_and_nobody_who_has_them() -> None:
    over = corejax.sharding.AbstractMesh((8,), ("x",))
    f = corejax.shard_map(lambda x: corejax.lax.psum(x, "x"), mesh=over, in_specs=P("x"), out_specs=P())
    x = np.arange(8.0)
    for call in (f, corejax.jit(f), lambda x: corejax.jit(corejax.grad(lambda x: f(x)[0]))(x)):
        with pytest.raises(ValueError, match=r"the program is for an abstract mesh of 8 devices.*set_mesh"):
            call(x)
        with corejax.set_mesh(corejax.make_mesh((2, 4), ("a", "b"))):
            call(x)
    with corejax.set_mesh(corejax.make_mesh((8,), ("z",))):
        np.testing.assert_array_equal(f(x), [28.0])


def test_derivatives_of_the_least_in_windows_that_are_split() -> None:
    """XLA's partitioner alone gives wrong numbers."""
    mesh = corejax.make_mesh((3,), ("i",), devices=corejax.devices()[:3])
    x, t = np.random.default_rng(0).standard_normal((2, 2, 6)).astype(np.float32)
    windows = {"window_dimensions": (2, 3), "window_strides": (1, 2), "padding": ((0, 0), (1, -1))}
    least = lambda x: lax.reduce_window(x, np.inf, lax.min, **windows)
    derivative = corejax.jit(lambda t, x: corejax.jvp(least, (x,), (t,))[1])
    split = [corejax.device_put(v, NamedSharding(mesh, p)) for v, p in zip((t, x), (P(None, "i"), P()), strict=True)]
    np.testing.assert_array_equal(np.asarray(derivative(*split)), np.asarray(derivative(t, x)))


@pytest.mark.sampled
@pytest.mark.parametrize("split", [P("a"), P(None, ("a", "b")), P("b", "a")], ids=str)
@pytest.mark.parametrize(
    "reduce",
    [
        lambda x: lax.reduce_xor(x > 0, (0,)),
        lambda x: [f(x.astype(np.int32), (0,)) for f in (lax.reduce_xor, lax.reduce_or, lax.reduce_and)],
        lambda x: [
            f((x % 4).astype("uint2"), (0, 1)).astype(int) for f in (lax.reduce_xor, lax.reduce_max, lax.reduce_sum)
        ],
        lambda x: lax.reduce_max(x + 1j * x, (0,)),
        lambda x: lax.reduce(x, 0, lambda x, y: x + y + x * y, (0,)),
        lambda x: lax.reduce(x.astype("int4"), np.zeros((), "int4"), lambda x, y: abs(x) | abs(y), (1,)).astype(int),
        lambda x: lax.reduce(x, 0, lambda x, y: lax.add(y, x), (0, 1)),
        vmap(lambda x: lax.reduce(x, -8, lambda x, y: lax.max(x, y), (0,))),
        lambda x: lax.reduce_xor(x[:0].astype(np.int8), (0,)),
    ],
    ids=["truth_values", "bits", "narrow", "complex", "own", "own_narrow", "sum", "greatest", "empty"],
)
def test_reductions_of_axes_that_are_split(mesh: Mesh, reduce: Any, split: P) -> None:
    """XLA has no all-reduce for most of these, and its partitioner refused them."""
    x = np.random.default_rng(0).integers(-3, 4, (8, 8)).astype(np.float32)
    given = corejax.device_put(x, NamedSharding(mesh, split))
    for ours, wanted in zip(corejax.tree.leaves(jit(reduce)(given)), corejax.tree.leaves(reduce(x)), strict=True):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(wanted))


def test_of_a_reduction_only_what_devices_have_got_is_gathered(mesh: Mesh) -> None:
    x = corejax.device_put(np.ones((4096, 2), np.int32), NamedSharding(mesh, P("a")))
    text = jit(lambda x: lax.reduce_xor(x, (0,))).lower(x).compile().as_text()
    assert "s32[4,2]" in text and "s32[4096,2]" not in text


def test_shardings_of_results_among_which_are_tangents_of_integers(both: NamedSharding) -> None:
    slopes = jit(
        grad(lambda x, n: jnp.sum(x * n), argnums=(0, 1), allow_int=True), in_shardings=both, out_shardings=both
    )
    by_x, by_n = slopes(VALUE, np.ones((8, 4), np.int32))
    assert by_x.sharding == both
    assert by_n.dtype == corejax.float0
