"""`optimization_barrier`: the identity on pytrees, its programs, derivatives and batches."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.extend.programs import check_jaxpr

F = np.float32
X = np.array([0.5, -1.0, 2.0], F)


def test_barrier_is_the_identity_on_pytrees():
    tree = {"a": X, "b": (F(2), np.arange(3))}
    for run in (lax.optimization_barrier, corejax.jit(lax.optimization_barrier)):
        got = run(tree)
        assert corejax.tree_util.tree_structure(got) == corejax.tree_util.tree_structure(tree)
        np.testing.assert_array_equal(np.asarray(got["b"][1]), np.arange(3))
    assert lax.optimization_barrier(()) == ()
    closed = corejax.make_jaxpr(lax.optimization_barrier)(tree)
    check_jaxpr(closed)
    assert "optimization_barrier a b c" in str(closed)
    text = corejax.jit(lax.optimization_barrier).lower(tree).as_text(pretty=False)
    assert text.count("stablehlo.optimization_barrier") == 1


def test_barrier_against_jax():
    jax = pytest.importorskip("jax")

    def f(lax, numpy):
        def inside(x, y):
            x, y = lax.optimization_barrier((numpy.sin(x), y * x))
            return numpy.sum(x * y)

        return inside

    ours, theirs = f(lax, jnp), f(jax.lax, jax.numpy)
    y = np.array([1.0, 3.0, -2.0], F)
    np.testing.assert_allclose(ours(X, y), theirs(X, y), rtol=1e-6)
    for wrap in ("grad", "hessian"):
        np.testing.assert_allclose(
            np.asarray(getattr(corejax, wrap)(ours)(X, y)), getattr(jax, wrap)(theirs)(X, y), rtol=1e-5, atol=1e-6
        )
    got = corejax.vmap(corejax.grad(ours), (0, None))(np.stack([X, y]), y)
    np.testing.assert_allclose(np.asarray(got), jax.vmap(jax.grad(theirs), (0, None))(np.stack([X, y]), y), rtol=1e-5)


def test_barrier_of_a_zero_tangent():
    """Only operands that move have tangents behind the barrier."""
    closed = corejax.make_jaxpr(lambda x, y: corejax.jvp(lambda x: lax.optimization_barrier((x, y)), (x,), (x,)))(X, X)
    counts = [len(e.invars) for e in closed.eqns if e.primitive.name == "optimization_barrier"]
    assert counts == [2, 1]
    with pytest.raises(TypeError, match=r"argument operand\[0\] is 'a'"):
        lax.optimization_barrier(["a"])
