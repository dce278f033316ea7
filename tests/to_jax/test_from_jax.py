"""JAX functions in corejax: results, derivatives, batches and compiled programs are JAX's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax_testing

jax = pytest.importorskip("jax")
pytest.importorskip("corejax_to_jax")
jnp = jax.numpy

X = np.linspace(0.2, 1.4, 4).astype(np.float32)

FUNCTIONS: dict[str, Any] = {
    "elementwise": lambda x: jnp.sin(x) * x,
    "a rule of its own": lambda x: jax.nn.relu(x - 0.5),
    "scan": lambda x: jax.lax.scan(lambda c, a: (jnp.sin(c) + a, c * a), 0.3, x)[1],
    "linear algebra": lambda x: jnp.linalg.cholesky(jnp.outer(x, x) + jnp.eye(4)),
    "gather and sort": lambda x: jnp.sort(x)[::2],
}

# The same for both: their functions have the same names.
TRANSFORMATIONS: dict[str, Any] = {
    "eager": lambda m, f: f,
    "jit": lambda m, f: m.jit(f),
    "vmap": lambda m, f: lambda x: m.vmap(f)(np.stack([x, 2 * x])),
    "jit of vmap of grad": lambda m, f: lambda x: m.jit(m.vmap(m.grad(total(f))))(np.stack([x, 2 * x])),
    "hessian": lambda m, f: m.hessian(total(f)),
    "scan of grad": lambda m, f: lambda x: m.lax.scan(lambda c, a: (c, m.grad(total(f))(a)), 0, np.stack([x, x]))[1],
}


def total(f: Any) -> Any:
    return lambda x: (f(x) ** 2).sum()


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_transformations_of_corejax(name: str, transformation: str) -> None:
    fun, transform = FUNCTIONS[name], TRANSFORMATIONS[transformation]
    got, wanted = transform(corejax, corejax.from_jax(fun))(X), transform(jax, fun)(X)
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=3e-5, atol=3e-5)
    assert got.dtype == wanted.dtype


def test_a_primitive_of_jax_and_pytrees() -> None:
    np.testing.assert_allclose(corejax.from_jax(jax.lax.sin_p, accuracy=None)(X), np.sin(X), rtol=1e-6)
    assert corejax.from_jax(lambda p: {"b": p["a"] + 1})({"a": X})["b"].shape == (4,)


def test_it_is_one_primitive() -> None:
    jaxpr = corejax.make_jaxpr(corejax.from_jax(lambda x: jnp.sin(x) * x))(X).jaxpr
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["jax.call"]


test_kit = corejax_testing.tests_for("to_jax", quick=True)


def test_other_types_than_it_is_traced_for() -> None:
    (call,) = corejax.make_jaxpr(corejax.from_jax(jnp.sin))(X).jaxpr.eqns
    with pytest.raises(TypeError, match=r"jax.call: the operands are f32\[3\]; the program is traced for f32\[4\]"):
        call.primitive.bind(X[:3], **call.params)


def test_there_and_back() -> None:
    twice = corejax.to_jax(corejax.from_jax(lambda x: jnp.sin(x) * x))
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(twice)))(X), np.cos(X) * X + np.sin(X), rtol=1e-6)


def test_what_is_refused() -> None:
    def noisy(x: Any) -> Any:
        jax.debug.print("{}", x)
        return x

    with pytest.raises(NotImplementedError, match="from_jax: noisy has effects"):
        corejax.from_jax(noisy)(X)
    called_back = corejax.from_jax(lambda x: jax.pure_callback(np.sin, x, x))
    np.testing.assert_allclose(called_back(X), np.sin(X), rtol=1e-6)
    with pytest.raises(NotImplementedError, match=r"calls back into Python, .* use corejax.pure_callback"):
        corejax.jit(called_back)(X)
    with pytest.raises(TypeError, match=r"pass corejax.random.key_data"):
        corejax.from_jax(lambda k: k)(corejax.random.key(0))
