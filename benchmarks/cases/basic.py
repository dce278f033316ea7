"""Eager operations; tracing and lowering of long programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

import corejax
import corejax.lax as clax
import corejax.numpy as cnp
from cases.registry import Sides, X, case


@case("eager add of two 8-vectors", 0.4)
def eager_add() -> Sides:
    a, b = cnp.asarray(X), jnp.asarray(X)
    return lambda: clax.add(a, a), lambda: lax.add(b, b)


@case("eager operator x + x", 0.4)
def eager_operator() -> Sides:
    a, b = cnp.asarray(X), jnp.asarray(X)
    return lambda: a + a, lambda: b + b


@case("eager grad of sum(-(sin(x)*2)+x)", 0.08)
def eager_grad() -> Sides:
    ours = corejax.grad(lambda x: cnp.sum(-(cnp.sin(x) * 2.0) + x))
    theirs = jax.grad(lambda x: jnp.sum(-(jnp.sin(x) * 2.0) + x))
    a, b = cnp.asarray(X), jnp.asarray(X)
    return lambda: ours(a), lambda: theirs(b)


def chain(lib: Any, count: int) -> Callable[[Any], Any]:
    """A function of `count` equations."""

    def f(x: Any) -> Any:
        for _ in range(count // 2):
            x = lib.mul(lib.sin(x), x)
        return x

    return f


def _scalar_chain(lib: Any, numpy: Any, count: int) -> Callable[[Any], Any]:
    f = chain(lib, count)
    return lambda x: numpy.sum(f(x))


def _traced(wrap_ours: Callable[[Any], Any], wrap_theirs: Callable[[Any], Any], scalar: bool = False) -> Any:
    """Tracing of a chain of 2,000 equations under a transformation, on both sides."""
    a, b = cnp.asarray(X), jnp.asarray(X)
    count = 2000

    def ours() -> Any:  # a new function each time: jax remembers traces of old ones
        f = _scalar_chain(clax, cnp, count) if scalar else chain(clax, count)
        return corejax.make_jaxpr(wrap_ours(f))(a)

    def theirs() -> Any:
        f = _scalar_chain(lax, jnp, count) if scalar else chain(lax, count)
        return jax.make_jaxpr(wrap_theirs(f))(b)

    return ours, theirs


@case("tracing 2,000 equations", 0.15)
def trace() -> Sides:
    return _traced(lambda f: f, lambda f: f)


@case("tracing grad of 2,000 equations", 0.06)
def trace_grad() -> Sides:
    return _traced(corejax.grad, jax.grad, scalar=True)


@case("tracing vmap of 2,000 equations", 0.11)
def trace_vmap() -> Sides:
    return _traced(corejax.vmap, jax.vmap)


@case("tracing jvp of 2,000 equations", 0.15)
def trace_jvp() -> Sides:
    return _traced(lambda f: lambda x: corejax.jvp(f, (x,), (x,)), lambda f: lambda x: jax.jvp(f, (x,), (x,)))


@case("eager vmap of sum(-(sin(x)*2)+x)", 0.09)
def eager_vmap() -> Sides:
    ours = corejax.vmap(lambda x: -(cnp.sin(x) * 2.0) + x)
    theirs = jax.vmap(lambda x: -(jnp.sin(x) * 2.0) + x)
    a, b = cnp.asarray(X), jnp.asarray(X)
    return lambda: ours(a), lambda: theirs(b)


@case("lowering 2,000 equations", 0.25)
def lowering() -> Sides:
    a, b = cnp.asarray(X), jnp.asarray(X)

    def ours() -> Any:
        return corejax.jit(chain(clax, 2000)).lower(a)

    def theirs() -> Any:
        return jax.jit(chain(lax, 2000)).lower(b)

    return ours, theirs
