"""`pure_callback`: types, batches, derivatives, and what is wrong with a callback or its result; jax is the oracle."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import ShapeDtypeStruct, jit, lax, pure_callback
from corejax.errors import NotDifferentiableError
from corejax.extend.transforms import trace_stack

pytest.importorskip("jaxlib")

METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")
WAYS: dict[str, Callable[[Any], Any]] = {"eager": lambda f: f, "jit": jit}
DTYPES = ["bool", "int8", "uint16", "int64", "float16", "float64", "complex64", "complex128", "bfloat16"]
F32 = ShapeDtypeStruct((), np.float32)
X = np.arange(6, dtype=np.float32).reshape(2, 3)

way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def like(x: Any) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(x.shape, x.dtype)


def host_sin(x: Any) -> Any:
    return pure_callback(np.sin, like(x), x, vmap_method="expand_dims")


@cj.custom_jvp
def sin(x: Any) -> Any:
    return host_sin(x)


@sin.defjvp
def sin_jvp(primals: Any, tangents: Any) -> Any:
    return sin(primals[0]), jnp.cos(primals[0]) * tangents[0]


# -- arguments and results -----------------------------------------------------------------------------------------


@way
def test_pytrees_keywords_and_kinds_of_arguments(way: Any) -> None:
    seen: list[Any] = []

    def callback(x: Any, pair: Any, *, scale: Any) -> Any:
        seen.append((x, pair, scale))
        return {"sum": x + pair[0], "rest": [np.float32(scale), None, (pair[1]["k"],)]}

    def f(x: Any) -> Any:
        types = {"sum": like(X), "rest": [F32, None, (ShapeDtypeStruct((2,), np.int32),)]}
        return pure_callback(callback, types, x, (np.ones(3, np.float32), {"k": np.arange(2, dtype=np.int32)}), scale=2)

    out = way(f)(X)
    np.testing.assert_array_equal(out["sum"], X + 1)
    assert out["rest"][0] == 2.0 and out["rest"][1] is None
    np.testing.assert_array_equal(out["rest"][2][0], [0, 1])
    assert all(type(leaf) is cj.Array for leaf in cj.tree.leaves((out, seen)))


@way
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_and_empty_arrays(dtype: str, way: Any) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = np.array([[0, 1, 1], [1, 0, 1]]).astype(kind)
    f = way(lambda *xs: [pure_callback(lambda y: np.asarray(y)[::-1], like(x), x) for x in xs])
    given = (x, x[:0], x[0, 0:1])
    for got, wanted in zip(f(*given), given, strict=True):
        assert got.dtype == kind
        np.testing.assert_array_equal(np.asarray(got), wanted[::-1])


@way
def test_results_of_numbers_other_widths_and_lists(way: Any) -> None:
    call = lambda out, types: way(lambda x: pure_callback(lambda _: out, types, x))(1.0)
    assert call(2, F32).dtype == np.float32
    assert call(np.float64(0.1), F32) == np.float32(0.1)
    assert call(np.int64(7), ShapeDtypeStruct((), np.int32)).dtype == np.int32
    assert call([1.5, (2.5,)], (F32, [F32]))[1][0] == 2.5
    assert call([], ()) == ()
    with cj.enable_x64(), pytest.raises(TypeError, match=r"float64\[\]"):
        call(np.float64(0.1), F32)


@way
@pytest.mark.parametrize(
    ("out", "said"),
    [
        (np.zeros(2, np.float32), r"float32\[2\] as result\['a'\], but result_shape_dtypes has float32\[\]"),
        (np.int32(1), r"int32\[\] as result\['a'\]"),
        (1j, r"1j of type complex"),
        ("text", r"'text' of type str"),
    ],
)
def test_wrong_results_name_the_callback_and_the_line(out: Any, said: str, way: Any) -> None:
    def misled(x: Any) -> Any:
        return {"a": out}

    with pytest.raises(TypeError, match=r"pure_callback: the callback .*misled' returned " + said) as info:
        way(lambda x: pure_callback(misled, {"a": F32}, x))(1.0)
    (note,) = info.value.__notes__
    assert "test_pure_callback.py" in note and "misled" in note
    with pytest.raises(TypeError, match=r"returned a result of the structure .*but result_shape_dtypes has"):
        way(lambda x: pure_callback(lambda x: (x, x), F32, x))(1.0)


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match=r"pure_callback: the callback must be a function, got 3"):
        pure_callback(3, F32)
    with pytest.raises(TypeError, match=r"result_shape_dtypes is a pytree of objects with shape and dtype.*got 1.0"):
        pure_callback(np.sin, [F32, 1.0], 1.0)
    with pytest.raises(TypeError, match=r"argument kwargs\['b'\]\[1\] is 'x' of type str"):
        pure_callback(np.sin, F32, 1.0, b=(2.0, "x"))
    with pytest.raises(ValueError, match=r"vmap_method must be one of .*got 'vectorized'"):
        pure_callback(np.sin, F32, 1.0, vmap_method="vectorized")
    with pytest.raises(NotImplementedError, match="sharding must be None or on a single device"):
        pure_callback(np.sin, F32, 1.0, sharding="somewhere")


class Refusal(Exception):
    pass


@way
def test_what_it_raises_reaches_the_caller(way: Any) -> None:
    error = Refusal("no")

    def refuse(x: Any) -> Any:
        raise error

    with pytest.raises(Refusal) as info:
        way(lambda x: pure_callback(refuse, F32, x) + 1)(1.0)
    assert info.value is error
    (note,) = error.__notes__
    assert "refuse' of pure_callback, called at" in note and "test_pure_callback.py" in note
    assert len(trace_stack()) == 1
    assert way(lambda x: pure_callback(np.sin, F32, x) + 1)(0.0) == 1.0


@way
def test_errors_of_its_own_operations_name_its_own_lines(way: Any) -> None:
    def callback(x: Any) -> Any:
        return lax.add(x, jnp.ones(2, jnp.int32))

    line = callback.__code__.co_firstlineno + 1
    with pytest.raises(TypeError, match="add") as info:
        way(lambda x: pure_callback(callback, F32, jnp.tan(x)))(1.0)
    said = " ".join([str(info.value), *info.value.__notes__])
    assert f"test_pure_callback.py:{line}" in said or "callback' of pure_callback, called at" in said


def test_it_calls_jitted_functions_and_callbacks_itself() -> None:
    double = jit(lambda x: x * 2)
    inner = jit(lambda x: pure_callback(lambda y: double(y) + 1, F32, x))
    outer = jit(lambda x: pure_callback(lambda y: inner(y) + cj.grad(double)(y), F32, x) * 10)
    assert outer(3.0) == 90.0


# -- batches ---------------------------------------------------------------------------------------------------------


@way
@pytest.mark.parametrize("method", METHODS)
def test_shapes_under_vmap_are_those_of_jax(method: str, way: Any) -> None:
    jax = pytest.importorskip("jax")

    def shapes(lib: Any, way: Any) -> tuple[list[Any], Any]:
        seen: list[Any] = []

        def callback(a: Any, b: Any, *, c: Any) -> Any:
            seen.append((a.shape, b.shape, c.shape))
            return np.asarray(a) * 2

        def f(a: Any, b: Any, c: Any) -> Any:
            return lib.pure_callback(callback, lib.ShapeDtypeStruct((2,), np.float32), a, b, c=c, vmap_method=method)

        batched = lib.vmap(f, in_axes=(1, None, -1))
        out = way(batched)(X, np.float32(5), np.ones((4, 3), np.float32))
        return seen, np.asarray(out)

    seen, out = shapes(cj, way)
    seen_by_jax, wanted = shapes(jax, jax.jit)
    assert seen == seen_by_jax
    np.testing.assert_array_equal(out, wanted)


@way
def test_nested_and_empty_batches(way: Any) -> None:
    for method in METHODS:
        f = lambda x, m=method: pure_callback(lambda x: np.asarray(x) + 1, F32, x, vmap_method=m)
        np.testing.assert_array_equal(way(cj.vmap(cj.vmap(f)))(X), X + 1)
        assert way(cj.vmap(f))(X[0, :0]).shape == (0,)
    with pytest.raises(NotImplementedError, match=r"choose how the callback .* handles a batch") as info:
        way(cj.vmap(lambda x: pure_callback(np.sin, F32, x)))(X[0])
    assert "test_pure_callback.py" in info.value.__notes__[0]


# -- transformations -------------------------------------------------------------------------------------------------


@way
def test_no_derivative_unless_one_is_given(way: Any) -> None:
    for differentiate in (cj.grad, lambda f: lambda x: cj.jvp(f, (x,), (x,)), cj.jacrev):
        with pytest.raises(NotDifferentiableError, match="custom_jvp or custom_vjp around pure_callback"):
            way(differentiate(host_sin))(jnp.float32(1))
    with pytest.raises(NotDifferentiableError, match="pure_callback"):
        cj.linear_transpose(host_sin, jnp.float32(1))(jnp.float32(1))
    assert way(cj.grad(lambda x: x * host_sin(lax.stop_gradient(x))))(jnp.float32(1)) == pytest.approx(np.sin(1))


def nest(function: Any, x: Any) -> Any:
    """Loops, branches, checkpoints and jit around a function."""

    def body(c: Any, row: Any) -> Any:
        c = lax.cond(c[0] > 0.2, function, lambda c: c * 0.5, c)
        return c + cj.checkpoint(lambda r: function(r) * r)(row), jit(function)(c).sum()

    c, ys = lax.scan(body, x[0], x)
    return (lax.fori_loop(0, 2, lambda i, c: function(c), c) * ys.sum()).sum()


@way
def test_compositions_agree_with_jnp(way: Any) -> None:
    got, wanted = (lambda x, f=f: nest(f, x) for f in (sin, jnp.sin))
    batch = np.stack([X + 1, X * 0.3])
    for ours, true in zip(way(cj.value_and_grad(got))(X), cj.value_and_grad(wanted)(X), strict=True):
        np.testing.assert_allclose(ours, true, rtol=2e-5)
    np.testing.assert_allclose(way(cj.vmap(cj.grad(got)))(batch), cj.vmap(cj.grad(wanted))(batch), rtol=2e-5)


def test_custom_vjp_and_second_derivatives() -> None:
    @cj.custom_vjp
    def f(x: Any) -> Any:
        return host_sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * pure_callback(np.cos, like(x), x, vmap_method="broadcast_all"),))
    row = X[0] + 0.5
    np.testing.assert_allclose(jit(cj.vmap(cj.grad(f)))(row), np.cos(row), rtol=1e-6)
    np.testing.assert_allclose(jit(cj.vmap(cj.grad(cj.grad(sin))))(row), -np.sin(row), rtol=1e-6)
    np.testing.assert_allclose(jit(cj.jacfwd(sin))(row), np.diag(np.cos(row)), rtol=1e-6)


def test_unused_ones_are_dropped() -> None:
    seen = []
    f = lambda x: (pure_callback(lambda x: seen.append(1) or x, F32, x), x + 1)[1]
    assert jit(f)(1.0) == jit(jit(f))(1.0) == cj.vmap(jit(lambda _: f(1.0)))(X[0])[0] == 2.0
    assert not seen


def test_programs_and_their_callbacks_are_freed() -> None:
    class Big:
        def __call__(self, x: Any) -> Any:
            return x

    def run() -> Any:
        big = Big()
        f = jit(lambda x: pure_callback(big, F32, x))
        assert f(1.0) == 1.0 and pure_callback(big, F32, 2.0) == 2.0
        cj.vmap(lambda x: pure_callback(big, F32, x, vmap_method="sequential"))(X[0])
        return weakref.ref(big)

    gone = run()
    until = time.monotonic() + 20
    while gone() is not None and time.monotonic() < until:  # a thread of XLA's may still be at the end of a call
        gc.collect()
        time.sleep(0.01)
    assert gone() is None


def test_the_same_callback_is_traced_once() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, x: Any) -> Any:
            return x

        def method(self, x: Any) -> Any:
            return x

    u = Unhashable()
    make = lambda fun: cj.make_jaxpr(lambda x: pure_callback(fun, F32, x))(1.0).jaxpr.eqns[0].params["callback"]
    assert make(u) == make(u) and hash(make(u)) == hash(make(u))
    assert make(u.method) == make(u.method) != make(Unhashable().method)
    assert make(np.sin) != make(np.cos)


def test_results_of_64_bits_are_refused_where_there_are_none() -> None:
    for api in (pure_callback, cj.io_callback):
        with (
            cj.config.override(x64_compat=True),
            pytest.raises(ValueError, match="result_shape_dtypes cannot specify 64-bit types under x64_compat"),
        ):
            api(lambda: 1.0, ShapeDtypeStruct((), "float64"))
