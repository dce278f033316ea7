"""corejax in JAX: results, derivatives, batches and compiled programs are those of jax's own functions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as cnp
from corejax import lax
from corejax.errors import UnboundAxisError
from corejax.extend import Primitive, find_primitive, jvp_rules, vmap_rules, xla_translations

jax = pytest.importorskip("jax")
pytest.importorskip("corejax_to_jax")
jnp = jax.numpy

X = np.linspace(0.2, 1.4, 4).astype(np.float32)


def square_p() -> Primitive:
    """A primitive with an impl alone, and a JVP rule: JAX calls it back on the host."""
    p = find_primitive("to_jax_tests.square")
    if p is None:
        p = Primitive("to_jax_tests.square", impl=lambda x: np.square(x), abstract_eval=lambda x: x.strip_weak_type())
        jvp_rules.register(p, lambda primals, tangents: (p.bind(*primals), 2 * primals[0] * tangents[0]))
        vmap_rules.register(p, lambda size, vals, dims: (p.bind(*vals), dims[0]))
        xla_translations.register(p, by="host callback")
    return p


def _scan_ours(x: Any) -> Any:
    return lax.scan(lambda c, a: (cnp.sin(c) * a, c + a), cnp.float32(0.3), x)


def _scan_jax(x: Any) -> Any:
    return jax.lax.scan(lambda c, a: (jnp.sin(c) * a, c + a), jnp.float32(0.3), x)


FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "a primitive": (lambda: find_primitive("sin"), lambda x: jnp.sin(x)),
    "an impl alone": (square_p, lambda x: jnp.square(x)),
    "linear algebra": (lambda: lambda x: cnp.linalg.cholesky(cnp.outer(x, x) + cnp.eye(4)),
                       lambda x: jnp.linalg.cholesky(jnp.outer(x, x) + jnp.eye(4))),
    "several results, integers too": (lambda: lambda x: {"a": cnp.sort(x * x), "b": cnp.argmax(x)},
                                      lambda x: {"a": jnp.sort(x * x), "b": jnp.argmax(x)}),
    "scan": (lambda: _scan_ours, _scan_jax),
}  # fmt: skip


def total(f: Any) -> Any:
    """The sum of the results that have derivatives."""
    return lambda x: sum(jnp.sum(y * y) for y in jax.tree.leaves(f(x)) if jnp.issubdtype(y.dtype, jnp.floating))


TRANSFORMATIONS: dict[str, Any] = {
    "eager": lambda f: f,
    "jit": jax.jit,
    "vmap": lambda f: lambda x: jax.vmap(f)(jnp.stack([x, 2 * x])),
    "jit of vmap of grad": lambda f: lambda x: jax.jit(jax.vmap(jax.grad(total(f))))(jnp.stack([x, 2 * x])),
    "hessian": lambda f: jax.hessian(total(f)),
    "jacrev of jacrev": lambda f: jax.jacrev(jax.jacrev(total(f))),
    "jvp in scan": lambda f: lambda x: jax.lax.scan(lambda c, a: (c, jax.jvp(total(f), (a,), (a,))), 0, x[None])[1],
    "linearize": lambda f: lambda x: jax.linearize(total(f), x)[1](x),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(total(f))),
}


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_transformations_of_jax(name: str, transformation: str) -> None:
    make, theirs = FUNCTIONS[name]
    transform = TRANSFORMATIONS[transformation]
    got, wanted = transform(corejax.to_jax(make()))(X), transform(theirs)(X)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=3e-5, atol=3e-5), got, wanted)
    assert jax.tree.map(jnp.dtype, got) == jax.tree.map(jnp.dtype, wanted)


def test_parameters_and_pytrees() -> None:
    reduced = corejax.to_jax(find_primitive("reduce_max"), axes=(0,))
    np.testing.assert_array_equal(reduced(X.reshape(2, 2)), X.reshape(2, 2).max(0))
    both = corejax.to_jax(lambda p, *, scale: {"y": p["w"] * scale})
    assert jax.tree.map(np.shape, both({"w": X}, scale=2.0)) == {"y": (4,)}


def test_the_tangent_is_an_equation_of_its_own() -> None:
    jaxpr = jax.make_jaxpr(jax.grad(corejax.to_jax(find_primitive("sin"))))(1.5)
    assert [e.primitive.name for e in jaxpr.eqns] == ["corejax_call", "corejax_call"]
    assert re.search(r"program=<sin cos>", str(jaxpr))


def test_linear_transpose() -> None:
    cumsum = corejax.to_jax(cnp.cumsum)
    (got,) = jax.linear_transpose(cumsum, X)(X)
    (wanted,) = jax.linear_transpose(jnp.cumsum, X)(X)
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_random_keys() -> None:
    draw = corejax.to_jax(lambda key: (corejax.random.split(key), corejax.random.normal(key, (3,))))
    keys, numbers = jax.vmap(draw)(jax.random.split(jax.random.key(7), 2))
    np.testing.assert_array_equal(
        jax.random.key_data(keys[0]), jax.random.key_data(jax.random.split(jax.random.split(jax.random.key(7), 2)[0]))
    )
    np.testing.assert_allclose(
        numbers, jax.vmap(lambda k: jax.random.normal(k, (3,)))(jax.random.split(jax.random.key(7), 2)), rtol=1e-6
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "uint32", "bool", "complex64"])
def test_dtypes(dtype: str) -> None:
    x = jnp.asarray([0, 1, 2]).astype(dtype)
    got = corejax.to_jax(lambda x: cnp.where(x, x, x))(x)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(got), np.asarray(x))


def test_float64_without_x64() -> None:
    got = corejax.to_jax(lambda x: lax.convert_element_type(x, np.float64) / 3)(X)
    assert got.dtype == np.float64


def test_complex_gradients_follow_jax() -> None:
    z = jnp.asarray([1 + 2j, 0.5 - 1j], np.complex64)
    got = jax.grad(lambda z: jnp.sum(jnp.abs(corejax.to_jax(cnp.exp)(z))))(z)
    np.testing.assert_allclose(got, jax.grad(lambda z: jnp.sum(jnp.abs(jnp.exp(z))))(z), rtol=1e-5)


def test_empty_arrays_and_batches() -> None:
    sin = corejax.to_jax(cnp.sin)
    assert sin(jnp.zeros((0, 2))).shape == (0, 2)
    assert jax.vmap(jax.grad(lambda x: sin(x).sum()))(jnp.zeros((0, 3))).shape == (0, 3)


def test_export_for_two_platforms() -> None:
    exported = jax.export.export(jax.jit(corejax.to_jax(cnp.sinc)), platforms=("cpu", "cuda"))(X)
    np.testing.assert_allclose(exported.call(X), jnp.sinc(X), rtol=1e-6)


def test_a_pallas_kernel() -> None:
    from jax.experimental import pallas

    erfcx = corejax.to_jax(cnp.tanh)

    def kernel(x_ref: Any, out_ref: Any) -> None:
        out_ref[...] = erfcx(x_ref[...])

    got = pallas.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(X.shape, X.dtype), interpret=True)(X)
    np.testing.assert_allclose(got, np.tanh(X), rtol=1e-6)


def test_equal_calls_are_compiled_once() -> None:
    counted = []
    f = corejax.to_jax(lambda x: counted.append(None) or cnp.sin(x) * x)
    for _ in range(3):
        jax.grad(lambda x: f(x).sum())(X)
        jax.jit(f)(X)
    assert len(counted) == 1


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_effects_are_refused() -> None:
    def noisy(x: Any) -> Any:
        corejax.debug.print("{}", x)
        return x

    with pytest.raises(NotImplementedError, match=r"to_jax: noisy has effects .* move them out of the function"):
        corejax.to_jax(noisy)(X)


def test_errors_of_corejax_name_the_primitive() -> None:
    p = Primitive("to_jax_tests.picky", abstract_eval=lambda x: float("no float"))
    with pytest.raises(ValueError, match=r"^to_jax_tests.picky: could not convert"):
        corejax.to_jax(p)(X)


def test_symbolic_sizes_are_refused() -> None:
    (n,) = jax.export.symbolic_shape("n")
    with pytest.raises(NotImplementedError, match=r"to_jax: sin: an argument has the symbolic shape \(n\)"):
        jax.export.export(jax.jit(corejax.to_jax(find_primitive("sin"))))(jax.ShapeDtypeStruct((n,), np.float32))


def test_axes_of_jax_are_refused() -> None:
    def summed(x: Any) -> Any:
        return lax.psum(x, "i")

    with pytest.raises(
        UnboundAxisError, match=r"^to_jax: summed has a collective .*\(psum: no axis is named 'i'\); call jax"
    ):
        jax.vmap(corejax.to_jax(summed), axis_name="i")(X)
    with pytest.raises(NameError, match=r"^name 'axis' is not defined"):
        corejax.to_jax(lambda x: axis)(X)  # type: ignore[name-defined]  # noqa: F821  # misspelt


@pytest.mark.parametrize("bridge", ["to_jax", "from_jax"])
def test_another_version_is_refused(bridge: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "__version__", "0.99.0")
    with pytest.raises(ImportError, match=rf"{bridge}: sin: jax 0.99.0 is not supported; install jax>=0.10,<0.11"):
        getattr(corejax, bridge)(cnp.sin)
