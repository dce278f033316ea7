"""Callable objects as functions: their `__name__` may be anything, and they may have every attribute, as mocks do."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp


class Nameless:
    __name__ = None

    def __call__(self, x):
        return x * 2.0


class Anything:
    def __getattr__(self, name):
        return Anything()

    def __call__(self, x):
        return x * 2.0


TRANSFORMATIONS = {
    "jit": corejax.jit,
    "vmap": lambda f: corejax.vmap(f),
    "grad": lambda f: lambda x: corejax.grad(lambda x: jnp.sum(f(x)))(x) * x,
    "value_and_grad": lambda f: lambda x: corejax.vmap(corejax.value_and_grad(f))(x)[0],
    "jacfwd": lambda f: lambda x: corejax.jacfwd(f)(x) @ x,
    "jacrev": lambda f: lambda x: corejax.jacrev(f)(x) @ x,
    "make_jaxpr": lambda f: lambda x: corejax.eval_jaxpr(corejax.make_jaxpr(f)(x).jaxpr, [], [x])[0],
    "eval_shape": lambda f: lambda x: x * 2.0 if corejax.eval_shape(f, x).shape == (1,) else x,
    "closure_convert": lambda f: lambda x: corejax.closure_convert(f, x)[0](x),
    "pmap": lambda f: corejax.pmap(f),
    "cond": lambda f: lambda x: corejax.lax.cond(True, f, f, x),
}


@pytest.mark.sampled
@pytest.mark.parametrize("f", [Nameless(), Anything()], ids=["no name", "every attribute"])
@pytest.mark.parametrize("transform", TRANSFORMATIONS.values(), ids=TRANSFORMATIONS)
def test_callable_objects(transform, f):
    np.testing.assert_allclose(transform(f)(jnp.array([1.5])), [3.0])


def test_checkpoint():
    assert corejax.checkpoint(Nameless())(1.5) == 3.0
