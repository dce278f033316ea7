"""Eager operations on large arrays, which a compiled program of one equation does, and the others beside them."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import jit, lax
from corejax.extend import Primitive, impl_rules, xla_translations
from corejax.interpreters.large_operations import SIZE

pytest.importorskip("jaxlib")

X = np.random.default_rng(0).standard_normal(SIZE).astype(np.float32)


def compiled(x: cj.Array) -> bool:
    """Whether a value was computed on a device: it has no host view yet."""
    return x._host is None


@pytest.mark.parametrize("f", [jnp.exp, jnp.sqrt, lax.logistic, lax.erf])
def test_transcendental_functions_are_compiled(f):
    large, small = f(X), f(X[:-1])
    assert compiled(large) and not compiled(small)
    assert large.aval is jnp.asarray(X).aval
    np.testing.assert_allclose(large[:-1], small, rtol=1e-6)


@pytest.mark.parametrize("name", ["tanh", "log", "log1p", "expm1", "exp2", "sinh", "cosh", "arctan", "arcsinh"])
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
    chosen = jnp.where(x > 0, x, 0.0)
    assert compiled(chosen)
    np.testing.assert_array_equal(chosen, np.where(X > 0, X, np.float32(0)))


def test_halves_are_compiled():
    x = jnp.asarray(X).astype(jnp.float16)
    assert compiled(x + x) and compiled(x > 0) and not compiled(-x)
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
