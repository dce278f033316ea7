"""`checkpoint_name`: the identity, under every transformation."""

from __future__ import annotations

import numpy as np

import corejax
import corejax.numpy as jnp
from corejax.ad_checkpoint import checkpoint_name

F = np.float32
X = np.array([0.5, -1.0, 2.0], F)


def test_checkpoint_name_is_the_identity():
    tree = {"a": X, "b": [F(2), np.arange(3)]}
    got = checkpoint_name(tree, "t")
    assert corejax.tree_util.tree_structure(got) == corejax.tree_util.tree_structure(tree)
    np.testing.assert_array_equal(np.asarray(got["b"][1]), np.arange(3))
    (eqn,) = corejax.make_jaxpr(lambda x: checkpoint_name(x, "t"))(X).eqns
    assert str(eqn.primitive.name) == "name" and eqn.params == {"name": "t"}

    def f(x):
        return jnp.sum(jnp.sin(checkpoint_name(x, "x")) ** 2)

    def g(x):
        return jnp.sum(jnp.sin(x) ** 2)

    for transform in (corejax.grad, corejax.hessian, lambda h: corejax.jit(corejax.grad(h))):
        np.testing.assert_allclose(np.asarray(transform(f)(X)), np.asarray(transform(g)(X)), rtol=1e-6)
    batch = np.stack([X, 2 * X])
    np.testing.assert_allclose(np.asarray(corejax.vmap(f)(batch)), np.asarray(corejax.vmap(g)(batch)), rtol=1e-6)
