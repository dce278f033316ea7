"""Pytree nodes of classes that take nothing but arrays, and whose metadata may be arrays, as TensorFlow Probability's.

Where nothing is wrong no instance is made of anything but arrays, and structures are hashed where programs
are found by them alone, in `jit`.
"""

from __future__ import annotations

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax


class Operator:
    """Like a linear operator: of a diagonal, with metadata."""

    def __init__(self, diag, metadata):
        if not isinstance(diag, corejax.Array) or diag.ndim < 1:
            raise ValueError(f"a diagonal is an array with an axis, got {diag!r}")
        self.diag, self.metadata = diag, metadata


corejax.tree_util.register_pytree_node(
    Operator, lambda op: ((op.diag,), op.metadata), lambda metadata, children: Operator(*children, metadata)
)

METADATA = np.arange(3)


def op(x):
    return Operator(x, METADATA)


def twice(a):
    return Operator(a.diag * 2.0, a.metadata)


USES = {
    "while_loop": lambda x: lax.while_loop(lambda a: a.diag[1] < 5.0, twice, op(x)).diag,
    "mapped while_loop": lambda x: corejax.vmap(
        lambda y: lax.while_loop(lambda a: a.diag[0] < 5.0, lambda a: op(a.diag + 1.0), op(y[None])).diag
    )(x),
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, a: twice(a), op(x)).diag,
    "scan": lambda x: lax.scan(lambda a, _: (twice(a), twice(a)), op(x), None, length=2)[1].diag,
    "map": lambda x: lax.map(lambda i: op(x * i), jnp.arange(3)).diag,
    "associative_scan": lambda x: lax.associative_scan(lambda a, b: op(a.diag + b.diag), op(x)).diag,
    "cond": lambda x: lax.cond(x[0] < 1.0, twice, lambda a: a, op(x)).diag,
    "switch": lambda x: lax.switch(1, [lambda a: a, twice], op(x)).diag,
    "linear_transpose": lambda x: corejax.linear_transpose(twice, op(x))(op(x))[0].diag,
    "checkpoint": lambda x: corejax.checkpoint(twice)(op(x)).diag,
    "grad": lambda x: corejax.grad(lambda a: jnp.sum(a.diag**2))(op(x)).diag,
    "closure_convert": lambda x: corejax.closure_convert(twice, op(x))[0](op(x)).diag,
    "tree_flatten_with_path": lambda x: corejax.tree.flatten_with_path([op(x)])[0][0][1],
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_nodes_whose_class_takes_arrays_alone(use):
    x = jnp.arange(1.0, 4.0)
    np.testing.assert_allclose(corejax.jit(use)(x), use(x))


def test_errors_name_their_leaves_by_number():
    with pytest.raises(TypeError, match=r"carry\[<flat index 0>\] is float32\[3\] when taken and int32\[3\]"):
        lax.while_loop(lambda a: a.diag[0] < 5.0, lambda a: op(a.diag.astype("int32")), op(jnp.ones(3)))
    with pytest.raises(TypeError, match=r"unhashable type: 'ndarray', in the metadata of pytree node Operator"):
        corejax.jit(twice)(op(jnp.ones(3)))
