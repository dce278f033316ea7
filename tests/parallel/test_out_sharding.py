"""`out_sharding` of functions: the result is there, run and compiled; its values are those without."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import NamedSharding, P, lax, nn, random

X = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
N = np.arange(8) % 4
RAGGED = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
ADD = lambda a, b: a + b

# What has `out_sharding`, as it is called: `kwargs` are its own.
CALLS: dict[str, Callable[..., Any]] = {
    "numpy.arange": lambda **kw: jnp.arange(8, **kw),
    "numpy.array": lambda **kw: jnp.array(X, **kw),
    "numpy.asarray": lambda **kw: jnp.asarray(X, **kw),
    "numpy.bincount": lambda **kw: jnp.bincount(N, length=8, **kw),
    "numpy.broadcast_to": lambda **kw: jnp.broadcast_to(X[:1], (8, 8), **kw),
    "numpy.dot": lambda **kw: jnp.dot(X, X, **kw),
    "numpy.einsum": lambda **kw: jnp.einsum("ij,kj->ik", X, X, **kw),
    "numpy.empty": lambda **kw: jnp.empty((8,), **kw),
    "numpy.full": lambda **kw: jnp.full((8, 2), 3, **kw),
    "numpy.full_like": lambda **kw: jnp.full_like(X, 3, **kw),
    "numpy.matmul": lambda **kw: jnp.matmul(X, X, **kw),
    "numpy.ones": lambda **kw: jnp.ones(8, **kw),
    "numpy.ones_like": lambda **kw: jnp.ones_like(X, **kw),
    "numpy.percentile": lambda **kw: jnp.percentile(X, np.arange(8.0), **kw),
    "numpy.ravel": lambda **kw: jnp.ravel(X, **kw),
    "numpy.repeat": lambda **kw: jnp.repeat(X, 2, 0, **kw),
    "numpy.reshape": lambda **kw: jnp.reshape(X, (4, 16), **kw),
    "numpy.tensordot": lambda **kw: jnp.tensordot(X, X, 1, **kw),
    "numpy.zeros": lambda **kw: jnp.zeros((8,), **kw),
    "numpy.zeros_like": lambda **kw: jnp.zeros_like(X, **kw),
    "lax.broadcast": lambda **kw: lax.broadcast(X, (4,), **kw),
    "lax.broadcast_in_dim": lambda **kw: lax.broadcast_in_dim(X, (8, 8, 2), (0, 1), **kw),
    "lax.broadcasted_iota": lambda **kw: lax.broadcasted_iota(np.int32, (8, 2), 0, **kw),
    "lax.conv_general_dilated": lambda **kw: lax.conv_general_dilated(X[:, None], X[:2, None, :3], (1,), "SAME", **kw),
    "lax.dot": lambda **kw: lax.dot(X, X, **kw),
    "lax.dot_general": lambda **kw: lax.dot_general(X, X, (((1,), (1,)), ((), ())), **kw),
    "lax.empty": lambda **kw: lax.empty((8,), np.int8, **kw),
    "lax.ragged_dot": lambda **kw: lax.ragged_dot(X, np.stack([X, X]), np.array([3, 5]), **kw),
    "lax.ragged_dot_general": lambda **kw: lax.ragged_dot_general(X, np.stack([X, X]), np.array([3, 5]), RAGGED, **kw),
    "lax.reduce": lambda **kw: lax.reduce(X, np.float32(0), ADD, (0,), **kw),
    "lax.reduce_sum": lambda **kw: lax.reduce_sum(X, (0,), **kw),
    "lax.reshape": lambda **kw: lax.reshape(X, (4, 16), **kw),
    "lax.rng_bit_generator": lambda **kw: lax.rng_bit_generator(np.arange(4, dtype=np.uint32), (8,), **kw)[1],
    "nn.initializers.zeros": lambda **kw: nn.initializers.zeros(None, (8,), **kw),
    "nn.initializers.ones": lambda **kw: nn.initializers.ones(None, (8,), **kw),
    "nn.initializers.constant": lambda **kw: nn.initializers.constant(2)(None, (8,), **kw),
    "nn.initializers.normal": lambda **kw: nn.initializers.normal()(random.key(0), (8, 2), **kw),
}
ARGUMENTS = {
    "ball": (2,), "beta": (1.0, 2.0), "binomial": (3.0, 0.5), "categorical": (X[0],), "chisquare": (2.0,),
    "choice": (8,),
    "dirichlet": (np.ones(4),), "double_sided_maxwell": (0.0, 1.0), "f": (2.0, 3.0), "gamma": (2.0,),
    "generalized_normal": (2.0,), "geometric": (0.5,), "loggamma": (2.0,), "multinomial": (8, np.ones(4) / 4),
    "multivariate_normal": (np.zeros(2), np.eye(2)), "orthogonal": (2,), "pareto": (2.0,),
    "permutation": (np.arange(8),),
    "poisson": (2.0,), "randint": ((8,), 0, 9), "rayleigh": (2.0,), "t": (3.0,), "triangular": (0.0, 1.0, 2.0),
    "truncated_normal": (-1.0, 1.0), "wald": (2.0,), "weibull_min": (1.0, 2.0),
}  # fmt: skip


def draws() -> dict[str, Callable[..., Any]]:
    """Every distribution that has it, of eight draws where it takes a shape."""
    found = {}
    for name in dir(random):
        f = getattr(random, name)
        parameters = inspect.signature(f).parameters if inspect.isfunction(f) else {}
        if "out_sharding" in parameters:
            more = {"shape": (8,)} if "shape" in parameters and name != "randint" else {}
            found[f"random.{name}"] = functools.partial(f, random.key(1), *ARGUMENTS.get(name, ()), **more)
    return found


CALLS |= draws()
# Draws are laid out by one decorator: these are of each sort, and the others `slow`.
QUICK = {f"random.{n}" for n in ("bits", "gamma", "multivariate_normal", "normal", "permutation", "randint", "uniform")}
LONG = {name for name in CALLS if name.startswith("random.")} - QUICK


@functools.cache
def compiled(long: bool) -> dict[str, Any]:
    """Results of one program: of the long ones, or of the others."""
    sharding = NamedSharding(corejax.make_mesh((4, 2), ("x", "y")), P("x"))
    names = [name for name in CALLS if (name in LONG) == long]
    return corejax.jit(lambda: {name: CALLS[name](out_sharding=sharding) for name in names})()


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in CALLS])
def test_results_are_there(name: str) -> None:
    call = CALLS[name]
    sharding = NamedSharding(corejax.make_mesh((4, 2), ("x", "y")), P("x"))
    plain = call()
    for out in (call(out_sharding=sharding), compiled(name in LONG)[name]):
        assert out.sharding.is_equivalent_to(sharding, out.ndim)
        assert (out.shape, out.dtype) == (plain.shape, plain.dtype)
        np.testing.assert_allclose(np.asarray(out), np.asarray(plain), rtol=1e-5, atol=1e-6)


def test_every_function_of_jaxs_that_has_it() -> None:
    jax = pytest.importorskip("jax")
    for module in ("numpy", "lax", "random"):
        for name in dir(getattr(jax, module)):
            try:
                wanted = inspect.signature(getattr(getattr(jax, module), name)).parameters
            except (TypeError, ValueError):
                continue
            if "out_sharding" in wanted and hasattr(getattr(corejax, module), name):
                assert f"{module}.{name}" in CALLS


def test_a_sharding_over_no_mesh_changes_nothing() -> None:
    sharding = NamedSharding(corejax.sharding.AbstractMesh((), ()), P(None))  # JAX's `typeof(x).sharding`
    x = jnp.arange(8.0)
    for call in (
        lambda x: random.normal(random.key(0), (8,), out_sharding=sharding) + x,
        lambda x: corejax.reshard(x, sharding),
        lambda x: lax.with_sharding_constraint(x, sharding),
    ):
        assert call(x).sharding == x.sharding
        np.testing.assert_allclose(np.asarray(corejax.jit(call)(x)), np.asarray(call(x)), rtol=1e-6)


def test_specs_over_the_mesh_of_the_context() -> None:
    with corejax.set_mesh(corejax.make_mesh((8,), "x")):
        assert jnp.zeros(8, out_sharding=P("x")).sharding.spec == P("x")
    with pytest.raises(RuntimeError, match=r"zeros: out_sharding: .*mesh"):
        jnp.zeros(8, out_sharding=P("x"))
    with pytest.raises(ValueError, match=r"ones: out_sharding: .* 8 does not divide"):
        jnp.ones(4, out_sharding=NamedSharding(corejax.make_mesh((8,), "x"), P("x")))
    with pytest.raises(TypeError, match=r"normal: out_sharding: expected one of"):
        random.normal(random.key(0), (8,), out_sharding="x")


@pytest.mark.parametrize("name", ["segment_sum", "segment_prod", "segment_max", "segment_min"])
def test_segments_are_laid_out(name: str) -> None:
    mesh = corejax.make_mesh((4,), ("x",), devices=corejax.devices()[:4])
    where = corejax.NamedSharding(mesh, corejax.P("x"))
    data, ids = corejax.numpy.arange(16.0), corejax.numpy.arange(16) % 8
    segments = getattr(corejax.ops, name)
    out = segments(data, ids, 8, out_sharding=where)
    assert out.sharding == where
    np.testing.assert_array_equal(out, segments(data, ids, 8))
    assert corejax.jit(lambda x: segments(x, ids, 8, out_sharding=where))(data).sharding == where
