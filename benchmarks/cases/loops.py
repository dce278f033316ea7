"""Scans: tracing, first calls, compiled runs, and their gradients."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import corejax
from cases.registry import Sides, X, blocking, case

ROWS, INPUTS, HIDDEN = 8, 16, 64
FRESH = itertools.count(1)


def fresh() -> float:
    """A number that no function closed over before: whoever remembers traces of functions has to trace anew."""
    return 1.0 + next(FRESH) * 2.0**-20


def cell(lib: Any, weights: Any, factor: float) -> Callable[[Any, Any], Any]:
    """A plain recurrent cell, as the body of a scan."""

    def step(h: Any, x: Any) -> Any:
        h = lib.numpy.tanh(x @ weights["in"] + h @ weights["hidden"] + weights["bias"]) * factor
        return h, h

    return step


def loss(lib: Any, factor: float = 1.0) -> Callable[[Any, Any], Any]:
    """The mean square of all states of the recurrent network."""

    def f(weights: Any, xs: Any) -> Any:
        start = lib.numpy.zeros((ROWS, HIDDEN), xs.dtype)
        _, hs = lib.lax.scan(cell(lib, weights, factor), start, xs)
        return lib.numpy.mean(hs * hs)

    return f


def operands(steps: int) -> tuple[Any, Any]:
    """Weights and inputs of the recurrent network."""
    rng = np.random.default_rng(0)
    shapes = {"in": (INPUTS, HIDDEN), "hidden": (HIDDEN, HIDDEN), "bias": (HIDDEN,)}
    weights = {name: rng.standard_normal(s).astype(np.float32) / 10 for name, s in shapes.items()}
    return weights, rng.standard_normal((steps, ROWS, INPUTS)).astype(np.float32)


def both(side: Callable[[Any], Callable[[], Any]]) -> Sides:
    """The same on both sides."""
    return side(corejax), side(jax)


@case("tracing grad of a scan of an RNN cell", 0.2)
def traced_gradient() -> Sides:
    args = operands(100)
    return both(lambda lib: lambda: lib.make_jaxpr(lib.grad(loss(lib, fresh())))(*args))


@case("first eager scan of 100 small steps", 1.0)
def first_eager_scan() -> Sides:
    def side(lib: Any) -> Callable[[], Any]:
        xs = lib.numpy.asarray(np.arange(800, dtype=np.float32).reshape(100, 8))

        def call() -> Any:
            factor = fresh()
            return lib.block_until_ready(
                lib.lax.scan(lambda c, x: (lib.numpy.sin(c * factor) + x, c), lib.numpy.asarray(X), xs)
            )

        return call

    return both(side)


@case("eager scan of 100 small steps, again", None)
def again_eager_scan() -> Sides:
    def side(lib: Any) -> Callable[[], Any]:
        xs, start = (lib.numpy.asarray(a) for a in (np.arange(800, dtype=np.float32).reshape(100, 8), X))

        def body(c: Any, x: Any) -> Any:  # one function for all calls: jax compiles once
            return lib.numpy.sin(c) + x, c

        return lambda: lib.block_until_ready(lib.lax.scan(body, start, xs))

    return both(side)


def _compiled(transform: Callable[[Any], Callable[[Any], Any]]) -> Sides:
    weights, xs = operands(1000)

    def side(lib: Any) -> Callable[[], Any]:
        f = lib.jit(transform(lib)(loss(lib)))
        args = lib.device_put((weights, xs))
        return lambda: lib.block_until_ready(f(*args))

    return both(side)


@case("compiled scan of 1,000 RNN steps", 1.05)
def compiled_scan() -> Sides:
    return _compiled(lambda lib: lambda f: f)


@case("compiled gradient of 1,000 RNN steps", 1.05)
def compiled_gradient() -> Sides:
    return _compiled(lambda lib: lib.grad)


def nested_scans(lib: Any, depth: int, factor: float) -> Callable[[Any], Any]:
    """Scans inside each other's bodies, an operation before and after each; one carry starts from a Python number."""

    def f(c: Any) -> Any:
        return lib.numpy.sin(c * factor)

    for _ in range(depth):
        f = _scanned(lib, f, factor)
    return f


def _scanned(lib: Any, inner: Callable[[Any], Any], factor: float) -> Callable[[Any], Any]:
    def body(carry: Any, _: Any) -> Any:
        c, total = carry
        c = inner(lib.numpy.cos(c) * factor)
        return (c, total + lib.numpy.sum(c)), None

    def scanned(c: Any) -> Any:
        (c, total), _ = lib.lax.scan(body, (c, 0.0), None, length=3)
        return c + total

    return scanned


@case("tracing five nested scans", None)
def traced_nested_scans() -> Sides:
    return both(lambda lib: lambda: lib.make_jaxpr(nested_scans(lib, 5, fresh()))(X))


@case("tracing grad of five nested scans", None)
def traced_nested_gradient() -> Sides:
    def scalar(lib: Any) -> Any:
        f = nested_scans(lib, 5, fresh())
        return lib.grad(lambda x: lib.numpy.sum(f(x)))

    return both(lambda lib: lambda: lib.make_jaxpr(scalar(lib))(X))


def with_reference(lib: Any, factor: float = 1.0) -> Callable[[Any], Any]:
    """A loop that replaces the elements of a reference one by one, each computed from the element before."""

    def f(x: Any) -> Any:
        ref = lib.new_ref(x)

        def body(i: Any, _: Any) -> None:
            ref[i + 1] = lib.numpy.sin(ref[i]) * factor + ref[i + 1]

        lib.lax.fori_loop(0, x.shape[0] - 1, body, None)
        return ref[...]

    return f


def without_reference(lib: Any) -> Callable[[Any], Any]:
    """The loop of `with_reference` with the array as its carry."""

    def f(x: Any) -> Any:
        def body(i: Any, x: Any) -> Any:
            return x.at[i + 1].set(lib.numpy.sin(x[i]) + x[i + 1])

        return lib.lax.fori_loop(0, x.shape[0] - 1, body, x)

    return f


@case("tracing a loop that writes a reference", 0.3)
def traced_reference() -> Sides:
    return both(lambda lib: lambda: lib.make_jaxpr(with_reference(lib, fresh()))(X))


@case("tracing and lowering a loop that writes a reference", 0.3)
def lowered_reference() -> Sides:
    # jax traces reads and writes as primitives on references, and discharges them when it lowers the program.
    return both(lambda lib: lambda: lib.jit(with_reference(lib, fresh())).lower(X))


@case("compiled loop of 10,000 writes to a reference, beside one without", 1.05)
def compiled_reference() -> Sides:
    x = corejax.device_put(np.arange(10_001, dtype=np.float32))
    sides = [corejax.jit(f(corejax)) for f in (with_reference, without_reference)]
    return tuple(blocking(corejax, functools.partial(f, x)) for f in sides)


__all__ = ["fresh", "nested_scans"]
