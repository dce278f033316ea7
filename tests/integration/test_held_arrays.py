"""Objects that say by `__corejax_array__` which array they are, where that is a value being transformed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax

Function = Callable[[Any], Any]
X = np.array([0.5, -1.0, 2.0], np.float32)


class Held:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __corejax_array__(self) -> Any:
        return self.value


class Proxy(Held):
    """One that has its array's attributes, as Flax's variables do."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.value, name)


# functions of two arrays
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "x + y": lambda x, y: x + y,
    "x @ y": lambda x, y: x @ y,
    "numpy": lambda x, y: jnp.where(x > 0, jnp.sin(y), x),
    "lax.mul": lambda x, y: lax.mul(y, x),
    "lax.sin": lambda x, y: lax.sin(y),
    "dot": lambda x, y: lax.dot(y, x),
    "select": lambda x, y: lax.select(x > 0, y, x),
    "update": lambda x, y: lax.dynamic_update_slice(jnp.zeros(5) + x[0], y, (1,)),
    "cond": lambda x, y: lax.cond(x[0] > 0, lambda y: y * 2, lambda y: y, y),
    "scan": lambda x, y: lax.scan(lambda c, y: (c + y, c * y), 0.0, y),
    "checkpoint": lambda x, y: corejax.checkpoint(jnp.sin)(y),
}
TRANSFORMATIONS: dict[str, Callable[[Function], Any]] = {
    "jvp": lambda f: corejax.jvp(f, (X,), (X,)),
    "jacrev": lambda f: corejax.jacrev(f)(X),
    "hessian": lambda f: corejax.hessian(f)(X),
    "vmap": lambda f: corejax.vmap(f)(np.stack([X, 2 * X])),
    "jit of jacfwd": lambda f: corejax.jit(corejax.jacfwd(f))(X),
    "scan of vmap": lambda f: lax.scan(lambda c, x: (c, corejax.vmap(f)(x)), 0, np.stack([X, X]).reshape(2, 1, 3)),
}


@pytest.mark.parametrize("kind", [Held, Proxy])
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_they_are_the_values_that_they_hold(transformation: str, kind: type[Held]) -> None:
    transform = TRANSFORMATIONS[transformation]
    ours = transform(lambda x: {name: f(x, kind(x * 3)) for name, f in FUNCTIONS.items()})
    plain = transform(lambda x: {name: f(x, x * 3) for name, f in FUNCTIONS.items()})
    corejax.tree.map(np.testing.assert_array_equal, ours, plain)


def test_what_is_wrong_with_their_values_is_told_once() -> None:
    with pytest.raises(TypeError, match="shapes") as info:
        corejax.vmap(lambda x: lax.add(x, Held(jnp.ones(2))))(np.stack([X, X]))
    assert info.value.__context__ is None


def test_a_value_of_a_transformation_inside_is_none_of_a_programs_constants() -> None:
    kept = []

    def program(x: Any) -> Any:
        y = corejax.grad(lambda x: kept.append(x) or x * x)(x)
        return y + kept[0]

    with pytest.raises(corejax.errors.UnexpectedTracerError):
        corejax.jit(program)(1.0)
