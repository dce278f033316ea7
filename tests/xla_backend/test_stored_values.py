"""Values at the end of long chains are stored on CPUs, so that XLA does not compute them repeatedly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import Primitive, abstract_eval_rules, xla_translations

X, W = np.linspace(-1, 1, 32 * 16, dtype=np.float32).reshape(32, 16), np.eye(16, dtype=np.float32) * 0.5
STORED = "identity"


def residual(h: Any, w: Any) -> Any:
    """Return the result of a layer, which has two uses in the next."""
    return jnp.tanh(h @ w) + 0.1 * h


def network(layer: Callable[..., Any], depth: int) -> Callable[..., Any]:
    """Return a network of equal layers."""

    def apply(w: Any, x: Any) -> Any:
        for _ in range(depth):
            x = layer(x, w)
        return jnp.mean(x**2)

    return apply


def flops(fun: Callable[..., Any], *args: Any) -> float:
    """Return the operations of a compiled function, as XLA counts them after fusion."""
    return float(corejax.jit(fun).lower(*args).compile().cost_analysis()["flops"])


def text(fun: Callable[..., Any], *args: Any) -> str:
    """Return a function's program as text."""
    return corejax.jit(fun).lower(*args).as_text()


def in_a_loop(depth: int) -> Callable[..., Any]:
    """Return a network whose layers are unrolled in the body of a loop."""
    return lambda w, x: lax.fori_loop(0, 3, lambda i, s: network(residual, depth)(w, x + s), 0.0)


MAKERS: dict[str, Callable[[int], Callable[..., Any]]] = {
    "forward": lambda depth: network(residual, depth),
    "jitted layers": lambda depth: network(corejax.jit(residual), depth),
    "custom rules": lambda depth: network(lambda h, w: corejax.nn.relu(h @ w) + h, depth),
    "gradient": lambda depth: corejax.grad(network(residual, depth)),
    "gradient of jitted layers": lambda depth: corejax.grad(network(corejax.jit(residual), depth)),
    "vmap": lambda depth: corejax.vmap(network(residual, depth), (None, 0)),
    "body of a loop": in_a_loop,
}


@pytest.mark.parametrize("name", MAKERS)
def test_work_grows_in_proportion_to_depth(name: str) -> None:
    x = np.stack([X, X]) if name == "vmap" else X
    small, large = (flops(MAKERS[name](depth), W, x) for depth in (40, 80))
    assert large < 2.3 * small


@pytest.mark.parametrize("name", ["gradient", "gradient of jitted layers", "body of a loop"])
def test_results_are_the_same(name: str) -> None:
    fun = MAKERS[name](60)
    np.testing.assert_allclose(corejax.jit(fun)(W, X), fun(W, X), rtol=1e-4, atol=1e-7)


def test_one_loop_stays_one_loop() -> None:
    """A long chain is not stored if one loop or two compute its values, however many uses they have in them."""

    def chain(x: Any) -> Any:
        for _ in range(40):
            x = x * jnp.sin(x) + x
        return x

    assert STORED not in text(chain, X)
    assert STORED not in text(lambda x: (lambda y: (y[1:] + 1, y * 2)[1])(chain(x)), X)
    assert STORED not in text(lambda x: (lambda y: (y.sum(0), y @ W))(chain(x)), X)
    assert STORED in text(lambda x: (lambda y: (y.sum(0), y @ W, y.max()))(chain(x)), X)


@pytest.mark.parametrize("name", ["lgamma", "digamma", "erf_inv", "bessel_i0e"])
def test_bodies_of_elementwise_primitives_are_not_stored(name: str) -> None:
    special = getattr(lax, name)
    assert STORED not in text(lambda x: (special(x), special(x).sum()), X)


@pytest.mark.parametrize("program", ["open", "of other arguments", "text"])
def test_parameters_of_other_programs(program: str) -> None:
    """A plugin's primitive may name a parameter as calls do, and give it another meaning."""
    closed = corejax.make_jaxpr(lambda x: x * 2)(X)
    params = {"open": closed.jaxpr, "of other arguments": closed, "text": "x * 2"}
    add = Primitive("acme_add")
    abstract_eval_rules.register(add, lambda x, y, *, call_jaxpr: x)
    xla_translations.register(add, lambda ctx, avals, xs, *, call_jaxpr: ctx.op("add", *xs, out=avals[0]))

    def two_readers(x: Any) -> Any:
        for _ in range(40):
            x = jnp.sin(x) * 1.01
        return add.bind(x, x, call_jaxpr=params[program]) - 2 * x, x.sum(0), x.max()

    np.testing.assert_array_equal(corejax.jit(two_readers)(X)[0], np.zeros_like(X))


def test_very_long_chains_are_divided() -> None:
    """XLA recurses along the operations of a loop; it takes minutes for 10,000, and ends the process at 50,000."""

    def chain(x: Any) -> Any:
        for _ in range(5_000):
            x = jnp.sin(x) * 1.01
        return x

    lowered = corejax.jit(chain).lower(X[0])
    assert 35 <= lowered.as_text().count(f"call @{STORED}") <= 40
    np.testing.assert_allclose(lowered.compile()(X[0]), chain(X[0]), rtol=1e-3, atol=1e-6)


def test_a_value_that_is_a_result_is_not_computed_again() -> None:
    def chain(x: Any) -> Any:
        for _ in range(20):
            x = jnp.sin(x) + x
        return x, (x * x).sum(0), x.max(1)

    assert text(chain, X).count(f"call @{STORED}") == 1


def test_functions_that_combine_elements_call_nothing() -> None:
    def combine(a: Any, b: Any) -> Any:
        for _ in range(300):
            a, b = a + 0.5 * b, b - 0.5 * a
        return 0.5 * (a + b)

    total = corejax.jit(lambda x: lax.reduce(x, np.float32(0), combine, (0,)))(X[:2])
    assert total.shape == X[:2].shape[1:]


def test_symbolic_shapes() -> None:
    [n] = corejax.export.symbolic_shape("n")
    shapes = corejax.ShapeDtypeStruct(W.shape, W.dtype), corejax.ShapeDtypeStruct((n, 16), X.dtype)
    fun = network(residual, 40)
    exported = corejax.export.export(corejax.jit(fun))(*shapes)
    np.testing.assert_allclose(exported.call(W, X), fun(W, X), rtol=1e-4)


def test_other_platforms_store_as_they_like() -> None:
    exported = corejax.export.export(corejax.jit(network(residual, 40)), platforms=["cuda"])(W, X)
    assert STORED not in exported.mlir_module()
