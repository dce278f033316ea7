"""Random nested control flow under every transformation: against Python's own control flow, and against jax."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corejax
from corejax.ir import check_jaxpr
from tests.control_flow.random_control_flow import Node, available, bodies, full, function, kinds, plain

X = np.array([0.3, -0.7, 1.1])
W = np.array([0.8, 0.5, -0.6])
DX = np.array([1.0, -0.5, 0.25])
CT = np.array([0.4, 1.3, -0.9])
BATCH = np.stack([X, -X, 0.5 * X + 0.2])

ALL = available(corejax)
FORWARD = tuple(kind for kind in ALL if kind != "custom_vjp")
REVERSE = tuple(kind for kind in ALL if kind != "while")
BOTH = tuple(kind for kind in FORWARD if kind != "while")


@pytest.fixture(scope="module", autouse=True)
def wide() -> Iterator[None]:
    with corejax.config.override(default_dtype_bits=64):
        yield


def jvp(lib: Any, f: Any) -> Callable[[Any, Any], Any]:
    return lambda x, w: lib.jvp(f, (x, w), (DX, CT))[1]


def grad(lib: Any, f: Any) -> Callable[[Any, Any], Any]:
    return lambda x, w: sum(lib.grad(lambda x, w: (f(x, w) * CT).sum(), (0, 1))(x, w))


def linearized(lib: Any, f: Any) -> Callable[[Any, Any], Any]:
    return lambda x, w: lib.linearize(lambda x: f(x, w), x)[1](DX)


def vmap(lib: Any, f: Any) -> Callable[[Any, Any], Any]:
    return lambda x, w: lib.vmap(lambda x: f(x, w))(BATCH * x).sum(0)


# transformations, innermost first -> the kinds of control flow that they go through
FORWARDS: dict[str, tuple[Callable[..., Any], ...]] = {
    "jvp": (jvp,),
    "vmap of jvp": (jvp, vmap),
    "jvp of vmap": (vmap, jvp),
    "linearize": (linearized,),
}
REVERSES: dict[str, tuple[Callable[..., Any], ...]] = {
    "grad": (grad,),
    "vmap of grad": (grad, vmap),
    "grad of vmap": (vmap, grad),
    "grad of grad": (grad, grad),
}
MIXED: dict[str, tuple[Callable[..., Any], ...]] = {
    "jvp of grad": (grad, jvp),
    "grad of jvp": (jvp, grad),
    "linearize of jvp of vmap": (vmap, jvp, linearized),
}


def nest(lib: Any, transforms: tuple[Callable[..., Any], ...], f: Any) -> Any:
    for transform in transforms:
        f = transform(lib, f)
    return f


class Loop:
    """corejax with `vmap` as Python's loop, for the plain meaning of a program."""

    def __getattr__(self, name: str) -> Any:
        return getattr(corejax, name)

    def vmap(self, f: Any) -> Any:
        return lambda xs: corejax.numpy.stack([f(x) for x in xs])


def check(body: tuple[Node, ...], transforms: tuple[Callable[..., Any], ...]) -> None:
    """The program means what the plain one does: eagerly, compiled, and as a checked program."""
    want = nest(Loop(), transforms, function(body, plain(corejax)))(X, W)
    f = nest(corejax, transforms, function(body, full(corejax)))
    np.testing.assert_allclose(f(X, W), want, rtol=1e-8, atol=1e-9)
    check_jaxpr(corejax.make_jaxpr(f)(X, W))
    np.testing.assert_allclose(corejax.jit(f)(X, W), want, rtol=1e-8, atol=1e-9)


few = settings(max_examples=5)


@settings(max_examples=8)
@given(bodies(2, ALL), st.sampled_from([(), (vmap,), (vmap, vmap)]))
def test_values(body: tuple[Node, ...], transforms: tuple[Callable[..., Any], ...]) -> None:
    check(body, transforms)


@pytest.mark.parametrize("name", FORWARDS)
@few
@given(body=bodies(2, FORWARD))
def test_forward_mode(name: str, body: tuple[Node, ...]) -> None:
    check(body, FORWARDS[name])


@pytest.mark.parametrize("name", REVERSES)
@few
@given(body=bodies(2, REVERSE))
def test_reverse_mode(name: str, body: tuple[Node, ...]) -> None:
    check(body, REVERSES[name])


@pytest.mark.parametrize("name", MIXED)
@few
@given(body=bodies(2, BOTH))
def test_mixed_modes(name: str, body: tuple[Node, ...]) -> None:
    check(body, MIXED[name])


@settings(max_examples=6)
@given(body=bodies(2, ALL), name=st.sampled_from(["", *FORWARDS, *REVERSES, *MIXED]))
def test_against_jax(body: tuple[Node, ...], name: str) -> None:
    jax = pytest.importorskip("jax")
    used = set(kinds(body))
    if ("while" in used and name not in ("", *FORWARDS)) or ("custom_vjp" in used and name not in ("", *REVERSES)):
        name = ""
    transforms = {"": (), **FORWARDS, **REVERSES, **MIXED}[name]
    ours = nest(corejax, transforms, function(body, full(corejax)))(X, W)
    with jax.enable_x64(True):
        theirs = jax.jit(nest(jax, transforms, function(body, full(jax))))(X, W)
    np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", *FORWARDS, *REVERSES, *MIXED])
def test_deeper(name: str) -> None:
    allowed = ALL if not name else FORWARD if name in FORWARDS else REVERSE if name in REVERSES else BOTH

    @settings(max_examples=60)
    @given(body=bodies(3, allowed))
    def run(body: tuple[Node, ...]) -> None:
        check(body, {"": (), **FORWARDS, **REVERSES, **MIXED}[name])

    run()
