"""Random programs with references, beside jax: eager, compiled, differentiated and mapped.

A program is a tree of statements, drawn from a seed. It runs with corejax, with jax's references, and with jax and no
references: `Threaded` passes the values of references into loops and branches, and out of them.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy
import corejax.ref

jax = pytest.importorskip("jax")

Statement = tuple[str, dict[str, Any]]

SIMPLE = ("whole", "element", "slice", "addupdate", "swap", "view", "custom")
NESTED = ("scan", "scanned", "fori_loop", "while_loop", "cond", "switch", "jit", "jit of references", "vmap",
          "checkpoint", "inner reference", "run_state")  # fmt: skip


def draw(rng: np.random.Generator, depth: int, without: frozenset[str] = frozenset()) -> list[Statement]:
    """Draw statements, nested at most `depth` times."""
    found: list[Statement] = []
    for _ in range(int(rng.integers(1, 4))):
        kinds = [*SIMPLE, *(NESTED if depth else ())]
        kind = str(rng.choice([k for k in kinds if k not in without]))
        i, j = (int(k) for k in rng.permutation(3)[:2])
        about = {"i": i, "j": j, "k": int(rng.integers(3)), "c": float(rng.uniform(-1, 1))}
        if kind in NESTED:
            about["bodies"] = [draw(rng, depth - 1, without) for _ in range(2)]
        found.append((kind, about))
    return found


def run(lib: Any, statements: list[Statement], refs: list[Any], x: Any) -> None:
    """Run statements on three references to vectors of three numbers."""
    for kind, about in statements:
        run_one(lib, kind, refs, x, **about)


def run_one(
    lib: Any, kind: str, refs: list[Any], x: Any, i: int, j: int, k: int, c: float, bodies: Any = ()
) -> None:  # fmt: skip
    """Run one statement."""
    jnp, lax = lib.numpy, lib.lax
    ref, other = refs[i], refs[j]
    first, second = (functools.partial(run, lib, body) for body in (*bodies, *[[]] * (2 - len(bodies))))
    if kind == "whole":
        ref[...] = jnp.sin(ref[...]) * x + other[...] * c
    elif kind == "element":
        ref[k] = x.sum() * c + other[k]
    elif kind == "slice":
        ref[1:] += jnp.cos(other[:2]) * c
    elif kind == "addupdate":
        lib.ref.addupdate(ref, slice(0, 2), x[1:] * c)
    elif kind == "swap":
        ref[...] = 0.5 * ref[...] + c * lib.ref.swap(other, ..., jnp.tanh(x))
    elif kind == "view":
        if isinstance(ref, Cell):
            ref[k : k + 1] = ref[k : k + 1] * x[:1] + c
        else:
            part = ref.at[k : k + 1]
            part[...] = part[...] * x[:1] + c
    elif kind == "custom":
        ref[...] = custom(lib)(ref[...], c * other[...])
    elif kind == "scan":

        def body(carry: Any, y: Any) -> Any:
            first(refs, carry * y)
            return jnp.sin(carry), ref[k]

        carry, ys = lax.scan(body, x, jnp.arange(3.0))
        other[...] = other[...] + carry + ys * c
    elif kind == "scanned":
        rows = lib.new_ref(jnp.stack([ref[...], other[...]]))

        def of_row(carry: Any, row: Any) -> Any:
            first([row, refs[0], refs[1]], carry)
            return carry + row[...], None

        ref[...] = c * lax.scan(of_row, x, rows)[0] + rows[1]
    elif kind == "fori_loop":
        lax.fori_loop(0, 2, lambda n, _: first(refs, x * (n + c)), None)
    elif kind == "while_loop":

        def step(n: Any) -> Any:
            first(refs, x * n)
            return n + 1

        lax.while_loop(lambda n: n < 3, step, 0)
    elif kind == "cond":
        lax.cond(x.sum() > c, lambda: first(refs, x), lambda: second(refs, c * x))
    elif kind == "switch":
        branches = [lambda: first(refs, x), lambda: second(refs, x), lambda: None]
        lax.switch(jnp.asarray(k), branches)
    elif kind == "jit":
        lib.jit(lambda y: first(refs, y))(c * x)
    elif kind == "jit of references":
        lib.jit(lambda refs, y: first(refs, y))(list(refs), c * x)
    elif kind == "vmap":
        stacked = [lib.new_ref(jnp.stack([r[...], c * r[...]])) for r in refs]
        lib.vmap(lambda refs, y: first(refs, y), in_axes=(0, None))(stacked, x)
        ref[...] = stacked[0][0] * c + stacked[1][1] + stacked[2][...].sum(0)
    elif kind == "checkpoint":

        def again(y: Any) -> Any:
            first(refs, y)
            return jnp.sin(y)

        ref[...] = ref[...] + c * lib.checkpoint(again)(x)
    elif kind == "inner reference":
        own = lib.new_ref(c * x)
        first([own, refs[j], refs[i]], x)
        ref[...] = ref[...] + lib.freeze(own)
    elif kind == "run_state":
        outs = lib.run_state(lambda own: first([own["a"], own["b"], own["c"]], x))(
            {"a": ref[...], "b": other[...], "c": c * x}
        )
        ref[...] = outs["a"] + outs["b"] * outs["c"]


def custom(lib: Any) -> Any:
    """Return a function with a JVP rule of its own, which is not its derivative."""

    @lib.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return x * y + y

    f.defjvp(lambda primals, tangents: (f(*primals), 2.0 * tangents[0] * primals[1] - tangents[1]))
    return f


def function(lib: Any, statements: list[Statement]) -> Callable[[Any], Any]:
    """Return the function `x -> (scalar, last values)` of a program."""

    def f(x: Any) -> Any:
        refs = [lib.new_ref(lib.numpy.arange(3.0) * c) for c in (1.0, -0.5)]
        refs.append(lib.new_ref(x))
        run(lib, statements, refs, x)
        last = [ref[...] for ref in refs]
        return sum((value * weight).sum() for value, weight in zip(last, (1.0, 0.7, -0.3), strict=True)), last

    return f


# -- the libraries -----------------------------------------------------------------------------------------------------


class Cell:
    """A variable that stands for a reference in `Threaded`."""

    def __init__(self, lib: Threaded, value: Any) -> None:
        self.value = value
        lib.cells.append(self)

    def __getitem__(self, index: Any) -> Any:
        return self.value[index]

    def __setitem__(self, index: Any, new: Any) -> None:
        self.value = self.value.at[index].set(new)


class Threaded:
    """Jax's functions for programs with cells: operators pass the values of all cells as arguments and results."""

    numpy, custom_jvp = jax.numpy, jax.custom_jvp

    def __init__(self) -> None:
        self.cells: list[Cell] = []
        self.lax = self.ref = self

    def values(self) -> list[Any]:
        return [cell.value for cell in self.cells]

    def write(self, values: list[Any]) -> None:
        for cell, value in zip(self.cells, values, strict=False):
            cell.value = value

    def threaded(self, fun: Any) -> Any:
        """Return the function `(values, *args) -> (values, result)`."""

        def pure(values: list[Any], *args: Any) -> Any:
            outer, count = self.values(), len(self.cells)
            self.write(values)
            out = fun(*args)
            last = self.values()[:count]
            del self.cells[count:]
            self.write(outer)
            return last, out

        return pure

    def call(self, operator: Any, *args: Any) -> Any:
        """Apply an operator to the values and arguments; it returns the last values and a result."""
        values, out = operator(self.values(), *args)
        self.write(values)
        return out

    def new_ref(self, value: Any) -> Cell:
        return Cell(self, jax.numpy.asarray(value))

    def freeze(self, cell: Cell) -> Any:
        return cell.value

    def swap(self, cell: Cell, index: Any, value: Any) -> Any:
        earlier, cell[index] = cell[index], value
        return earlier

    def addupdate(self, cell: Cell, index: Any, value: Any) -> None:
        cell[index] = cell[index] + value

    def run_state(self, fun: Any) -> Any:
        def run(init: Any) -> Any:
            cells = {name: self.new_ref(x) for name, x in init.items()}
            fun(cells)
            return {name: cell.value for name, cell in cells.items()}

        return run

    def jit(self, fun: Any) -> Any:
        def run(*args: Any) -> Any:
            if not isinstance(args[0], list):
                return self.call(jax.jit(self.threaded(fun)), *args)
            return self.call(jax.jit(self.threaded(functools.partial(fun, args[0]))), *args[1:])

        return run

    def checkpoint(self, fun: Any) -> Any:
        return functools.partial(self.call, jax.checkpoint(self.threaded(fun)))

    def cond(self, predicate: Any, *branches: Any) -> Any:
        return self.call(lambda values: jax.lax.cond(predicate, *map(self.threaded, branches), values))

    def switch(self, index: Any, branches: Any) -> Any:
        return self.call(lambda values: jax.lax.switch(index, list(map(self.threaded, branches)), values))

    def fori_loop(self, first: int, last: int, body: Any, init: Any) -> Any:
        step = self.threaded(body)
        return self.call(
            lambda values: jax.lax.fori_loop(first, last, lambda i, c: step(c[0], i, c[1]), (values, init))
        )

    def while_loop(self, condition: Any, body: Any, init: Any) -> Any:
        step = self.threaded(body)
        return self.call(lambda v: jax.lax.while_loop(lambda c: condition(c[1]), lambda c: step(*c), (v, init)))

    def scan(self, body: Any, init: Any, xs: Any) -> Any:
        rows = isinstance(xs, Cell)

        def inner(carry: Any, x: Any) -> Any:
            x = self.new_ref(x) if rows else x
            carry, y = body(carry, x)
            return carry, x.value if rows else y

        def step(carry: Any, x: Any) -> Any:
            values, (carry, y) = self.threaded(inner)(carry[0], carry[1], x)
            return (values, carry), y

        def operator(values: Any) -> Any:
            (values, carry), ys = jax.lax.scan(step, (values, init), xs.value if rows else xs)
            return values, (carry, ys)

        carry, ys = self.call(operator)
        if rows:
            xs.value, ys = ys, None
        return carry, ys

    def vmap(self, fun: Any, in_axes: Any) -> Any:
        def run(cells: list[Cell], y: Any) -> None:
            def element(values: Any, y: Any) -> Any:
                own = [self.new_ref(x) for x in values]
                fun(own, y)
                return [cell.value for cell in own]

            mapped = jax.vmap(lambda values, y: self.threaded(element)(self.values(), values, y)[1], in_axes)
            for cell, value in zip(cells, mapped([cell.value for cell in cells], y), strict=True):
                cell.value = value

        return run


def with_references(lib: Any) -> Any:
    """Return a library's functions under the names that programs use."""
    names = ("numpy", "lax", "ref", "jit", "vmap", "checkpoint", "custom_jvp", "new_ref", "freeze")
    run_state = corejax.ref.run_state if lib is corejax else None
    return types.SimpleNamespace(run_state=run_state, **{name: getattr(lib, name) for name in names})


# -- tests -------------------------------------------------------------------------------------------------------------

TRANSFORMATIONS: dict[str, Callable[[Any, Any], Callable[[Any], Any]]] = {
    "eager": lambda lib, f: f,
    "jit": lambda lib, f: lib.jit(f),
    "jvp": lambda lib, f: lambda x: lib.jvp(f, (x,), (0.5 * x + 1,)),
    "vmap": lambda lib, f: lambda x: lib.vmap(f)(lib.numpy.stack([x, -x])),
    "grad": lambda lib, f: lib.grad(lambda x: f(x)[0]),
    "jit of value and grad": lambda lib, f: lib.jit(lib.value_and_grad(f, has_aux=True)),
    "vmap of grad": lambda lib, f: lambda x: lib.vmap(lib.grad(lambda x: f(x)[0]))(lib.numpy.stack([x, -x])),
    "linearize": lambda lib, f: lambda x: lib.linearize(lambda x: f(x)[0], x)[1](x + 1),
}
IN_REVERSE = ("grad", "jit of value and grad", "vmap of grad", "linearize")


def drawn(seed: int, depth: int, without: set[str]) -> tuple[list[Statement], Any]:
    """Return a program and its argument."""
    rng = np.random.default_rng(seed)
    return draw(rng, depth, frozenset(without)), rng.uniform(0.2, 1.5, 3).astype(np.float32)


def assert_close(got: Any, wanted: Any) -> None:
    for a, b in zip(corejax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("seed", range(48))
def test_beside_jax_without_references(seed: int) -> None:
    transformation = list(TRANSFORMATIONS)[seed % len(TRANSFORMATIONS)]
    statements, x = drawn(seed, 2, {"while_loop"} if transformation in IN_REVERSE else set())
    transform = TRANSFORMATIONS[transformation]
    got = transform(corejax, function(with_references(corejax), statements))(corejax.numpy.asarray(x))
    wanted = transform(jax, lambda x: function(Threaded(), statements)(x))(jax.numpy.asarray(x))
    assert_close(got, wanted)


# Statements that references of jax do not support under `jvp` or `vmap`, or that jax names otherwise.
NOT_IN_JAX = {"view", "cond", "switch", "run_state", "addupdate", "while_loop"}


@pytest.mark.parametrize("seed", range(24))
def test_beside_references_of_jax(seed: int) -> None:
    transformation = list(TRANSFORMATIONS)[seed % 4]
    statements, x = drawn(100 + seed, 2, NOT_IN_JAX)
    transform = TRANSFORMATIONS[transformation]
    got, wanted = (
        transform(lib, function(with_references(lib), statements))(lib.numpy.asarray(x)) for lib in (corejax, jax)
    )
    assert_close(got, wanted)
