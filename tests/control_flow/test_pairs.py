"""Every transformation and kind of control flow inside every other one, by name: (outer, inner) of eleven.

Each gives another function f64[3] -> f64[3]. The pair is compared with the same pair made of Python's own `if`, `for`
and `while`, with functions as they are where nothing but compiling, recomputing or a custom rule is around them, and
with derivatives taken the other way (forward where reverse is meant).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.ir import check_jaxpr

X = np.array([0.3, -0.7, 1.1])
T = np.array([1.0, 0.5, -0.25])
CT = np.array([0.4, 1.3, -0.9])
SCALES = np.array([1.0, 0.5])
STEPS = np.array([[0.1, 0.2, -0.3], [0.5, -0.1, 0.2]])

Function = Callable[[Any], Any]


def base(lib: Any) -> Function:
    return lambda x: lib.lax.sin(x) * x + lib.lax.rev(x, (0,)) * 0.5


def in_vmap(lib: Any, f: Function) -> Function:
    return lambda x: lib.vmap(lambda s: f(x * s))(SCALES).sum(0)


def in_jvp(lib: Any, f: Function) -> Function:
    def pushed(x: Any) -> Any:
        out, tangent = lib.jvp(f, (x,), (T,))
        return out + tangent

    return pushed


def in_grad(lib: Any, f: Function) -> Function:
    return lib.grad(lambda x: (f(x) * CT).sum())


def in_linearize(lib: Any, f: Function) -> Function:
    def linear(x: Any) -> Any:
        out, push = lib.linearize(f, x)
        return out + push(T)

    return linear


def in_cond(lib: Any, f: Function) -> Function:
    return lambda x: lib.lax.cond(x[0] > 0.2, f, lambda y: y * 2.0, x)


def in_while(lib: Any, f: Function) -> Function:
    def run(x: Any) -> Any:
        limit = lib.lax.convert_element_type(x[0] > -5.0, np.int32) + 1
        return lib.lax.while_loop(lambda c: c[0] < limit, lambda c: (c[0] + 1, f(c[1]) * 0.5), (0 * limit, x))[1]

    return run


def in_scan(lib: Any, f: Function) -> Function:
    def run(x: Any) -> Any:
        last, ys = lib.lax.scan(lambda h, a: (f(h) * 0.5 + a, h * h), x, STEPS)
        return last + ys.sum(0)

    return run


def in_custom_jvp(lib: Any, f: Function) -> Function:
    g = lib.custom_jvp(f)
    g.defjvp(lambda primals, tangents: lib.jvp(f, primals, tangents))
    return g


def in_custom_vjp(lib: Any, f: Function) -> Function:
    g = lib.custom_vjp(f)
    g.defvjp(lambda x: (f(x), x), lambda x, ct: lib.vjp(f, x)[1](ct))
    return g


WRAPPERS: dict[str, Callable[[Any, Function], Function]] = {
    "jit": lambda lib, f: lib.jit(f),
    "vmap": in_vmap,
    "jvp": in_jvp,
    "grad": in_grad,
    "linearize": in_linearize,
    "checkpoint": lambda lib, f: lib.checkpoint(f),
    "cond": in_cond,
    "while": in_while,
    "scan": in_scan,
    "custom_jvp": in_custom_jvp,
    "custom_vjp": in_custom_vjp,
}


def plain_scan(lib: Any, f: Function) -> Function:
    def run(x: Any) -> Any:
        total = 0.0
        for a in STEPS:
            x, total = f(x) * 0.5 + a, total + x * x
        return x + total

    return run


def plain_grad(lib: Any, f: Function) -> Function:
    """The gradient by forward mode, one direction after the other."""
    return lambda x: jnp.stack([(corejax.jvp(f, (x,), (e,))[1] * CT).sum() for e in np.eye(3)])


def plain_jvp(lib: Any, f: Function) -> Function:
    """The derivative along T by reverse mode, one output after the other."""

    def pushed(x: Any) -> Any:
        out, pullback = corejax.vjp(f, x)
        return out + jnp.stack([(pullback(e)[0] * T).sum() for e in np.eye(3)])

    return pushed


def same(lib: Any, f: Function) -> Function:
    return f


PLAIN: dict[str, Callable[[Any, Function], Function]] = {
    "jit": same,
    "vmap": lambda lib, f: lambda x: f(x * 1.0) + f(x * 0.5),
    "jvp": plain_jvp,
    "grad": plain_grad,
    "linearize": plain_jvp,
    "checkpoint": same,
    "cond": lambda lib, f: lambda x: f(x) if x[0] > 0.2 else x * 2.0,
    "while": lambda lib, f: lambda x: f(f(x) * 0.5) * 0.5,
    "scan": plain_scan,
    "custom_jvp": same,
    "custom_vjp": same,
}

# What is refused, and must be: the outer one takes derivatives the other way than the inner one has them.
NO_REVERSE_MODE = {("grad", "while")}
NO_FORWARD_MODE = {("jvp", "custom_vjp"), ("linearize", "custom_vjp")}

PAIRS = [(outer, inner) for outer in WRAPPERS for inner in WRAPPERS]
pairs = pytest.mark.parametrize(("outer", "inner"), PAIRS, ids=[f"{o}-of-{i}" for o, i in PAIRS])


@pytest.fixture(scope="module", autouse=True)
def wide() -> Iterator[None]:
    with corejax.config.override(default_dtype_bits=64):
        yield


def made(lib: Any, outer: str, inner: str) -> Function:
    return WRAPPERS[outer](lib, WRAPPERS[inner](lib, base(lib)))


def plainly(outer: str, inner: str) -> Function:
    return PLAIN[outer](corejax, PLAIN[inner](corejax, base(corejax)))


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10)


@pytest.mark.sampled
@pairs
def test_pair(outer: str, inner: str) -> None:
    """Its value eagerly, over a batch, compiled, as a checked program; and its derivative where it has one."""
    f = made(corejax, outer, inner)
    if (outer, inner) in NO_REVERSE_MODE:
        with pytest.raises(Exception, match=r"while.*(scan|fori_loop)") as caught:
            f(X)
        assert isinstance(caught.value, TypeError | ValueError | NotImplementedError)
        return
    if (outer, inner) in NO_FORWARD_MODE:
        with pytest.raises(TypeError, match="custom_vjp"):
            f(X)
        return
    plain = plainly(outer, inner)
    want = plain(X)
    close(f(X), want)
    close(corejax.jit(f)(X), want)
    batch = np.stack([X, X[::-1]])
    close(corejax.vmap(f)(batch), [plain(x) for x in batch])
    check_jaxpr(corejax.make_jaxpr(f)(X))
    if "while" not in (outer, inner):
        close(corejax.grad(lambda x: (f(x) * CT).sum())(X), plain_grad(corejax, plain)(X))
    elif "custom_vjp" not in (outer, inner):
        close(corejax.jvp(f, (X,), (T,))[1], corejax.jvp(plain, (X,), (T,))[1])


@pytest.mark.slow
@pairs
def test_pair_against_jax(outer: str, inner: str) -> None:
    """The value, the gradient and the derivative are jax's, and refused where jax refuses."""
    jax = pytest.importorskip("jax")
    transforms: dict[str, Callable[[Any, Function], Function]] = {
        "value": same,
        "grad": in_grad,
        "jvp": in_jvp,
        "jit of grad": lambda lib, f: lib.jit(in_grad(lib, f)),
        "vmap": in_vmap,
    }
    for name, transform in transforms.items():
        refusal = None
        with jax.enable_x64(True):
            try:
                want = transform(jax, made(jax, outer, inner))(X)
            except (TypeError, ValueError, NotImplementedError) as error:
                refusal = error
        if refusal is None:
            close(transform(corejax, made(corejax, outer, inner))(X), want)
        else:
            with pytest.raises((TypeError, ValueError, NotImplementedError)):
                pytest.fail(f"{name}: jax refuses: {refusal}; got {transform(corejax, made(corejax, outer, inner))(X)}")
