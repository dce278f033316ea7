"""Types that say how arrays are split, over axes of type Explicit: beside jax's types, through transformations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as cjnp
from corejax import NamedSharding, P, lax, typeof
from corejax.errors import ShardingTypeError
from corejax.extend import Primitive, ShapedArray, vmap_rules, xla_translations
from corejax.ir import parse_jaxpr
from corejax.ir.equality import same_jaxpr
from corejax.sharding import AxisType, Mesh, reshard, split_axes, split_rules

rng = np.random.default_rng(0)
A = rng.normal(size=(8, 16)).astype(np.float32)
B = rng.normal(size=(16, 8)).astype(np.float32)
T = rng.normal(size=(4, 8, 16)).astype(np.float32)


@pytest.fixture(scope="module")
def mesh() -> Mesh:
    return corejax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


@pytest.fixture
def put(mesh: Mesh) -> Any:
    return lambda value, *axes: corejax.device_put(value, NamedSharding(mesh, P(*axes)))


def shown(x: Any) -> str:
    return typeof(x).str_short()


def _rows(m: Any, jnp: Any) -> dict[str, Any]:
    """Functions of an array whose rows are split; jax takes them all."""
    lax = m.lax

    def steps(x: Any) -> Any:
        return lax.scan(lambda c, _: (jnp.tanh(c), c.sum(1)), x, None, length=3)

    def told(x: Any) -> Any:
        def to(*axes: Any) -> Any:
            return {"out_sharding": m.NamedSharding(m.typeof(x).sharding.mesh, m.P(*axes))}

        rows = jnp.array([1, 0, 3, 2])
        return [
            x.reshape(4, 32, **to("y", "x")), x.ravel(**to("x")), x.flatten(**to("y")), x.repeat(2, 0, **to(None, "y")),
            x.at[rows].get(**to(None, "y")), x.at[rows, 0].get(mode="clip", **to("y")),
            x.at[rows].set(1.0, **to("x")), x.at[rows].add(1.0, **to(None, "x")), x.at[rows].max(0, **to("x", "y")),
            x.at[rows].multiply(2, **to("y")), x.at[rows].divide(2, **to("x")), x.at[rows].power(2, **to("x")),
        ]  # fmt: skip

    return {
        "as told": told,
        "elementwise": lambda x: [jnp.sin(x), x + 1, x > 0, x.astype(jnp.int32), jnp.where(x > 0, x, 0)],
        "sums": lambda x: [x.sum(0), x.sum(1), x.mean(), x.max(1), x.var(1), jnp.square(x).sum(-1, keepdims=True)],
        "places": lambda x: [jnp.argmax(x, 1), lax.top_k(x, 2), m.nn.one_hot(jnp.argmax(x, 1), 4)],
        "shapes": lambda x: [x.T, x[None], x[:, None, :], jnp.squeeze(x[:, None]), jnp.broadcast_to(x, (3, 8, 16))],
        "reshapes": lambda x: [x.reshape(8, 4, 4), x.reshape(2, 4, 16), x.reshape(2, 4, 16).reshape(8, 16)],
        "parts": lambda x: [x[:, :8], x[:, 3], x[:, ::-1], lax.dynamic_slice(x, (0, 2), (8, 4)), jnp.split(x, 2, 1)],
        "written": lambda x: [lax.dynamic_update_slice(x, x[:, :4], (0, 2)), x.at[:, 3].add(1), x.at[:, :2].set(0)],
        "joined": lambda x: [jnp.concatenate([x, x], 1), jnp.stack([x, x]), jnp.pad(x, ((0, 0), (1, 1)))],
        "rows by index": lambda x: [x[:, jnp.array([1, 2])], jnp.take_along_axis(x, jnp.zeros((8, 1), jnp.int32), 1)],
        "along rows": lambda x: [jnp.sort(x, 1), jnp.cumsum(x, 1), jnp.median(x, axis=1), jnp.fft.fft(x)],
        "like it": lambda x: [jnp.zeros_like(x), jnp.full_like(x, 2.0), lax.full_like(x, 3)],
        "functions": lambda x: [m.nn.softmax(x), jnp.linalg.norm(x, axis=1), m.scipy.special.logsumexp(x, axis=1)],
        "vmap": lambda x: [m.vmap(lambda r: r / r.sum())(x), m.vmap(m.jit(lambda r: jnp.tanh(r) * r.max()))(x)],
        "gradients": lambda x: [m.grad(lambda x: (jnp.sin(x) ** 2).sum())(x), m.grad(lambda x: x.sum(0)[0])(x)],
        "jvp": lambda x: [m.jvp(m.grad(lambda x: (jnp.sin(x) ** 2).sum()), (x,), (x,)), m.linearize(jnp.sin, x)[1](x)],
        "loops": lambda x: [steps(x), lax.fori_loop(0, 3, lambda i, c: c * 2, x)],
        "while": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, x)),
        "gradient of a loop": lambda x: m.grad(lambda x: steps(x)[1].sum())(x),
        "branches": lambda x: lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: x + 1, x),
        "checkpoint": lambda x: m.grad(lambda x: m.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x).sum())(x),
    }


def _products(m: Any, jnp: Any) -> dict[str, Any]:
    """Functions of two matrices, split in ways that jax takes; and how."""

    def both(a: Any, b: Any) -> Any:
        return m.grad(lambda a, b: (a @ b).sum(), argnums=(0, 1))(a, b)

    return {
        "rows": (lambda a, b: [a @ b, both(a, b)], ("x", None), (None, None)),
        "rows and columns": (lambda a, b: [a @ b, both(a, b)], ("x", None), (None, "y")),
        "columns": (lambda a, b: [a @ b, both(a, b)], (None, None), (None, "y")),
        "sums": (lambda a, b: [a + b.T, a * b.sum(1)], ("x", "y"), ("y", "x")),
    }


@pytest.fixture(scope="module")
def jaxs() -> Iterator[Any]:
    jax = pytest.importorskip("jax")
    explicit = (jax.sharding.AxisType.Explicit,) * 2
    with jax.set_mesh(jax.make_mesh((2, 4), ("x", "y"), axis_types=explicit)):
        yield jax


def _compare(f: Any, theirs: Any, args: list[Any], jax: Any) -> None:
    given = [jax.device_put(x, jax.sharding.PartitionSpec(*s)) for x, s in args]
    expected = jax.tree.leaves(jax.jit(theirs)(*given))
    mesh = corejax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    xs = [corejax.device_put(x, NamedSharding(mesh, P(*s))) for x, s in args]
    for run in (corejax.jit(f), f):
        found = corejax.tree.leaves(run(*xs))
        assert [shown(x) for x in found] == [jax.typeof(x).str_short(short_dtypes=True) for x in expected]
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)
            assert NamedSharding(mesh, P(*y.sharding.spec)).is_equivalent_to(x.sharding, x.ndim), shown(x)


@pytest.mark.parametrize("name", _rows(corejax, cjnp))
def test_types_and_places_are_jaxs(name: str, jaxs: Any) -> None:
    """The same types, and arrays are where their types say, compiled and operation by operation."""
    _compare(_rows(corejax, cjnp)[name], _rows(jaxs, jaxs.numpy)[name], [(A, ("x", None))], jaxs)


@pytest.mark.parametrize("name", _products(corejax, cjnp))
def test_products_are_jaxs(name: str, jaxs: Any) -> None:
    f, *axes = _products(corejax, cjnp)[name]
    theirs = _products(jaxs, jaxs.numpy)[name][0]
    _compare(f, theirs, list(zip((A, B), axes, strict=True)), jaxs)


def test_what_jax_leaves_open_is_decided(put: Any) -> None:
    """Contracted axes are summed; where both operands name an axis the left one keeps it."""
    assert shown(put(A, "x", "y") @ put(B, "y", None)) == "f32[8@x,8]"
    assert shown(put(A, "x", None) @ put(B, None, "x")) == "f32[8@x,8]"
    assert shown(put(A, "x", None) + put(A, None, "x")) == "f32[8@x,16]"
    assert shown(corejax.jit(lambda x: x[:, None] * x[None, :])(put(A[:, 0], "x"))) == "f32[8@x,8]"
    assert shown(put(A, ("x", "y"), None).reshape(-1)) == "f32[128@(x,y)]"
    np.testing.assert_allclose(put(A, "x", "y") @ put(B, "y", None), A @ B, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "axes", "new", "expected"),
    [
        ((1, 8), (None, "x"), (8,), "f32[8@x]"),
        ((8,), ("x",), (1, 8, 1), "f32[1,8@x,1]"),
        ((8, 4), ("x", "y"), (32,), "f32[32]"),
        ((8, 4), ("x", None), (32,), "f32[32@x]"),
        ((8, 4), (("x", "y"), None), (2, 16), "f32[2@x,16@y]"),
        ((32, 2), ("y", None), (4, 8, 2), "f32[4@y,8,2]"),
        ((0, 8), ("x", "y"), (8, 0, 3), "f32[8,0,3]"),
        ((2, 1), ("x", None), (2,), "f32[2@x]"),
        ((1,), (None,), (), "f32[]"),
    ],
)
def test_reshapes(shape: Any, axes: Any, new: Any, expected: str, put: Any) -> None:
    value = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    out = put(value, *axes).reshape(new)
    assert shown(out) == expected
    np.testing.assert_array_equal(out, value.reshape(new))


def test_conflicts_are_told(put: Any) -> None:
    x, y = put(A, "x", None), put(A, "y", None)
    message = r"primitive 'add' at .*test_explicit_axes.py.*f32\[8@x,16\], f32\[8@y,16\].*reshard"
    for f in (lambda: x + y, lambda: corejax.jit(cjnp.add)(x, y), lambda: corejax.grad(lambda x: (x + y).sum())(x)):
        with pytest.raises(ShardingTypeError, match=message):
            f()
    other = corejax.make_mesh((8,), ("z",), axis_types=(AxisType.Explicit,))
    with pytest.raises(ShardingTypeError, match="over different meshes"):
        corejax.jit(cjnp.add)(x, corejax.device_put(A, NamedSharding(other, P("z"))))
    assert shown(x + reshard(y, x.sharding)) == "f32[8@x,16]"


def test_gradients_lie_as_parameters(put: Any, mesh: Mesh) -> None:
    """Data, tensor and fully sharded parameters: a gradient has the type of what it is of."""

    def loss(params: Any, x: Any) -> Any:
        w1, w2 = params
        return cjnp.mean((cjnp.tanh(x @ w1) @ w2) ** 2)

    w1, w2 = B, np.ascontiguousarray(B.T)
    expected = corejax.value_and_grad(loss)((w1, w2), A)
    for first, second in [((None, "y"), ("y", None)), ((None, None), (None, None)), (("x", None), (None, "x"))]:
        params = put(w1, *first), put(w2, *second)
        for run in (corejax.value_and_grad(loss), corejax.jit(corejax.value_and_grad(loss))):
            value, grads = run(params, put(A, "x", None))
            assert [shown(g) for g in grads] == [shown(w) for w in params]
            assert [g.sharding for g in grads] == [NamedSharding(mesh, typeof(w).sharding.spec) for w in params]
            np.testing.assert_allclose(value, expected[0], rtol=1e-5)
            for g, e in zip(grads, expected[1], strict=True):
                np.testing.assert_allclose(g, e, rtol=1e-3, atol=1e-5)


def test_types_of_blocks_and_of_what_shard_map_gives(put: Any, mesh: Mesh) -> None:
    seen = []

    def block(x: Any) -> Any:
        seen.append(typeof(x).sharding)
        return lax.psum(x * 2, "y")

    f = corejax.shard_map(block, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x"))
    assert shown(f(put(A, "x", "y"))) == "f32[8@x,4]"
    assert [s.spec for s in seen] == [P(None, None)] and seen[0].mesh.are_all_axes_manual
    gradient = corejax.jit(corejax.grad(lambda x: (f(x) ** 2).sum()))(put(A, "x", "y"))
    sums = 2 * A.reshape(8, 4, 4).sum(1)
    assert shown(gradient) == "f32[8@x,16@y]"
    np.testing.assert_allclose(gradient, 4 * np.tile(sums, (1, 4)), rtol=1e-5)
    partly = corejax.shard_map(lambda x: x * 2, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    np.testing.assert_array_equal(corejax.jit(partly)(put(A, "x", "y")), 2 * A)


def test_shardings_of_jit_are_in_types(mesh: Mesh) -> None:
    seen = []

    @corejax.jit(in_shardings=NamedSharding(mesh, P("x")), out_shardings=NamedSharding(mesh, P("x", "y")))
    def f(x: Any) -> Any:
        seen.append(shown(x))
        return x + 1

    assert shown(f(A)) == "f32[8@x,16@y]" and seen == ["f32[8@x,16]"]
    assert shown(f(corejax.device_put(A, NamedSharding(mesh, P("x"))))) == "f32[8@x,16@y]" and len(seen) == 1
    like = corejax.ShapeDtypeStruct((8, 16), np.float32, sharding=NamedSharding(mesh, P("x", "y")))
    assert corejax.eval_shape(lambda x: x.T, like).sharding.spec == P("y", "x")
    compiled = corejax.jit(lambda x: x.sum(0)).lower(like).compile()
    assert shown(compiled(corejax.device_put(A, NamedSharding(mesh, P("x", "y"))))) == "f32[16@y]"


def test_axes_of_other_types_are_not_in_types(mesh: Mesh) -> None:
    mixed = mesh.update_axis_types({"y": AxisType.Auto})
    assert shown(corejax.device_put(A, NamedSharding(mixed, P("x", "y")))) == "f32[8@x,16]"
    auto = mixed.update_axis_types({"x": AxisType.Auto})
    x = corejax.device_put(A, NamedSharding(mesh, P("x", "y")))
    moved = corejax.device_put(x, NamedSharding(auto, P("x", "y")))
    assert shown(moved) == "f32[8,16]" and typeof(moved).sharding is None
    assert shown(corejax.device_put(moved, x.sharding)) == "f32[8@x,16@y]"
    assert typeof(corejax.device_put(x, corejax.devices()[0])).sharding is None
    assert typeof(cjnp.array(np.asarray(x))).sharding is None


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_types_that_do_not_say_it_are_of_the_mesh_of_the_context(kind: AxisType) -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(typeof(x).sharding)
        return cjnp.sin(x)

    corejax.jit(f)(A)
    with corejax.set_mesh(corejax.make_mesh((2,), ("x",), axis_types=(kind,))) as mesh:
        corejax.jit(f)(A)
        assert typeof(A[0]).sharding == NamedSharding(mesh.abstract_mesh, P(None))
    assert seen == [None, NamedSharding(mesh.abstract_mesh, P(None, None))]
    assert typeof(A).explicit_sharding is None


@pytest.mark.parametrize(
    ("shape", "spec", "new", "expected"),
    [
        ((2, 4, 3), P("x", "y"), (8, 3), P(("x", "y"), None)),
        ((8, 3), P(("x", "y")), (2, 4, 3), P("x", "y", None)),
        ((8,), P(("x", "y")), (4, 2), P(None, None)),
        ((16,), P(("x", "y")), (8, 2), P(("x", "y"), None)),
        ((2, 2, 4), P("x", None, "y"), (16,), P(None)),
        ((4, 4), P("x", "y"), (16,), P(None)),
        ((4, 8), P("y", "x"), (2, 2, 8), P(None, None, "x")),
    ],
)
def test_reshape_keeps_what_each_device_has(put: Any, shape: Any, spec: Any, new: Any, expected: Any) -> None:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    x = put(values, *spec)
    y = corejax.jit(lambda x: x.reshape(new))(x)
    assert typeof(y).sharding.spec == expected
    np.testing.assert_array_equal(y, values.reshape(new))
    g = corejax.jit(corejax.grad(lambda x: (x.reshape(new) ** 2).sum()))(x)
    assert typeof(g).sharding == typeof(x).sharding


def test_programs_are_text(put: Any, mesh: Mesh) -> None:
    program = corejax.make_jaxpr(corejax.jit(lambda x: (cjnp.sin(x).T, x.sum(1))))(put(A, "x", "y"))
    text = str(program)
    assert "a:f32[8@x,16@y]" in text and "f32[16@y,8@x] = transpose" in text
    with corejax.set_mesh(mesh):
        assert same_jaxpr(parse_jaxpr(text), program)
    with pytest.raises(Exception, match="names axes of type Explicit of the mesh of the context, which is None"):
        parse_jaxpr(text)


def test_primitive_of_a_third_party(put: Any) -> None:
    """Its vmap rule tells which dimensions are a batch; where it tells of none, the result is whole."""
    rows = Primitive(
        "test.explicit_rows",
        impl=lambda x: x / x.sum(-1, keepdims=True),
        abstract_eval=lambda x: ShapedArray(x.shape, x.dtype),
    )
    vmap_rules.register(rows, lambda size, vals, dims: (rows.bind(cjnp.moveaxis(vals[0], dims[0], 0)), 0))

    def translate(ctx: Any, avals: Any, vals: Any) -> Any:
        return ctx.inline(corejax.make_jaxpr(lambda x: x / x.sum(-1, keepdims=True))(*avals), vals)[0]

    xla_translations.register(rows, translate)
    for run in (rows.bind, corejax.jit(rows.bind)):
        out = run(put(A, "x", "y"))
        assert shown(out) == "f32[8@x,16]"
        np.testing.assert_allclose(out, A / A.sum(-1, keepdims=True), rtol=1e-4)


@pytest.mark.parametrize("axes", [("x", "y"), (None, "y")])
def test_eager_results_stay_on_the_devices(axes: Any) -> None:
    """What NumPy or LAPACK does at once of other arrays is not done on the host, whatever types of axes are."""
    x = corejax.device_put(A, NamedSharding(corejax.make_mesh((2, 4), ("x", "y")), P(*axes)))
    rows, columns = cjnp.array([1, 2]), cjnp.zeros((8, 1), cjnp.int32)
    found = [
        (x[rows], A[[1, 2]]),
        (x[:, rows], A[:, [1, 2]]),
        (x[np.array([0, 3])], A[[0, 3]]),
        (x[rows, rows], A[[1, 2], [1, 2]]),
        (cjnp.take(x, rows, 0), A[[1, 2]]),
        (cjnp.take_along_axis(x, columns, 1), A[:, :1]),
        (cjnp.convolve(x[0], x[1]), np.convolve(A[0], A[1])),
        (cjnp.searchsorted(cjnp.arange(3.0), x), np.searchsorted(np.arange(3.0), A)),
    ]
    for value, expected in found:
        assert len(value.devices()) == 8
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-6)


def test_split_rule_of_a_third_party(put: Any) -> None:
    """A rule says what a vmap rule does not; one that says too little is told."""
    turned = Primitive(
        "test.explicit_turned",
        impl=lambda x: np.ascontiguousarray(x[::-1].T),
        abstract_eval=lambda x: ShapedArray(x.shape[::-1], x.dtype),
    )
    xla_translations.register(
        turned, lambda ctx, avals, vals: ctx.inline(corejax.make_jaxpr(lambda x: x[::-1].T)(*avals), vals)[0]
    )
    assert shown(turned.bind(put(A, "x", "y"))) == "f32[16,8]"
    split_rules.register(turned, lambda x: split_axes(x)[::-1])
    corejax.clear_caches()  # it was compiled without
    for run in (turned.bind, corejax.jit(turned.bind)):
        out = run(put(A, "x", "y"))
        assert shown(out) == "f32[16@y,8@x]"
        np.testing.assert_array_equal(out, A[::-1].T)
    split_rules.register(turned, lambda x: split_axes(x)[:1], override=True)
    corejax.clear_caches()
    with pytest.raises(TypeError, match=r"split rule of primitive 'test.explicit_turned' gives .*f32\[16,8\]"):
        turned.bind(put(A, "x", "y"))
