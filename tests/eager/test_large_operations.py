"""Eager operations on large arrays, which a compiled program of one equation does, and the others beside them."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import jit, lax, tree
from corejax.extend import Primitive, impl_rules, xla_translations
from corejax_eager import large
from corejax_eager.large import SIZE

pytest.importorskip("jaxlib")

X = np.random.default_rng(0).standard_normal(SIZE).astype(np.float32)


def compiled(x: cj.Array) -> bool:
    """Whether a value was computed on a device: it has no host view yet."""
    return x._host is None


def again(f, *args):
    """The second call of what rounds nothing, compiled: the first one is not worth it, and gives the same bits."""
    first, second = f(*args), f(*args)
    assert all(map(compiled, tree.leaves(second)))
    for x, y in zip(*map(tree.leaves, (first, second)), strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    return second


@pytest.mark.parametrize("f", [jnp.exp, jnp.sqrt, jnp.tanh, jnp.cosh, lax.logistic])
def test_transcendental_functions_are_compiled(f):
    large, small = f(X), f(X[:-1])
    assert compiled(large) and not compiled(small)
    assert large.aval is jnp.asarray(X).aval
    np.testing.assert_allclose(large[:-1], small, rtol=1e-6)


@pytest.mark.parametrize("f", [lax.erf, lax.erf_inv, lax.bessel_i0e, lax.digamma], ids=lambda f: f.__name__)
def test_special_functions_are_compiled_from_fewer_elements_on(f):
    x = jnp.asarray(np.linspace(0.1, 0.9, 1 << 13, dtype=np.float32))
    many, few = f(x), f(x[:-1])
    assert compiled(many) and not compiled(few)
    np.testing.assert_allclose(many[:-1], few, rtol=2e-6)
    for _ in range(4):  # in a program too
        np.testing.assert_array_equal(cj.extend.remembered(lambda x: f(x) + 1)(x), many + 1)


@pytest.mark.parametrize("name", ["log", "log1p", "expm1", "exp2", "sinh", "arctan", "arcsinh"])
def test_functions_that_numpy_has_in_vectors_are_numpys_there(name):
    loops = np.lib.introspect.opt_func_info(func_name=f"^{name}$", signature="float32")
    plain = loops[name]["ff"]["current"].startswith("baseline")
    large = getattr(jnp, name)(np.abs(X))
    assert compiled(large) is plain
    np.testing.assert_allclose(large, getattr(np, name)(np.abs(X)), rtol=1e-6)


def test_memory_bound_operations_are_numpys():
    x = jnp.asarray(X)
    assert not any(map(compiled, (x + x, x * 2, x > 0, -x, jnp.maximum(x, 0), x.reshape(2, -1), x[::2])))


def test_a_choice_from_a_number_is_one_program():
    x = jnp.asarray(X)
    chosen = again(jnp.where, x > 0, x, 0.0)
    np.testing.assert_array_equal(chosen, np.where(X > 0, X, np.float32(0)))


def test_halves_are_compiled():
    x = jnp.asarray(X).astype(jnp.float16)
    again(lambda: x > 0)
    assert compiled(x + x) and not compiled(-x)
    np.testing.assert_array_equal(x * x, np.asarray(x) * np.asarray(x))


def test_products_of_matrices_are_compiled_but_of_few_columns():
    x = X.reshape(512, 512)
    product = jnp.asarray(x) @ x
    assert compiled(product)
    np.testing.assert_allclose(product, x @ x, rtol=1e-3, atol=1e-3)
    narrow, turn = X.reshape(-1, 2), X[:4].reshape(2, 2)
    thin = jnp.asarray(narrow) @ turn
    assert not compiled(thin)
    np.testing.assert_allclose(thin, narrow @ turn, rtol=1e-5, atol=1e-6)


def test_what_reduces_floating_point_numbers_is_one_program():
    x = jnp.asarray(np.concatenate([X, X]).reshape(512, -1))
    for f in (jnp.var, lambda x: cj.nn.softmax(x), lambda x: jnp.nanmax(x, 1), lambda x: jnp.diff(x)):
        f(x), f(x[:255])
        large, small = f(x), f(x[:255])
        assert compiled(large) and not compiled(small)
        np.testing.assert_allclose(f(x[:3]), np.asarray(cj.jit(f)(x[:3])), rtol=1e-5, atol=1e-6)
    # ... but not what NumPy counts, moves or reduces as quickly.
    assert not any(map(compiled, (jnp.count_nonzero(x > 0), jnp.mean(x), jnp.ptp(x), jnp.roll(x, 1), jnp.any(x))))


def test_other_numbers_are_not_other_programs(monkeypatch):
    programs = []
    run = large.run_program
    monkeypatch.setattr(large, "run_program", lambda *args: programs.append(args[0]) or run(*args))
    x = jnp.asarray(X)
    for f, reference in (
        (lambda v: jnp.clip(x, -v, v), lambda v: np.clip(X, -v, v)),
        (lambda v: x % v, lambda v: X % v),
    ):
        programs.clear()
        for v in np.float32(np.linspace(1, 2, 9)):
            for _ in range(2):
                np.testing.assert_allclose(f(float(v)), reference(v), rtol=1e-6)
        assert len(programs) > 9 and len(set(map(id, programs))) == 1
        assert f(1.5).dtype == np.float32
    for dtype in ("float64", "float16", "bfloat16"):  # beside which they are not rounded to float32
        y = x.astype(dtype)
        for v in np.linspace(0.1, 0.3, 7):
            chosen = np.asarray([jnp.where(y > 0, y, float(v)) for _ in range(3)][-1])
            np.testing.assert_array_equal(chosen[X < 0], np.asarray(v).astype(dtype))
    f = jnp.round  # where the number decides what is computed, there is one for each
    for decimals in range(4):
        np.testing.assert_allclose(f(x, decimals), np.round(X, decimals), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "complex64", "bfloat16", "float16"])
@pytest.mark.parametrize("shape", [(1 << 17,), (300, 301), (3, 5, 5003), (4, 70000), (1 << 15, 3), (20000, 0, 3)])
def test_sums_over_the_last_axes(shape, dtype):
    x = np.random.default_rng(0).uniform(0.5, 5, shape).astype(jnp.dtype(dtype))
    exact = "int" in dtype
    wide = x.astype({"c": np.complex128}.get(x.dtype.kind, np.float64))
    for axes in {tuple(range(i, len(shape))) for i in range(len(shape))} | {(0,)}:
        got = np.asarray(lax.reduce_sum_p.bind(jnp.asarray(x), axes=axes))
        assert got.dtype == x.dtype and got.shape == np.sum(wide, axes).shape
        if exact:
            np.testing.assert_array_equal(got, np.sum(x, axes, dtype=x.dtype))
        elif dtype != "float16" or x.size < 10**4:  # whose sums are infinite
            rtol = float(jnp.finfo(dtype).eps) * (32 if axes == (0,) and len(shape) > 1 else 4)
            np.testing.assert_allclose(got.astype(wide.dtype), np.sum(wide, axes), rtol=rtol)
    turned = jnp.asarray(np.asfortranarray(x)).sum()
    np.testing.assert_allclose(np.asarray(turned, wide.dtype), np.asarray(jnp.asarray(x).sum(), wide.dtype), rtol=1e-2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_floats_of_16_bits_are_compiled(dtype):
    x = jnp.asarray(X).astype(dtype)
    y = np.asarray(x)
    exact = (lambda: x.max(), lambda: x.astype("int32"), lambda: x.astype(bool), lambda: jnp.round(x))
    results = [again(f) for f in exact]
    assert all(map(compiled, (jnp.sum(x), x**2, x.at[0].add(1))))
    assert float(results[0]) == float(y.max())
    np.testing.assert_array_equal(results[1], y.astype(np.int32))
    row = jnp.asarray(y.reshape(512, -1))
    np.testing.assert_array_equal(jnp.flip(row, 1) + row, y.reshape(512, -1)[:, ::-1] + y.reshape(512, -1))
    again(lambda: jnp.asarray(X[::-1]).astype(dtype))
    again(lambda: jnp.arange(SIZE, dtype=dtype))


def test_small_operands_with_a_large_result():
    x = jnp.arange(1024)
    again(cj.nn.one_hot, x, 512), again(jnp.eye, 1024)
    assert compiled(jnp.outer(x * 0.5, x))
    np.testing.assert_array_equal(cj.nn.one_hot(x, 512), np.eye(1024, 512))
    np.testing.assert_array_equal(jnp.outer(x, x), np.outer(np.arange(1024), np.arange(1024)))


def test_windows_and_the_greatest():
    x = jnp.asarray(X.reshape(512, -1))
    most = again(lambda: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "VALID"))
    np.testing.assert_array_equal(most, X.reshape(256, 2, 256, 2).max((1, 3)))
    values, places = again(lax.top_k, x, 5)
    np.testing.assert_array_equal(values, -np.sort(-X.reshape(512, -1), 1)[:, :5])
    np.testing.assert_array_equal(np.take_along_axis(X.reshape(512, -1), np.asarray(places), 1), values)


def test_types_and_compositions():
    x = jnp.asarray(X)
    which = x > 0
    np.testing.assert_array_equal(jnp.where(which, x, 0.0), np.where(X > 0, X, 0))
    np.testing.assert_array_equal(lax.div(jnp.arange(SIZE), 7), np.arange(SIZE) // 7)
    weak = jnp.tanh(lax.full((SIZE,), 0.5))
    assert weak.weak_type == lax.full((1,), 0.5).weak_type
    gradient = cj.vmap(cj.grad(lambda row: jnp.sum(jnp.tanh(row) ** 2)))(x.reshape(4, -1))
    np.testing.assert_allclose(gradient.ravel(), 2 * np.tanh(X) * (1 - np.tanh(X) ** 2), atol=1e-6)
    _, tangent = cj.jvp(jnp.exp, (x,), (x,))
    np.testing.assert_allclose(tangent, np.exp(X) * X, rtol=1e-5)


def test_the_same_call_gives_the_same_bits():
    x = jnp.asarray(X)
    first = np.asarray(jnp.exp(x))
    np.testing.assert_array_equal(first, jnp.exp(X))
    np.testing.assert_array_equal(first, jnp.exp(jnp.exp(x) * 0 + x))


def test_inside_of_a_callback_numpy_does_it():
    seen = []

    def impl(x):
        y = jnp.tanh(x)
        seen.append(compiled(y))
        return np.asarray(y)

    p = Primitive("large_test.callback", impl=impl, abstract_eval=lambda x: x)
    xla_translations.register(p, by="host callback")
    np.testing.assert_allclose(jit(p.bind)(X), np.tanh(X), rtol=1e-6)
    assert seen == [False]
    # ... and where the compiled program of the operation itself calls back.
    q = Primitive("large_test.itself", abstract_eval=lambda x: x)
    impl_rules.register(q, np.tanh, large=("float32",))
    xla_translations.register(q, by="host callback")
    np.testing.assert_allclose(q.bind(X), np.tanh(X), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "complex64"])
def test_large_results_of_ufuncs_are_in_memory_that_programs_share(dtype: str) -> None:
    values = np.arange(1 << 18).astype(dtype)
    x = jnp.asarray(values)
    operations = [
        (lambda: x == x, values == values),
        (lambda: lax.add(x, x) if dtype != "bool" else x & x, values + values),
    ]
    for operation, wanted in operations * 3:
        result = operation()
        array = np.asarray(result)
        assert array.ctypes.data % 64 == 0 and not array.flags.writeable
        np.testing.assert_array_equal(array, wanted)
        assert result.dtype == wanted.dtype
