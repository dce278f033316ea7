"""Collectives over axes that `vmap` names: values and derivatives beside jax's, where it has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as cjnp
from corejax import P, lax
from corejax.extend import ShapedArray, primitives
from corejax.extend.transforms import named_axes
from tests.recorded import Recorded

RECORDED = Recorded("collectives")
X = np.random.default_rng(0).standard_normal((4, 8, 4)).astype(np.float32)
GROUPS = [[0, 2], [3, 1]]
FULL = [(i, (i + 1) % 4) for i in range(4)]

CASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "psum": lambda m, jnp, a: m.lax.psum(a, "i"),
    "of a number": lambda m, jnp, a: m.lax.psum(1, "i") * a,
    "of what is the same": lambda m, jnp, a: m.lax.psum(jnp.ones(3), "i") + a.sum(),
    "of booleans": lambda m, jnp, a: m.lax.psum(a > 0, "i"),
    "pmean of a pytree": lambda m, jnp, a: m.lax.pmean({"a": a, "b": a[0]}, "i"),
    "pmax": lambda m, jnp, a: m.lax.pmax(m.lax.stop_gradient(jnp.sin(a)), "i") * a,
    "all_gather": lambda m, jnp, a: m.lax.all_gather(a, "i", axis=1),
    "all_gather, tiled": lambda m, jnp, a: m.lax.all_gather(a, "i", axis=-1, tiled=True),
    "psum_scatter": lambda m, jnp, a: m.lax.psum_scatter(a, "i", scatter_dimension=1),
    "psum_scatter, tiled": lambda m, jnp, a: m.lax.psum_scatter(a, "i", scatter_dimension=0, tiled=True),
    "all_to_all": lambda m, jnp, a: m.lax.all_to_all(a, "i", 1, 0),
    "all_to_all, tiled": lambda m, jnp, a: m.lax.all_to_all(a, "i", 0, 1, tiled=True),
    "ppermute": lambda m, jnp, a: m.lax.ppermute(a, "i", FULL),
    "pshuffle": lambda m, jnp, a: m.lax.pshuffle(a, "i", [2, 0, 1, 3]),
    "pswapaxes": lambda m, jnp, a: m.lax.pswapaxes(a, "i", 1),
    "axis_index": lambda m, jnp, a: m.lax.axis_index("i") * a,
    "axis_size": lambda m, jnp, a: a * m.lax.axis_size("i"),
    "in scan": lambda m, jnp, a: m.lax.scan(
        lambda c, y: (c + m.lax.psum(y * c, "i"), m.lax.psum(c, "i") * y), jnp.ones(4), a
    ),
    "in scan, of what is the same": lambda m, jnp, a: m.lax.scan(
        lambda c, _: (c * 0.1 + m.lax.psum(c, "i"), m.lax.axis_index("i") * c), a[0], None, length=3
    ),
    "in cond": lambda m, jnp, a: m.lax.cond(
        jnp.sum(m.lax.psum(a, "i")) > 0, lambda b: m.lax.psum(b, "i"), lambda b: b * 2 + m.lax.axis_index("i"), a
    ),
    "in checkpoint": lambda m, jnp, a: m.checkpoint(lambda b: m.lax.psum(jnp.sin(b), "i"))(a),
    "in jit in jit": lambda m, jnp, a: m.jit(lambda b: m.jit(lambda c: m.lax.psum(c * b, "i"))(b))(a),
    "two axes": lambda m, jnp, a: m.vmap(
        lambda b: m.lax.psum(b, ("i", "j")) + m.lax.axis_index(("i", "j")) + m.lax.psum(b, "j"), axis_name="j"
    )(a),
    "inner axis of the same name": lambda m, jnp, a: m.vmap(lambda b: m.lax.psum(b, "i"), axis_name="i")(a),
    "inner axis without a name": lambda m, jnp, a: m.vmap(lambda b: m.lax.psum(a[0, 0], "i") * b)(a),
    "grad inside": lambda m, jnp, a: m.grad(lambda b: jnp.sum(m.lax.psum(jnp.sin(b), "i") ** 2))(a),
    "linearize inside": lambda m, jnp, a: m.linearize(lambda b: m.lax.psum(b * b, "i"), a)[1](a),
    "in map": lambda m, jnp, a: m.lax.map(lambda r: m.lax.psum(r, "i"), a),
}


def same(got: Any, wanted: Any) -> None:
    for a, b in zip(corejax.tree.leaves(got), corejax.tree.leaves(wanted), strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-3, atol=2e-4)


@pytest.mark.numbers
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_jaxs(name: str) -> None:
    """Values, the gradient of a number of them, and a batch: one program."""
    jax = pytest.importorskip("jax")
    case = CASES[name]

    def of(m: Any, jnp: Any) -> Any:
        mapped = m.vmap(lambda a: case(m, jnp, a), axis_name="i")

        def loss(x: Any) -> Any:
            outs = m.tree.leaves(mapped(x))
            return sum(jnp.sum(jnp.sin(o) * jnp.arange(o.size, dtype=jnp.float32).reshape(o.shape)) for o in outs)

        return lambda x, batch: m.tree.leaves((mapped(x), m.grad(loss)(x), m.vmap(mapped)(batch)))

    operands = X, np.stack([X, X * 2])
    want = RECORDED.of(name, lambda: jax.jit(of(jax, jax.numpy))(*operands))
    same(of(corejax, cjnp)(*map(cjnp.asarray, operands)), want)
    same(corejax.jit(of(corejax, cjnp))(*operands), want)


def over(fun: Callable[[Any], Any], x: Any = X) -> np.ndarray:
    """`fun` of each element of the axis `i`."""
    return np.asarray(corejax.vmap(fun, axis_name="i")(cjnp.asarray(x)))


# -- what jax's vmap has not ---------------------------------------------------------------------------------------


def test_groups() -> None:
    sums = over(lambda a: lax.psum(a, "i", axis_index_groups=GROUPS))
    np.testing.assert_allclose(sums, np.stack([X[0] + X[2], X[3] + X[1], X[0] + X[2], X[3] + X[1]]), rtol=1e-6)
    gathered = over(lambda a: lax.all_gather(a, "i", axis_index_groups=GROUPS))
    np.testing.assert_array_equal(gathered[1], X[[3, 1]])
    parts = over(lambda a: lax.psum_scatter(a, "i", axis_index_groups=GROUPS, tiled=True))
    np.testing.assert_allclose(parts[2], (X[0] + X[2])[4:], rtol=1e-6)
    moved = over(lambda a: lax.all_to_all(a, "i", 0, 0, axis_index_groups=GROUPS, tiled=True))
    np.testing.assert_array_equal(moved[3], np.concatenate([X[3][:4], X[1][:4]]))


def test_targets_that_nobody_sends_to_get_zeros() -> None:
    got = over(lambda a: lax.ppermute(a, "i", [(0, 1), (2, 3)]))
    np.testing.assert_array_equal(got, np.stack([0 * X[0], X[0], 0 * X[0], X[2]]))


@pytest.mark.parametrize("names", [("i", "j"), ("j", "i")])
def test_permutations_and_gathers_of_two_axes(names: tuple[str, str]) -> None:
    perm = [(k, (5 * k + 3) % 32) for k in range(30)]

    def both(fun: Callable[[Any], Any]) -> np.ndarray:
        return over(lambda a: corejax.vmap(fun, axis_name="j")(a))

    flat = X if names == ("i", "j") else X.swapaxes(0, 1)
    want = np.zeros_like(X).reshape(32, 4)
    for source, target in perm:
        want[target] = flat.reshape(32, 4)[source]
    want = want.reshape(flat.shape)
    got = both(lambda b: lax.ppermute(b, names, perm))
    np.testing.assert_array_equal(got, want if names == ("i", "j") else want.swapaxes(0, 1))
    gathered = both(lambda b: lax.all_gather(b, names))
    np.testing.assert_array_equal(gathered[2, 3], flat.reshape(32, 4))
    parts = both(lambda b: lax.psum_scatter(cjnp.tile(b, 8), names, tiled=True))
    total = np.tile(X.sum((0, 1)), 8)
    np.testing.assert_allclose(
        parts if names == ("i", "j") else parts.swapaxes(0, 1),
        total.reshape((*flat.shape[:2], 1)),
        rtol=1e-4,
        atol=1e-5,
    )
    index = both(lambda b: lax.axis_index(names))
    np.testing.assert_array_equal(index[2, 3], 2 * 8 + 3 if names == ("i", "j") else 3 * 4 + 2)


def test_broadcasts() -> None:
    np.testing.assert_array_equal(over(lambda a: lax.pbroadcast(a, "i", 2)), np.broadcast_to(X[2], X.shape))
    np.testing.assert_array_equal(over(lambda a: lax.pbroadcast(a > 0, "i", 2)), np.broadcast_to(X[2] > 0, X.shape))


def test_extremes_have_derivatives() -> None:
    x = np.array([1.0, 3.0, 3.0, 2.0], np.float32)
    pulled = corejax.grad(lambda a: corejax.vmap(lambda b: lax.pmax(b, "i"), axis_name="i")(a)[0])(cjnp.asarray(x))
    np.testing.assert_array_equal(np.asarray(pulled), [0, 0.5, 0.5, 0])


def test_ragged_exchange() -> None:
    rng = np.random.default_rng(1)
    sizes = rng.integers(0, 3, (4, 4)).astype(np.int32)  # from, to
    starts = np.concatenate([np.zeros((4, 1), np.int32), np.cumsum(sizes, 1)[:, :-1]], 1).astype(np.int32)
    places = np.concatenate([np.zeros((1, 4), np.int32), np.cumsum(sizes, 0)[:-1]], 0).astype(np.int32)
    rows = rng.standard_normal((4, 8, 2)).astype(np.float32)
    output = np.full((4, 8, 2), 7, np.float32)
    want = output.copy()
    for i in range(4):
        for j in range(4):
            want[j, places[i, j] : places[i, j] + sizes[i, j]] = rows[i, starts[i, j] : starts[i, j] + sizes[i, j]]

    def one(*args: Any) -> Any:
        return lax.ragged_all_to_all(*args, axis_name="i")

    given = (rows, output, starts, sizes, places, sizes.T.copy())
    got = corejax.vmap(one, axis_name="i")(*given)
    np.testing.assert_array_equal(np.asarray(got), want)
    program = corejax.make_jaxpr(one, axis_env=[("i", 4)])(*[a[0] for a in given])
    assert [eqn.primitive for eqn in program.eqns] == [lax.ragged_all_to_all_p]

    flat = [a.reshape(-1, *a.shape[2:]) for a in given]
    mesh = corejax.make_mesh((4,), ("i",))
    spread = corejax.shard_map(one, mesh=mesh, in_specs=corejax.P("i"), out_specs=corejax.P("i"))
    np.testing.assert_array_equal(np.asarray(spread(*flat)), want.reshape(-1, 2))
    weights = rng.standard_normal((32, 2)).astype(np.float32)

    def mapped(rows: Any) -> Any:
        inner = corejax.vmap(one, axis_name="i")(rows.reshape(4, 8, 2), *given[1:])
        return (weights * inner.reshape(-1, 2)).sum()

    pulled = corejax.grad(lambda rows: (weights * corejax.jit(spread)(rows, *flat[1:])).sum())(flat[0])
    np.testing.assert_allclose(np.asarray(pulled), np.asarray(corejax.grad(mapped)(flat[0])), rtol=1e-6)


# -- what is refused ---------------------------------------------------------------------------------------------


def test_names_that_are_not_bound() -> None:
    with pytest.raises(NameError, match=r"psum: no axis is named 'j'; active axes: 'i'.*axis_name='j'"):
        over(lambda a: lax.psum(a, "j"))
    with pytest.raises(corejax.errors.UnboundAxisError, match="no named axis is active"):
        lax.axis_index("i")
    with pytest.raises(NameError, match="psum: no axis is named 'i'"):
        corejax.jit(lambda a: corejax.make_jaxpr(lambda b: lax.psum(b, "i"))(a))(1.0)
    program = corejax.make_jaxpr(lambda b: lax.psum(b, "i"), axis_env=[("i", 3)])(1.0)
    with pytest.raises(NameError, match="psum: no axis is named 'i'"):
        corejax.extend.jaxpr_as_fun(program)(np.float32(1))
    assert corejax.extend.transforms.axes_in_scope() == ()


@pytest.mark.parametrize(
    ("fun", "error", "words"),
    [
        (lambda a: lax.psum(a, "i", axis_index_groups=[[0, 1], [2]]), ValueError, "each index of the axis 'i', 0 to 3"),
        (lambda a: lax.psum(a, "i", axis_index_groups=[[0, 1, 2], [3]]), ValueError, "one size, got sizes"),
        (lambda a: lax.psum(a, "i", axis_index_groups=3), TypeError, "sequence of sequences"),
        (lambda a: lax.psum(a, ("i", "i")), ValueError, "given once"),
        (lambda a: lax.psum("a", "i"), TypeError, "psum: x is a pytree of arrays"),
        (lambda a: lax.pmax(1j * a, "i"), TypeError, "complex numbers have no order"),
        (
            lambda a: lax.psum_scatter(a, "i"),
            ValueError,
            r"scatter_dimension=0 must have the length.*4.*float32\[8,4\]",
        ),
        (lambda a: lax.all_to_all(a, "i", 0, 5), ValueError, "concat_axis=5 is no axis"),
        (lambda a: lax.ppermute(a, "i", [(0, 4)]), ValueError, "target 4 is no index"),
        (lambda a: lax.ppermute(a, "i", [(0, 1), (0, 2)]), ValueError, "source 0 occurs 2 times"),
        (lambda a: lax.ppermute(a, "i", 3), TypeError, "sequence of pairs"),
        (lambda a: lax.pshuffle(a, "i", [0, 1, 1, 2]), ValueError, "each index of the axes"),
        (lambda a: lax.pbroadcast(a, "i", 4), ValueError, "source=4"),
        (lambda a: lax.all_gather(a, "i", to="else"), ValueError, "to must be"),
    ],
)
def test_what_is_refused(fun: Callable[[Any], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        over(fun)
    assert corejax.extend.transforms.axes_in_scope() == ()


def test_a_parameter_may_be_called_as_a_rule_calls_its_argument() -> None:
    """Derived rules take theirs by position only."""
    from corejax.extend import Primitive

    p = Primitive("mine.scaled", decomposition=lambda x, *, axis_size, vals, primals: x * axis_size)
    params = {"axis_size": 3, "vals": 1, "primals": 2}
    np.testing.assert_array_equal(corejax.vmap(lambda x: p.bind(x, **params))(cjnp.arange(3.0)), [0, 3, 6])
    assert corejax.grad(lambda x: p.bind(x, **params))(1.0) == 3


@pytest.mark.parametrize("dtype", ["int4", "uint2", "float8_e4m3b11fnuz", "float8_e5m2", "bool"])
def test_dtypes_that_xla_does_not_send(dtype: str) -> None:
    """Compiled and on the host alike: integers of few bits, floats of eight, booleans where they mean something."""
    mesh = corejax.make_mesh((8,), ("i",))
    x = cjnp.asarray(np.arange(64).reshape(64) % 3).astype(dtype)
    functions: list[Callable[[Any], Any]] = [
        lambda x: lax.pmax(x, "i"),
        lambda x: lax.all_gather(x, "i"),
        lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True),
    ]
    if dtype != "bool":
        functions += [lambda x: lax.psum(x, "i"), lambda x: lax.psum_scatter(x, "i", tiled=True)]
    for fun in functions:
        mapped = corejax.shard_map(fun, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False)
        got, right = corejax.jit(mapped)(x), mapped(x)
        assert got.dtype == right.dtype
        np.testing.assert_array_equal(np.asarray(got, np.float32), np.asarray(right, np.float32))


def test_types_that_collectives_do_not_take() -> None:
    flags, phases, row = (ShapedArray((8,), np.dtype(d)) for d in ("bool", "complex64", "float32"))
    over: dict[str, Any] = {"axis_name": ("i",), "axis_index_groups": None}
    with pytest.raises(TypeError, match=r"psum does not take bool\[8\]"):
        primitives["psum"].abstract((flags,), over)
    with pytest.raises(TypeError, match=r"pmax does not take complex64\[8\]"):
        primitives["pmax"].abstract((phases,), over)
    params = {"axis_name": "i", "axis_index_groups": None, "axis": 0, "size": 3, "tiled": True}
    with pytest.raises(ValueError, match="size a multiple of 3"):
        primitives["reduce_scatter"].abstract((row,), params)
    with pytest.raises(ValueError, match="axis=1 is not in 0 to 0"):
        primitives["reduce_scatter"].abstract((row,), {**params, "axis": 1})
    with pytest.raises(ValueError, match="axis=-1 is not in 0 to 1"):
        primitives["all_gather"].abstract((row,), {**params, "axis": -1, "tiled": False})


def test_a_scatter_of_nothing() -> None:
    mesh = corejax.make_mesh((8,), ("i",))
    fun = corejax.shard_map(
        lambda x: lax.psum_scatter(x, "i", tiled=True), mesh=mesh, in_specs=P(), out_specs=P("i"), check_vma=False
    )
    assert corejax.jit(fun)(np.zeros((0, 3), np.float32)).shape == (0, 3)


@pytest.mark.parametrize("shape", [(0, 3), (4, 0)])
def test_gathers_of_nothing(shape: tuple[int, int]) -> None:
    mesh = corejax.make_mesh((4,), ("i",), devices=corejax.devices()[:4])
    options = {"mesh": mesh, "in_specs": P(), "out_specs": P(), "check_vma": False}
    for tiled, wanted in ((True, (4 * shape[0], shape[1])), (False, (4, *shape))):
        gather = corejax.shard_map(lambda a, tiled=tiled: lax.all_gather(a, "i", tiled=tiled), **options)
        total = lambda a, gather=gather: cjnp.sum(gather(a))
        x = np.ones(shape, np.float32)
        assert gather(x).shape == wanted
        assert corejax.jit(corejax.grad(total))(x).shape == shape


@pytest.mark.parametrize("name", ["psum", "pmax", "pmin"])
def test_axes_of_arrays(name: str) -> None:
    """Integers that are no names count axes of each element's array, as in JAX."""
    jax = pytest.importorskip("jax")
    ours, theirs = getattr(lax, name), getattr(jax.lax, name)
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    for axes in (("i", 0), (1, "i"), ("i", 0, 1), (0,), 1):
        got = corejax.vmap(lambda x, axes=axes: ours(x, axes), axis_name="i")(x)
        np.testing.assert_array_equal(got, jax.vmap(lambda x, axes=axes: theirs(x, axes), axis_name="i")(x))
    np.testing.assert_array_equal(ours(x, 0), theirs(x, 0))
    np.testing.assert_array_equal(corejax.vmap(lambda x: ours(x, 0), axis_name=0)(x)[0], ours(x, 0))  # a name
    with pytest.raises(ValueError, match=rf"{name}: axis 2 is out of bounds for float32\[3,4\]"):
        corejax.vmap(lambda x: ours(x, ("i", 2)), axis_name="i")(x)


def test_a_collective_over_an_axis_that_nothing_maps() -> None:
    """Names without the transformation: said so, and not that there is no such name."""
    with named_axes([("rows", 4)]):
        with pytest.raises(
            NameError, match="psum: named_axes binds the name 'rows', but no transformation maps the axis"
        ):
            lax.psum(np.ones(3), "rows")
        with pytest.raises(NameError, match="no axis is named 'columns'; active axes: 'rows'"):
            lax.psum(np.ones(3), "columns")
