"""Random programs: what `checkify` says failed first is what fails first when Python runs the program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corejax
import corejax.numpy as jnp
from corejax import checkify, lax

XS = np.array([0.5, -1.0, 2.0], np.float32)


@dataclass(frozen=True)
class Node:
    """A step of a program: its kind, a number, and the programs in it."""

    kind: str
    number: int
    bodies: tuple[tuple[Node, ...], ...] = ()


def bodies(depth: int) -> st.SearchStrategy[tuple[Node, ...]]:
    """Programs that nest so deep."""
    plain = st.builds(Node, st.sampled_from(["check", "check", "add", "halve"]), st.integers(0, 4))
    if not depth:
        return st.lists(plain, min_size=1, max_size=3).map(tuple)
    inner = bodies(depth - 1)
    one = st.builds(Node, st.sampled_from(["scan", "fori", "while", "jit", "checkpoint", "custom_jvp"]),
                    st.integers(0, 3), st.tuples(inner))  # fmt: skip
    two = st.builds(Node, st.just("cond"), st.integers(0, 3), st.tuples(inner, inner))
    return st.lists(st.one_of(plain, one, two), min_size=1, max_size=3).map(tuple)


def function(body: tuple[Node, ...], m: Any) -> Callable[[Any], Any]:
    """The program, with control flow and transformations of `m`."""

    def run(x: Any) -> Any:
        for place, node in enumerate(body):
            x = step(node, m, x, place)
        return x

    return run


def step(node: Node, m: Any, x: Any, place: int) -> Any:
    n, fs = node.number, [function(body, m) for body in node.bodies]
    match node.kind:
        case "check":
            if n % 2:
                checkify.check(x < n, f"{place}: {{}} is not below {n}", x)
            else:
                checkify.check(jnp.abs(x) < 2 + n, f"{place}: {{x}} is far from {{n}}", x=x, n=jnp.float32(n))
            return x
        case "add":
            return x + 1 + n
        case "halve":
            return x * 0.5 - n
        case "cond":
            return m.cond(x > n - 1.5, fs[0], fs[1], x)
        case "scan":
            return m.scan(lambda c, a: (fs[0](c + a), c), x, XS)[0]
        case "fori":
            return m.fori_loop(0, n, lambda i, c: fs[0](c) + i, x)
        case "while":
            return m.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, fs[0](c[1])), (0, x))[1]
    return m.wrap(node.kind, fs[0])(x)


class Python:
    """Control flow in Python."""

    cond = staticmethod(lambda p, t, f, x: t(x) if p else f(x))

    @staticmethod
    def scan(f: Any, c: Any, xs: Any) -> Any:
        for x in xs:
            c, _ = f(c, x)
        return c, None

    @staticmethod
    def fori_loop(first: int, last: int, f: Any, c: Any) -> Any:
        for i in range(first, last):
            c = f(i, c)
        return c

    @staticmethod
    def while_loop(p: Any, f: Any, c: Any) -> Any:
        while p(c):
            c = f(c)
        return c

    wrap = staticmethod(lambda kind, f: f)


class Staged:
    """Control flow in the program."""

    cond, scan, fori_loop, while_loop = map(staticmethod, (lax.cond, lax.scan, lax.fori_loop, lax.while_loop))

    @staticmethod
    def wrap(kind: str, f: Any) -> Any:
        if kind == "custom_jvp":
            f = corejax.custom_jvp(f)
            f.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
            return f
        return getattr(corejax, kind)(f)


def fails_first(body: tuple[Node, ...], x: Any) -> str | None:
    """What an eager check raises when Python runs the program."""
    try:
        function(body, Python)(x)
    except checkify.CorejaxRuntimeError as error:
        return said(str(error))
    return None


def said(text: str | None) -> str | None:
    """Without lines."""
    return None if text is None else text.partition(" (`check`")[0]


POINTS = jnp.array([-6.0, 0.25, 3.0])


@pytest.mark.parametrize("compiled", [False, True])
@settings(max_examples=12)
@given(body=bodies(2))
def test_first_failures(compiled: bool, body: tuple[Node, ...]) -> None:
    expected = [fails_first(body, x) for x in POINTS]
    checked = checkify.checkify(function(body, Staged))
    if compiled:
        error, outs = corejax.jit(corejax.vmap(checked))(POINTS)
        batch = error.get_exception()
        found = {} if batch is None else {at[0]: said(str(each)) for at, each in batch.error_mapping.items()}
        assert [found.get(i) for i in range(3)] == expected
    else:
        outs = []
        for x, want in zip(POINTS, expected, strict=True):
            error, out = checked(x)
            assert said(error.get()) == want
            outs.append(out)
    for x, out, failed in zip(POINTS, outs, expected, strict=True):
        if failed is None:
            np.testing.assert_allclose(out, function(body, Python)(x), rtol=1e-5)


@settings(max_examples=5)
@given(body=bodies(1))
def test_gradients_are_those_without_checks(body: tuple[Node, ...]) -> None:
    def loss(x: Any) -> Any:
        error, out = checkify.checkify(scanned)(x)
        return out, error

    def scanned(x: Any) -> Any:
        return lax.scan(lambda c, a: (function(tuple(n for n in body if n.kind != "while"), Staged)(c), None), x, XS)[0]

    without = lambda x: checkify.checkify(scanned, errors=())(x)[1]
    for x in POINTS[:2]:
        slope, error = corejax.grad(loss, has_aux=True)(x)
        np.testing.assert_allclose(slope, corejax.grad(without)(x), rtol=1e-6)
        assert said(error.get()) == said(checkify.checkify(scanned)(x)[0].get())
