"""The cases: the same work written for corejax and for jax, and the ratio that the project wants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import corejax
import corejax.lax as clax
import corejax.numpy as cnp


@dataclass(frozen=True)
class Case:
    """One comparison.

    Attributes:
        name: what is timed.
        wanted: the ratio corejax / jax that the project wants.
        make: gives the two sides, ready to be called over and over.
    """

    name: str
    wanted: float | None
    make: Callable[[], tuple[Callable[[], Any], Callable[[], Any]]]


CASES: list[Case] = []


def case(name: str, wanted: float | None) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Add a case."""

    def add(make: Callable[[], Any]) -> Callable[[], Any]:
        CASES.append(Case(name, wanted, make))
        return make

    return add


X = np.arange(8, dtype=np.float32) / 8


@case("eager add of two 8-vectors", 0.4)
def eager_add() -> Any:
    a, b = cnp.asarray(X), jnp.asarray(X)
    return lambda: clax.add(a, a), lambda: lax.add(b, b)


@case("eager operator x + x", 0.4)
def eager_operator() -> Any:
    a, b = cnp.asarray(X), jnp.asarray(X)
    return lambda: a + a, lambda: b + b


@case("eager grad of sum(-(sin(x)*2)+x)", 0.08)
def eager_grad() -> Any:
    ours = corejax.grad(lambda x: cnp.sum(-(cnp.sin(x) * 2.0) + x))
    theirs = jax.grad(lambda x: jnp.sum(-(jnp.sin(x) * 2.0) + x))
    a, b = cnp.asarray(X), jnp.asarray(X)
    return lambda: ours(a), lambda: theirs(b)


def _chain(lib: Any, count: int) -> Callable[[Any], Any]:
    """A function of `count` equations."""

    def f(x: Any) -> Any:
        for _ in range(count // 2):
            x = lib.mul(lib.sin(x), x)
        return x

    return f


def _scalar_chain(lib: Any, numpy: Any, count: int) -> Callable[[Any], Any]:
    f = _chain(lib, count)
    return lambda x: numpy.sum(f(x))


def _traced(wrap_ours: Callable[[Any], Any], wrap_theirs: Callable[[Any], Any], scalar: bool = False) -> Any:
    """Tracing of a chain of 2,000 equations under a transformation, on both sides."""
    a, b = cnp.asarray(X), jnp.asarray(X)
    count = 2000

    def ours() -> Any:  # a new function each time: jax remembers traces of old ones
        f = _scalar_chain(clax, cnp, count) if scalar else _chain(clax, count)
        return corejax.make_jaxpr(wrap_ours(f))(a)

    def theirs() -> Any:
        f = _scalar_chain(lax, jnp, count) if scalar else _chain(lax, count)
        return jax.make_jaxpr(wrap_theirs(f))(b)

    return ours, theirs


@case("tracing 2,000 equations", 0.3)
def trace() -> Any:
    return _traced(lambda f: f, lambda f: f)


@case("tracing grad of 2,000 equations", 0.1)
def trace_grad() -> Any:
    return _traced(corejax.grad, jax.grad, scalar=True)


@case("tracing vmap of 2,000 equations", 0.25)
def trace_vmap() -> Any:
    return _traced(corejax.vmap, jax.vmap)


@case("tracing jvp of 2,000 equations", 0.25)
def trace_jvp() -> Any:
    return _traced(lambda f: lambda x: corejax.jvp(f, (x,), (x,)), lambda f: lambda x: jax.jvp(f, (x,), (x,)))


@case("eager vmap of sum(-(sin(x)*2)+x)", 0.25)
def eager_vmap() -> Any:
    ours = corejax.vmap(lambda x: -(cnp.sin(x) * 2.0) + x)
    theirs = jax.vmap(lambda x: -(jnp.sin(x) * 2.0) + x)
    a, b = cnp.asarray(X), jnp.asarray(X)
    return lambda: ours(a), lambda: theirs(b)


@case("lowering 2,000 equations", 0.7)
def lowering() -> Any:
    a, b = cnp.asarray(X), jnp.asarray(X)

    def ours() -> Any:
        return corejax.jit(_chain(clax, 2000)).lower(a)

    def theirs() -> Any:
        return jax.jit(_chain(lax, 2000)).lower(b)

    return ours, theirs


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
def nested_gradients() -> Any:
    ours, theirs = _nested_gradients(corejax, cnp, 5), _nested_gradients(jax, jnp, 5)
    a, b = cnp.asarray(X[3]), jnp.asarray(X[3])
    return lambda: ours(a), lambda: theirs(b)


@case("eager call of a custom_jvp function", 0.2)
def custom_call() -> Any:
    (ours, _), (theirs, _) = _own_rules(corejax, cnp), _own_rules(jax, jnp)
    a, b = cnp.asarray(X), jnp.asarray(X)
    return lambda: ours(a), lambda: theirs(b)


@case("eager grad of custom_jvp and custom_vjp", 0.2)
def custom_gradient() -> Any:
    ours, theirs = _nested_gradients(corejax, cnp, 1), _nested_gradients(jax, jnp, 1)
    a, b = cnp.asarray(X[3]), jnp.asarray(X[3])
    return lambda: ours(a), lambda: theirs(b)


@case("tracing grad of custom_jvp and custom_vjp", 0.2)
def traced_custom_gradient() -> Any:
    ours, theirs = _nested_gradients(corejax, cnp, 1), _nested_gradients(jax, jnp, 1)
    a, b = cnp.asarray(X[3]), jnp.asarray(X[3])
    return lambda: corejax.make_jaxpr(lambda x: ours(x))(a), lambda: jax.make_jaxpr(lambda x: theirs(x))(b)


@case("jitted call of a custom_jvp function", 1.2)
def jitted_custom_call() -> Any:
    (f, _), (g, _) = _own_rules(corejax, cnp), _own_rules(jax, jnp)
    ours, theirs = corejax.jit(f), jax.jit(g)
    a, b = ours(X), theirs(X)
    return lambda: ours(a), lambda: theirs(b)


@case("jitted call on two device arrays", 1.2)
def jitted_call() -> Any:
    ours, theirs = corejax.jit(lambda x, y: x + y), jax.jit(lambda x, y: x + y)
    a, b = ours(X, X), theirs(X, X)
    return lambda: ours(a, a), lambda: theirs(b, b)


@case("compiled matmul of 1024 x 1024", 1.05)
def matmul() -> Any:
    ours, theirs = corejax.jit(lambda x: x @ x), jax.jit(lambda x: x @ x)
    m = np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float32) / 32
    a, b = ours(m), theirs(m)
    return lambda: ours(a).block_until_ready(), lambda: theirs(b).block_until_ready()


@case("compiled train step of a two-layer network", 1.05)
def train_step() -> Any:
    rng = np.random.default_rng(0)
    sizes = [(64, 512), (512,), (512, 10), (10,)]
    weights = [rng.standard_normal(s).astype(np.float32) * 0.1 for s in sizes]
    images = rng.standard_normal((256, 64)).astype(np.float32)
    targets = np.eye(10, dtype=np.float32)[rng.integers(0, 10, 256)]

    def step(lib: Any, numpy: Any) -> Callable[..., Any]:
        def loss(w: Any, x: Any, y: Any) -> Any:
            hidden = numpy.tanh(x @ w[0] + w[1])
            return numpy.mean((hidden @ w[2] + w[3] - y) ** 2)

        def update(w: Any, x: Any, y: Any) -> Any:
            return [p - 0.1 * g for p, g in zip(w, lib.grad(loss)(w, x, y), strict=True)]

        return lib.jit(update)  # type: ignore[no-any-return]

    ours, theirs = step(corejax, cnp), step(jax, jnp)
    a, b = ours(weights, images, targets), theirs(weights, images, targets)
    ca, cb = corejax.device_put((images, targets)), jax.device_put((images, targets))
    return (
        lambda: corejax.block_until_ready(ours(a, *ca)),
        lambda: jax.block_until_ready(theirs(b, *cb)),
    )


def growth() -> tuple[float, float]:
    """Seconds to trace 2,000 and 20,000 equations with corejax: the second is to be at most 11 times the first."""
    import time

    a = cnp.asarray(X)
    best = []
    for count in (2000, 20000):
        times = []
        for _ in range(5):
            start = time.perf_counter()
            corejax.make_jaxpr(_chain(clax, count))(a)
            times.append(time.perf_counter() - start)
        best.append(min(times))
    return best[0], best[1]


IMPORT_OURS = "import corejax.numpy as jnp; import numpy as np; x = jnp.asarray(np.ones(8, np.float32)); x + x"
IMPORT_THEIRS = "import jax.numpy as jnp; import numpy as np; x = jnp.asarray(np.ones(8, np.float32)); x + x"
