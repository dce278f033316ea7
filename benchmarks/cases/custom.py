"""Functions with derivative rules of their own, and gradients of gradients."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

import corejax
import corejax.numpy as cnp
from cases.registry import Sides, X, case


def _own_rules(lib: Any, numpy: Any) -> tuple[Any, Any]:
    """sin with a JVP rule, and with VJP rules."""
    f, g = lib.custom_jvp(lambda x: numpy.sin(x)), lib.custom_vjp(lambda x: numpy.sin(x))
    f.defjvp(lambda p, t: (f(*p), numpy.cos(p[0]) * t[0]))
    g.defvjp(lambda x: (g(x), x), lambda x, ct: (numpy.cos(x) * ct,))
    return f, g


def _nested_gradients(lib: Any, numpy: Any, depth: int) -> Any:
    f, g = _own_rules(lib, numpy)

    def h(x: Any) -> Any:
        return f(x) * g(x) * numpy.tanh(x)

    for _ in range(depth):
        h = lib.grad(h)
    return h


@case("eager grad, nested five deep", 0.2)
def nested_gradients() -> Sides:
    ours, theirs = _nested_gradients(corejax, cnp, 5), _nested_gradients(jax, jnp, 5)
    a, b = cnp.asarray(X[3]), jnp.asarray(X[3])
    return lambda: ours(a), lambda: theirs(b)


@case("tracing grad, nested five deep", 0.2)
def traced_nested_gradients() -> Sides:
    a, b = cnp.asarray(X[3]), jnp.asarray(X[3])  # functions are made anew: their traces may be remembered
    return (
        lambda: corejax.make_jaxpr(_nested_gradients(corejax, cnp, 5))(a),
        lambda: jax.make_jaxpr(_nested_gradients(jax, jnp, 5))(b),
    )


@case("eager call of a custom_jvp function", 0.2)
def custom_call() -> Sides:
    (ours, _), (theirs, _) = _own_rules(corejax, cnp), _own_rules(jax, jnp)
    a, b = cnp.asarray(X), jnp.asarray(X)
    return lambda: ours(a), lambda: theirs(b)


@case("eager grad of custom_jvp and custom_vjp", 0.2)
def custom_gradient() -> Sides:
    ours, theirs = _nested_gradients(corejax, cnp, 1), _nested_gradients(jax, jnp, 1)
    a, b = cnp.asarray(X[3]), jnp.asarray(X[3])
    return lambda: ours(a), lambda: theirs(b)


@case("tracing grad of custom_jvp and custom_vjp", 0.2)
def traced_custom_gradient() -> Sides:
    ours, theirs = _nested_gradients(corejax, cnp, 1), _nested_gradients(jax, jnp, 1)
    a, b = cnp.asarray(X[3]), jnp.asarray(X[3])
    return lambda: corejax.make_jaxpr(lambda x: ours(x))(a), lambda: jax.make_jaxpr(lambda x: theirs(x))(b)


@case("jitted call of a custom_jvp function", 1.2)
def jitted_custom_call() -> Sides:
    (f, _), (g, _) = _own_rules(corejax, cnp), _own_rules(jax, jnp)
    ours, theirs = corejax.jit(f), jax.jit(g)
    a, b = ours(X), theirs(X)
    return lambda: ours(a), lambda: theirs(b)
