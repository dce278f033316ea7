"""Primitives of others in programs over several devices: kernels, Python functions, LAPACK; what is split, and what is
gathered, with a warning."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import P, ffi, lax
from corejax.extend import (
    Primitive,
    ShapedArray,
    defbroadcasting,
    defvectorized,
    move_batch_axis,
    vmap_rules,
    xla_translations,
)
from corejax.extend.messages import DerivedRuleWarning
from tests.kernels import load as load_kernels

rng = np.random.default_rng(0)
F32 = np.dtype(np.float32)
X = rng.standard_normal((16, 8)).astype(F32)
COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "collective-permute")
MESHES: list[tuple[tuple[int, ...], tuple[str, ...]]] = [((8,), ("x",)), ((4, 2), ("x", "y"))]
GRID = MESHES[1]

pytestmark = pytest.mark.filterwarnings("ignore:.*call its impl rule back on the host")


@pytest.fixture(autouse=True)
def each_warning_anew() -> Iterator[None]:
    """Warnings come once for a primitive and line."""
    corejax.clear_caches()
    yield


@pytest.fixture(scope="module")
def kernels(pytestconfig: pytest.Config) -> Any:
    """The kernels of the tests of `ffi`, compiled and registered."""
    loaded = load_kernels(pytestconfig)
    for name in ("Scale", "Running"):
        ffi.register_ffi_target(f"test.{name}", getattr(loaded, name))
    return loaded


def put(x: Any, *spec: Any, mesh: Any = GRID) -> Any:
    return corejax.device_put(x, corejax.NamedSharding(corejax.make_mesh(*mesh), P(*spec)))


def compiled(fun: Callable[..., Any], *args: Any) -> tuple[Any, set[str], str]:
    """The result, the collectives, and the program."""
    text = corejax.jit(fun).lower(*args).compile().as_text()
    return corejax.jit(fun)(*args), {c for c in COLLECTIVES if re.search(rf" {c}(-start)?\(", text)}, text


def same_type(*avals: ShapedArray) -> ShapedArray:
    return next((a for a in avals if a.ndim), avals[0]).strip_weak_type()


def kernel_translation(ctx: Any, in_avals: Any, in_vals: Any, **params: Any) -> Any:
    """Cumulative sums along the last axis by the kernel, of rows."""
    (x,) = in_vals
    start = ctx.full(ShapedArray(x.aval.shape[:-1], F32), 0)
    types = [x.aval.strip_weak_type(), start.aval]
    return ctx.custom_call("test.Running", x, start, out=types)[0]


def rows_type(x: ShapedArray, **params: Any) -> ShapedArray:
    if x.ndim < 1:
        raise TypeError("rows have an axis")
    return x.strip_weak_type()


rows_p = Primitive("test.rows", impl=lambda x: np.cumsum(x, -1, x.dtype), abstract_eval=rows_type)
xla_translations.register(rows_p, kernel_translation)


@vmap_rules.register(rows_p)
def rows_vmap(size: int, vals: Any, dims: Any) -> Any:
    return rows_p.bind(move_batch_axis(size, dims[0], 0, vals[0])), 0


alone_p = Primitive("test.alone", impl=lambda x: np.cumsum(x, -1, x.dtype), abstract_eval=rows_type)
xla_translations.register(alone_p, kernel_translation)


def axis_type(x: ShapedArray, axis: int) -> ShapedArray:
    if not 0 <= axis < x.ndim:
        raise ValueError(f"there is no axis {axis}")
    return x.strip_weak_type()


along_p = Primitive("test.along", impl=lambda x, axis: np.cumsum(x, axis, x.dtype), abstract_eval=axis_type)


@vmap_rules.register(along_p)
def along_vmap(size: int, vals: Any, dims: Any, axis: int) -> Any:
    return along_p.bind(vals[0], axis=axis + (dims[0] <= axis)), dims[0]


each_p = Primitive("test.each", impl=lambda x: np.sin(x), abstract_eval=same_type, tags=("elementwise",))
defvectorized(each_p)
several_p = Primitive(
    "test.several",
    impl=lambda x, y, s: [np.asarray(x + y * s, F32), np.asarray(x > y)],
    abstract_eval=lambda x, y, s: [same_type(x, y), same_type(x, y).update(dtype=np.bool_)],
    multiple_results=True,
)
defbroadcasting(several_p)


def product_type(a: ShapedArray, b: ShapedArray) -> ShapedArray:
    if a.ndim != b.ndim or a.ndim < 2 or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        raise TypeError("stacks of matrices that go together")
    return ShapedArray((*a.shape[:-1], b.shape[-1]), a.dtype)


stacks_p = Primitive("test.stacks", impl=np.matmul, abstract_eval=product_type)
vmap_rules.register(
    stacks_p,
    lambda size, vals, dims: (
        stacks_p.bind(*[move_batch_axis(size, d, 0, x) for x, d in zip(vals, dims, strict=True)]),
        0,
    ),
)


# -- what is split -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mesh", MESHES)
def test_a_kernel_with_a_vmap_rule_has_a_part_of_the_batch(kernels: Any, mesh: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got, used, text = compiled(rows_p.bind, put(X, "x", mesh=mesh))
    np.testing.assert_allclose(got, np.cumsum(X, 1), rtol=1e-4, atol=1e-5)
    assert not used
    assert got.sharding.spec == P("x")
    assert f"f32[{16 // mesh[0][0]},8]" in next(line for line in text.splitlines() if "custom-call(" in line)


def test_what_is_no_batch_is_gathered_whatever_lies_there(kernels: Any) -> None:
    for spec in ((None, "x"), ("x", "y"), (None, ("x", "y"))):
        got, used, _ = compiled(rows_p.bind, put(X, *spec))
        np.testing.assert_allclose(got, np.cumsum(X, 1), rtol=1e-4, atol=1e-5)
        assert used
        assert got.sharding.spec == (P("x") if spec[0] else P())


@pytest.mark.parametrize("spec", [("x",), (None, "y"), ("x", "y"), (("y", "x"),), ()])
def test_an_elementwise_function_of_python_stays_where_it_is(spec: Any) -> None:
    got, used, _text = compiled(each_p.bind, put(X, *spec))
    np.testing.assert_allclose(got, np.sin(X), rtol=1e-6)
    assert not used
    assert got.sharding.spec == P(*spec)


def test_axes_in_parameters_are_counted_on() -> None:
    for axis in (0, 1, 2):
        x = rng.standard_normal((8, 8, 8)).astype(F32)
        for d in (0, 1, 2):
            spec = ["x" if k == d else None for k in range(3)]
            got, used, _ = compiled(lambda x, axis=axis: along_p.bind(x, axis=axis), put(x, *spec))
            np.testing.assert_allclose(got, np.cumsum(x, axis), rtol=1e-4, atol=1e-5)
            assert bool(used) == (d == axis)


def test_several_operands_results_and_a_scalar() -> None:
    y = X[::-1].copy()
    for specs in ((("x",), ("x",)), (("x", "y"), ()), ((), (None, "y"))):
        (a, b), used, _ = compiled(several_p.bind, put(X, *specs[0]), put(y, *specs[1]), put(np.float32(3)))
        np.testing.assert_allclose(a, X + y * 3, rtol=1e-6)
        np.testing.assert_array_equal(b, y < X)
        assert not used
        assert a.sharding.spec == b.sharding.spec == P(*max(specs, key=len))


def test_stacks_of_matrices() -> None:
    a, b = rng.standard_normal((2, 8, 4, 4)).astype(F32)
    got, used, _ = compiled(stacks_p.bind, put(a, "x"), put(b, "x"))
    np.testing.assert_allclose(got, a @ b, rtol=1e-4, atol=1e-5)
    assert not used
    assert got.sharding.spec == P("x")
    got, _, _ = compiled(stacks_p.bind, put(a, None, "x"), put(b, None, None, "y"))
    np.testing.assert_allclose(got, a @ b, rtol=1e-4, atol=1e-5)


def test_inside_of_transformed_programs(kernels: Any) -> None:
    x = rng.standard_normal((8, 4, 8)).astype(F32)

    def fun(x: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            return each_p.bind(lax.cond(c[0, 0, 0] > 99, lambda c: c, rows_p.bind, c)), None

        return lax.scan(step, corejax.vmap(rows_p.bind, 1, 1)(x), None, length=2)[0]

    got, used, _ = compiled(fun, put(x, "x"))
    wanted = np.cumsum(x, -1)
    for _ in range(2):
        wanted = np.sin(np.cumsum(wanted, -1))
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4)
    assert got.sharding.spec == P("x")
    assert "all-gather" not in used


def test_zero_sizes_and_sizes_that_do_not_divide(kernels: Any) -> None:
    for fun in (rows_p.bind, each_p.bind):
        got, _, _ = compiled(lambda x, fun=fun: fun(x[:6] * 2), put(X, "x"))
        np.testing.assert_allclose(got, np.asarray(corejax.jit(fun)(X[:6] * 2)), rtol=1e-5)
        got, _, _ = compiled(fun, put(np.zeros((0, 8), F32), "x"))
        assert got.shape == (0, 8)


@pytest.mark.parametrize("dtype", ["float64", "int32", "bool", "bfloat16", "complex64"])
def test_other_dtypes(dtype: str) -> None:
    twice_p = Primitive("test.twice", impl=lambda x: np.add(x, x), abstract_eval=same_type)
    defvectorized(twice_p)
    with corejax.enable_x64():
        x = (X > 0).astype(dtype) if dtype == "bool" else np.asarray(jnp.asarray(X * 4).astype(dtype))
        got, used, _ = compiled(twice_p.bind, put(x, "x", "y"))
        np.testing.assert_array_equal(np.asarray(got), np.add(x, x))
    assert not used


def test_manual_parts_call_for_themselves(kernels: Any) -> None:
    mesh = corejax.make_mesh(*GRID)
    for names in ({"x"}, {"x", "y"}):
        for fun, right in ((rows_p.bind, np.cumsum(X, 1)), (each_p.bind, np.sin(X))):
            f = corejax.shard_map(fun, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names=names)
            np.testing.assert_allclose(compiled(f, put(X, "x"))[0], right, rtol=1e-4, atol=1e-5)


def test_eagerly_arrays_stay_where_they_are(kernels: Any) -> None:
    got = rows_p.bind(put(X, "x"))
    np.testing.assert_allclose(got, np.cumsum(X, 1), rtol=1e-4, atol=1e-5)
    assert got.sharding.spec == P("x")


# -- what is gathered --------------------------------------------------------------------------------------------------


def test_a_kernel_of_which_nothing_is_known_is_gathered_and_says_so(kernels: Any) -> None:
    with pytest.warns(
        DerivedRuleWarning, match=r"'test.alone', at .*test_others_primitives.py:\d+.*operand 0"
    ) as found:
        got, used, _ = compiled(lambda x: alone_p.bind(x) + 1, put(X, "x"))
    assert len([w for w in found if "test.alone" in str(w.message)]) == 1
    assert "custom_partitioning" in str(found[0].message)
    np.testing.assert_allclose(got, np.cumsum(X, 1) + 1, rtol=1e-4, atol=1e-5)
    assert "all-gather" in used


def test_no_warning_where_nothing_is_spread(kernels: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got, used, _ = compiled(lambda x, y: (alone_p.bind(x), y + 1), put(X), put(X, "x"))
    assert not used
    np.testing.assert_allclose(got[0], np.cumsum(X, 1), rtol=1e-4, atol=1e-5)


def test_a_warning_that_is_an_error_leaves_nothing_behind(kernels: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DerivedRuleWarning)
        with pytest.raises(DerivedRuleWarning, match=r"test\.alone"):
            corejax.jit(alone_p.bind)(put(X, "x"))
    got, _, _ = compiled(rows_p.bind, put(X, "x"))
    np.testing.assert_allclose(got, np.cumsum(X, 1), rtol=1e-4, atol=1e-5)


def test_python_functions_of_which_nothing_is_known_run_once(recwarn: Any) -> None:
    calls = []

    def impl(x: Any) -> Any:
        calls.append(x.shape)
        return np.cumsum(x, 0, x.dtype)

    once_p = Primitive("test.once", impl=impl, abstract_eval=same_type)
    with pytest.warns(DerivedRuleWarning, match=r"'test.once', at .*gathered onto the first device"):
        got = corejax.jit(once_p.bind)(put(X, "x"))
    np.testing.assert_allclose(got, np.cumsum(X, 0), rtol=1e-4, atol=1e-5)
    assert calls == [(16, 8)]


def test_python_functions_that_are_meant_run_once_and_are_not_warned_of() -> None:
    meant_p = Primitive("test.meant", impl=lambda x: np.cumsum(x, 0, x.dtype), abstract_eval=same_type)
    xla_translations.register(meant_p, by="host callback")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = corejax.jit(meant_p.bind)(put(X, "x"))
        np.testing.assert_allclose(got, np.cumsum(X, 0), rtol=1e-4, atol=1e-5)
        sines = corejax.jit(lambda x: corejax.pure_callback(np.sin, x, x))(put(X, "x"))
        np.testing.assert_allclose(sines, np.sin(X), rtol=1e-5)


def test_effects_happen_once() -> None:
    seen = []
    effect_p = Primitive(
        "test.effect", impl=lambda x: (seen.append(x.shape), x)[1], abstract_eval=same_type, effects=("test",)
    )
    defvectorized(effect_p)
    got = corejax.jit(effect_p.bind)(put(X, "x"))
    np.testing.assert_array_equal(got, X)
    assert seen == [(16, 8)]


def test_an_error_of_a_part_reaches_the_caller() -> None:
    def refuse(x: Any) -> Any:
        raise ZeroDivisionError("no such thing")

    fails_p = Primitive("test.fails", impl=refuse, abstract_eval=same_type)
    defvectorized(fails_p)
    with pytest.raises(ZeroDivisionError, match="no such thing"):
        corejax.jit(fails_p.bind)(put(X, "x"))
    np.testing.assert_allclose(corejax.jit(each_p.bind)(put(X, "x")), np.sin(X), rtol=1e-6)


# -- kernels that say how many axes are a batch ------------------------------------------------------------------------


def test_batch_dims_of_a_custom_call(kernels: Any) -> None:
    says_p = Primitive("test.says", abstract_eval=rows_type)

    @xla_translations.register(says_p)
    def _translation(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
        (x,) = in_vals
        start = ctx.full(ShapedArray(x.aval.shape[:-1], F32), 0)
        types = [x.aval.strip_weak_type(), start.aval]
        return ctx.custom_call("test.Running", x, start, out=types, batch_dims=x.aval.ndim - 1)[0]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for spec, split in ((("x",), True), (("x", "y"), False), ((None, "x"), False)):
            got, used, _ = compiled(says_p.bind, put(X, *spec))
            np.testing.assert_allclose(got, np.cumsum(X, 1), rtol=1e-4, atol=1e-5)
            assert bool(used) != split
            assert got.sharding.spec == P(*spec[:1]) or spec[0] is None
    np.testing.assert_allclose(corejax.jit(says_p.bind)(X), np.cumsum(X, 1), rtol=1e-4, atol=1e-5)


def test_batch_dims_that_are_not_there() -> None:
    wrong_p = Primitive("test.wrong", abstract_eval=lambda x: x.update(shape=x.shape[::-1]))
    xla_translations.register(
        wrong_p, lambda ctx, avals, vals: ctx.custom_call("a", *vals, out=avals[0].update(shape=(8, 16)), batch_dims=1)
    )
    with pytest.raises(ValueError, match=r"'a': batch_dims=1.*f32\[16,8\], f32\[8,16\]"):
        corejax.jit(wrong_p.bind)(X)


@pytest.mark.parametrize("method", ["broadcast_all", "expand_dims", "sequential"])
def test_a_batch_of_ffi_calls(kernels: Any, method: str) -> None:
    def running(x: Any, start: Any) -> Any:
        types = [ShapedArray(x.shape, F32), ShapedArray((), F32)]
        return ffi.ffi_call("test.Running", types, vmap_method=method)(x, start)[0]

    starts = X[:, 0].copy()
    for axes, start in (((0, 0), put(starts, "x")), ((0, None), np.float32(2))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got, used, _ = compiled(corejax.vmap(running, axes), put(X, "x"), start)
        right = np.asarray(start).reshape(-1, 1) + np.cumsum(X, 1)
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5)
        if method == "broadcast_all" or (method == "expand_dims" and axes == (0, 0)):
            assert not used


@pytest.mark.parametrize("method", ["broadcast_all", "sequential"])
def test_ffi_calls_by_each_device_of_a_shard_map(kernels: Any, method: str) -> None:
    def running(x: Any, start: Any) -> Any:
        types = [ShapedArray(x.shape, F32), ShapedArray((), F32)]
        return ffi.ffi_call("test.Running", types, vmap_method=method)(x, start)[0]

    mesh = corejax.make_mesh((8,), ("i",))
    mapped = corejax.shard_map(
        lambda x: corejax.vmap(running, (0, None))(x, np.float32(2)), mesh=mesh, in_specs=P("i"), out_specs=P("i")
    )
    rows = np.concatenate([X, X])[:8]
    for f in (mapped, corejax.jit(mapped)):
        np.testing.assert_allclose(f(rows), 2 + np.cumsum(rows, 1), rtol=1e-4, atol=1e-5)


# -- LAPACK ------------------------------------------------------------------------------------------------------------

A = rng.standard_normal((8, 2, 4, 4)).astype(F32)
S = A @ A.swapaxes(-1, -2) + np.eye(4, dtype=F32)


def rebuilt(parts: Any) -> Any:
    u, s, v = parts
    return (u * s[..., None, :]) @ v


LAPACK: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "cholesky": (jnp.linalg.cholesky, np.linalg.cholesky),
    "solve": (lambda s: jnp.linalg.solve(s, A), lambda s: np.linalg.solve(s, A)),
    "eigh": (jnp.linalg.eigvalsh, np.linalg.eigvalsh),
    "svd": (lambda s: rebuilt(jnp.linalg.svd(s)), lambda s: s),
    "qr": (lambda s: jnp.matmul(*jnp.linalg.qr(s)), lambda s: s),
    "eig": (lambda s: jnp.sort(jnp.linalg.eigvals(s).real), lambda s: np.sort(np.linalg.eigvals(s).real)),
    "det": (jnp.linalg.det, np.linalg.det),
    "triangular": (
        lambda s: lax.linalg.triangular_solve(s, jnp.asarray(A), left_side=True, lower=True),
        lambda s: np.linalg.solve(np.tril(s), A),
    ),
}


@pytest.mark.parametrize("name", LAPACK)
def test_lapack_over_a_batch_stays_split(name: str) -> None:
    fun, right = LAPACK[name]
    for spec in (("x",), ("x", "y")):
        got, used, _ = compiled(fun, put(S, *spec))
        np.testing.assert_allclose(got, right(S), rtol=2e-3, atol=2e-3)
        assert not used
        assert got.sharding.spec == P(*spec)


def test_lapack_of_what_is_split_otherwise() -> None:
    for spec in ((None, None, "x"), ("x", None, None, "y"), (None, None, "y", "x")):
        got, _, _ = compiled(jnp.linalg.cholesky, put(S, *spec))
        np.testing.assert_allclose(got, np.linalg.cholesky(S), rtol=1e-3, atol=1e-3)
    got, _, _ = compiled(lambda s: jnp.linalg.cholesky(s[:6, 0]), put(S, "x"))
    np.testing.assert_allclose(got, np.linalg.cholesky(S[:6, 0]), rtol=1e-3, atol=1e-3)


def test_derivatives_through_lapack_stay_split() -> None:
    def fun(s: Any) -> Any:
        return jnp.sum(jnp.linalg.cholesky(s) ** 3)

    got, used, _ = compiled(corejax.grad(fun), put(S, "x"))
    np.testing.assert_allclose(got, corejax.grad(fun)(S), rtol=1e-2, atol=1e-2)
    assert not used
    assert got.sharding.spec == P("x")
