"""Random programs of nested control flow, as trees that any library's functions give a meaning to.

A program maps two f64[3] to one. The same tree runs with corejax's functions, with jax's, and with Python's own `if`,
`for` and `while`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import strategies as st

XS = np.linspace(-1.0, 1.0, 9).reshape(3, 3)

# name -> function of (lax, x, w): smooth and tame
OPERATIONS: dict[str, Callable[..., Any]] = {
    "sin": lambda lax, x, w: lax.sin(x),
    "tanh": lambda lax, x, w: lax.tanh(x + w * 0.5),
    "mul": lambda lax, x, w: x * w,
    "sub": lambda lax, x, w: w - x * 0.5,
    "cos": lambda lax, x, w: lax.cos(x) + x * 0.3,
    "square": lambda lax, x, w: lax.tanh(x) * lax.tanh(x),
    "sum": lambda lax, x, w: x + 0.1 * x.sum(),
    "rev": lambda lax, x, w: lax.rev(x, (0,)) * 0.9,
    "ignores x": lambda lax, x, w: w * 0.7,
    "constant": lambda lax, x, w: x * 0.0 + XS[1],
}
LOOPS = ("while", "fori", "scan", "map")
WRAPPERS = ("jit", "checkpoint", "custom_jvp", "custom_vjp")


@dataclass(frozen=True)
class Node:
    """One step: an operation, or control flow around bodies.

    Attributes:
        kind: an operation's name, or a kind of control flow.
        bodies: sequences of steps.
        number: iterations, or the threshold of a predicate.
    """

    kind: str
    bodies: tuple[tuple[Node, ...], ...] = ()
    number: int = 0

    def __str__(self) -> str:
        inner = " | ".join("; ".join(map(str, body)) for body in self.bodies)
        return f"{self.kind}{self.number or ''}{f'({inner})' if self.bodies else ''}"


def kinds(body: tuple[Node, ...]) -> Iterator[str]:
    """Every kind in a program."""
    for node in body:
        yield node.kind
        for inner in node.bodies:
            yield from kinds(inner)


def bodies(depth: int, available: tuple[str, ...]) -> st.SearchStrategy[tuple[Node, ...]]:
    """Sequences of steps that nest so deep."""
    plain = st.builds(Node, st.sampled_from(sorted(OPERATIONS)))
    if depth == 0:
        return st.lists(plain, max_size=2).map(tuple)
    inner = bodies(depth - 1, available)
    nested = st.one_of(
        *(st.builds(Node, st.just(kind), st.tuples(*[inner] * _count(kind)), st.integers(0, 3)) for kind in available)
    )
    return st.lists(st.one_of(plain, nested, nested), min_size=1, max_size=3).map(tuple)


def _count(kind: str) -> int:
    return {"cond": 2, "switch": 3}.get(kind, 1)


def function(body: tuple[Node, ...], lib: Any) -> Callable[[Any, Any], Any]:
    """The program with a library's functions."""

    def run(x: Any, w: Any) -> Any:
        for node in body:
            x = _step(node, lib, x, w)
        return x

    return run


def _step(node: Node, lib: Any, x: Any, w: Any) -> Any:
    lax, n = lib.lax, node.number
    if node.kind in OPERATIONS:
        return OPERATIONS[node.kind](lax, x, w)
    fs = [function(body, lib) for body in node.bodies]
    f = fs[0]
    match node.kind:
        case "cond":  # the first branch closes over its operands, the second one takes them
            return lax.cond(x.sum() > n - 1.5, lambda y: f(x, w) * y, lambda y: fs[1](y, w), x)
        case "switch":
            index = lax.convert_element_type(x[0] * 3.0, np.int32)
            return lax.switch(index, [lambda y, g=g: g(y, w) for g in fs], x)
        case "while":  # as many rounds as the data says
            rounds = lax.convert_element_type(x[1] > 0.0, np.int32) + n
            more = lambda c: c[0] < rounds
            return lax.while_loop(more, lambda c: (c[0] + 1, f(c[1], w) * 0.9), (0 * rounds, x))[1]
        case "fori":
            return lax.fori_loop(0, n, lambda i, c: f(c, w) + 0.1 * lax.convert_element_type(i, np.float64), x)
        case "scan":
            h, ys = lax.scan(lambda h, a: (f(h * 0.9 + a, w), h * a), x, XS, reverse=n % 2 == 1, unroll=1 + n // 2)
            return h + 0.1 * ys[1]
        case "map":
            return x + lax.map(lambda a: f(x * a, w), XS)[n % 3]
        case "custom_jvp":
            return lib.custom_jvp(f)(x, w)
        case "custom_vjp":
            return lib.custom_vjp(f)(x, w)
    return getattr(lib, node.kind)(f)(x, w)


class PlainLax:
    """`lax` with Python's own control flow."""

    def __init__(self, lax: Any) -> None:
        self._lax = lax

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lax, name)

    def cond(self, pred: Any, true_fun: Any, false_fun: Any, *operands: Any) -> Any:
        return (true_fun if pred else false_fun)(*operands)

    def switch(self, index: Any, branches: Any, *operands: Any) -> Any:
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)

    def while_loop(self, more: Any, body: Any, carry: Any) -> Any:
        while more(carry):
            carry = body(carry)
        return carry

    def fori_loop(self, lower: int, upper: int, body: Any, carry: Any) -> Any:
        for i in range(lower, upper):
            carry = body(i, carry)
        return carry

    def scan(self, f: Any, carry: Any, xs: Any, reverse: bool, unroll: int) -> Any:
        ys: dict[int, Any] = {}
        for i in reversed(range(len(xs))) if reverse else range(len(xs)):
            carry, ys[i] = f(carry, xs[i])
        return carry, ys

    def map(self, f: Any, xs: Any) -> Any:
        return [f(x) for x in xs]


def plain(lib: Any) -> Any:
    """A library's operations with Python's control flow, and nothing around functions."""
    return SimpleNamespace(lax=PlainLax(lib.lax), **dict.fromkeys(WRAPPERS, lambda f: f))


def full(lib: Any) -> Any:
    """A library's operations and control flow, with custom rules that say what differentiation says."""

    def custom_jvp(f: Any) -> Any:
        g = lib.custom_jvp(f)
        g.defjvp(lambda primals, tangents: lib.jvp(f, primals, tangents))
        return g

    def custom_vjp(f: Any) -> Any:
        g = lib.custom_vjp(f)
        g.defvjp(lambda x, w: (f(x, w), (x, w)), lambda res, ct: lib.vjp(f, *res)[1](ct))
        return g

    return SimpleNamespace(
        lax=lib.lax,
        jit=lib.jit,
        checkpoint=getattr(lib, "checkpoint", None),
        custom_jvp=custom_jvp,
        custom_vjp=custom_vjp,
    )


def available(lib: Any) -> tuple[str, ...]:
    """The kinds of control flow that a library has."""
    found = ["cond", "switch"]
    functions = {"while": "while_loop", "fori": "fori_loop", "scan": "scan", "map": "map"}
    found += [kind for kind in LOOPS if hasattr(lib.lax, functions[kind])]
    return (*found, *(kind for kind in WRAPPERS if hasattr(lib, kind)))
