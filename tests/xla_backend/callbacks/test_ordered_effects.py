"""Ordered effects happen in the order of the program's equations, whatever XLA would like to run first."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import debug, io_callback, jit, lax
from corejax.extend import Primitive, get_aval
from corejax.extend.programs import parse_jaxpr

pytest.importorskip("jaxlib")

_numbers = itertools.count()
LOG: list[float] = []


@pytest.fixture(autouse=True)
def _empty_log() -> None:
    LOG.clear()


def note(x: Any) -> None:
    io_callback(lambda x: LOG.append(float(x)), None, x, ordered=True)


def ask(x: Any) -> Any:
    def answer(x: Any) -> Any:
        LOG.append(float(x))
        return np.float32(x)

    return io_callback(answer, get_aval(jnp.float32(0)), x, ordered=True)


@jit
def inner(x: Any) -> Any:
    note(x * 10)
    return x + 1


def journey(x: Any) -> Any:
    """Effects in every kind of place, between products that take time and need none of them."""
    work = jnp.ones((60, 60)) * x
    for i in range(3):
        note(x + i)
        work = work @ work * 0.01
    x = inner(x)

    def body(c: Any, i: Any) -> Any:
        note(c)
        c = inner(c)
        c = lax.cond(i % 2 == 0, lambda c: (note(c * 100), c)[1], lambda c: c + 1, c)
        c = lax.while_loop(lambda s: s < i, lambda s: (note(s + 0.5), s + 1)[1], c)
        lax.switch(i, [lambda: None, lambda: note(-1.0), lambda: jit(lambda: note(-2.0))(), lambda: None])
        return c, (work @ work).sum()

    x, ys = lax.scan(body, x, jnp.arange(4))
    x = lax.while_loop(lambda s: ask(s) < 15, lambda s: (note(-s), s + 2)[1], x)
    debug.callback(lambda x: LOG.append(float(x)), x, ordered=True)
    return inner(x) + ys.sum() * 0


def test_order_of_a_compiled_program() -> None:
    journey(1.0)
    wanted = LOG.copy()
    program = jit(journey)
    for _ in range(100):
        LOG.clear()
        program(1.0)
        assert wanted == LOG
    assert len(wanted) == 27 and wanted[:5] == [1.0, 2.0, 3.0, 10.0, 2.0]


def test_order_under_transformations() -> None:
    f = lambda x: jnp.sin(journey(lax.stop_gradient(x)) * x)
    f(1.0)
    wanted = LOG.copy()
    for transform in (cj.grad(f), jit(cj.grad(cj.checkpoint(f)))):
        LOG.clear()
        transform(1.0)
        assert wanted == LOG


def test_order_between_programs_and_eager_calls() -> None:
    f = jit(lambda x: note(x))
    for i in range(20):
        f(3.0 * i)
        note(3 * i + 1)
        jit(lambda x: note(x))(3.0 * i + 2)
    assert [float(i) for i in range(60)] == LOG


def test_effects_in_scans_of_scans_and_in_the_unrolled() -> None:
    def f(x: Any) -> Any:
        step = lambda c, i: (c, lax.scan(lambda d, j: (d, note(10 * i + j)), 0, jnp.arange(3), unroll=2)[1])
        return lax.scan(step, x, jnp.arange(3), reverse=True)[0]

    wanted = [10.0 * i + j for i in (2, 1, 0) for j in range(3)]
    f(0.0)
    jit(f)(0.0)
    assert wanted * 2 == LOG


def test_a_primitive_of_anybodys_with_ordered_effects() -> None:
    p = Primitive(
        f"ordered_effects.p{next(_numbers)}", effects=("ordered:acme",), abstract_eval=lambda x: x,
        impl=lambda x: (LOG.append(float(x)), x + 1)[1],
    )  # fmt: skip

    @jit
    def f(x: Any) -> Any:
        p.bind(x * 100)
        return lax.fori_loop(0, 3, lambda i, x: p.bind(x), x)

    with pytest.warns(cj.errors.DerivedRuleWarning):
        assert f(1.0) == 4.0
    assert LOG == [100.0, 1.0, 2.0, 3.0]


def test_programs_without_effects_are_written_as_before() -> None:
    text = jit(lambda x: lax.fori_loop(0, 3, lambda i, x: jit(jnp.sin)(x), x)).lower(1.0).as_text(pretty=False)
    assert "i1>, tensor<f32>)" not in text and "%t" not in text


def test_where_no_order_can_be_kept() -> None:
    composite = lax.composite(lambda x: (note(x), x)[1], name="acme.noted")
    with pytest.raises(NotImplementedError, match="ordered effects in a function that is an attribute"):
        jit(composite)(1.0)
    assert LOG == []
    program = parse_jaxpr("{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }")
    assert not program.effects
