"""Loops see what has changed of what their bodies refer to."""

from __future__ import annotations

import functools
import gc
import random
import sys
import time
import weakref
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import config
from tests.control_flow.checks import check, equations, jaxpr

F = np.float32
XS = np.linspace(0.5, 1.0, 4, dtype=F)
SCALE = 2.0
TABLE = [3.0]


def helper(c):
    return c * SCALE


def step(c, x):
    return helper(c) + x, None


def run(f=step):
    return float(lax.scan(f, F(1), XS)[0])


def test_globals_closures_and_defaults_are_looked_at(monkeypatch):
    before = run()
    monkeypatch.setitem(globals(), "SCALE", 0.0)
    assert run() == XS[-1] != before  # a global of a function that the body calls
    monkeypatch.undo()
    assert run() == before

    k = 2.0

    def body(c, x):
        return c * k + x, None

    assert run(body) == before
    k = 0.0
    assert run(body) == XS[-1]
    body.__defaults__ = None

    def with_default(c, x, k=2.0):
        return c * k + x, None

    assert run(with_default) == before
    with_default.__defaults__ = (0.0,)
    assert run(with_default) == XS[-1]
    assert run(functools.partial(lambda k, c, x: (c * k + x, None), 2.0)) == before
    assert run(functools.partial(lambda k, c, x: (c * k + x, None), 0.0)) == XS[-1]


@pytest.mark.parametrize("kind", ["list", "object", "array", "module", "Array", "signed zero"])
def test_what_may_change_behind_our_back(kind):
    if kind == "list":
        body = lambda c, x: (c * TABLE[0] + x, None)
        before = run(body)
        TABLE[0] = 0.0
    elif kind == "object":
        holder = SimpleNamespace(k=3.0)
        body = lambda c, x: (c * holder.k + x, None)
        before = run(body)
        holder.k = 0.0
    elif kind == "array":
        array = np.array(3.0, F)
        body = lambda c, x: (c * array + x, None)
        before = run(body)
        array[...] = 0.0
    elif kind == "module":
        from tests.control_flow import nestings

        body = lambda c, x: (c * nestings.W[0, 0] + x, None)
        before = run(body)
        kept, nestings.W = nestings.W, np.zeros((1, 1), F)
        assert run(body) == XS[-1]
        nestings.W = kept
        return
    elif kind == "Array":
        k = jnp.asarray(3.0)
        body = lambda c, x: (c * k + x, None)
        before = run(body)
        k = jnp.asarray(0.0)
    else:
        k = 0.0
        body = lambda c, x: (x * 0.0 + k, None)
        before = run(body)
        k = -0.0
        assert np.signbit(lax.scan(lambda c, x: (c * 0.0 + k, None), F(-1), XS)[0]) in (True, np.True_)
        k = 0.0
        assert not np.signbit(lax.scan(lambda c, x: (c * 0.0 + k, None), F(-1), XS)[0])
        return
    assert before != run(body) == XS[-1]


def settings():
    """A function with an attribute, which bodies below read."""


def test_what_may_change_out_of_sight(monkeypatch):
    """Attributes of functions, what builtin methods are bound to, modules that a body imports, random numbers."""
    first = lambda f: float(lax.scan(f, F(1), None, length=1)[0])
    settings.scale = 2.0
    table = {"k": 2.0}
    get = table.get
    module = ModuleType("module_of_a_test")
    module.scale = 2.0
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def imports(c, _):
        import module_of_a_test

        return c * module_of_a_test.scale, None

    def imports_a_name(c, _):
        def inner():
            from module_of_a_test import scale

            return scale

        return c * inner(), None

    bodies = [lambda c, _: (c * settings.scale, None), lambda c, _: (c * get("k"), None), imports, imports_a_name]
    assert [first(f) for f in bodies] == [2.0] * 4
    settings.scale = table["k"] = module.scale = 3.0
    assert [first(f) for f in bodies] == [3.0] * 4
    draw, now = random.random, time.perf_counter_ns
    for impure in (lambda: draw(), lambda: np.random.rand(), lambda: float(now() % 2**20)):
        assert len({first(lambda c, _, f=impure: (c * f(), None)) for _ in range(4)}) > 1


def test_closed_over_tracers_are_their_own():
    def f(k):
        return lax.scan(lambda c, x: (c * k + x, None), F(1), XS)[0]

    want = [np.asarray(f(F(k))) for k in (0.5, 2.0)]
    for transform in (corejax.grad, corejax.jit, lambda f: corejax.jit(corejax.grad(f))):
        transform(f)(F(0.5))
        transform(f)(F(2.0))
    check(corejax.vmap(f)(np.array([0.5, 2.0], F)), np.array(want))
    check(corejax.grad(corejax.grad(f))(F(2.0)), corejax.jit(corejax.grad(corejax.grad(f)))(F(2.0)))
    check([np.asarray(f(F(k))) for k in (0.5, 2.0)], want)
    outer = lambda k: lax.scan(lambda c, x: (f(c * k), None), F(0.1), XS[:2])[0]
    check(corejax.jit(outer)(F(0.3)), outer(F(0.3)))


def test_settings_and_types():
    body = lambda c, x: (c + 1, jnp.zeros(2))
    ys = lax.scan(body, 0, XS)[1]
    with config.override(default_dtype_bits=64):
        wide = lax.scan(body, 0, XS)[1]
    assert (ys.dtype, wide.dtype) == (F, np.float64)
    assert lax.scan(body, 0, XS)[1].dtype == F
    assert lax.scan(body, np.int8(0), XS)[0].dtype == np.int8


def bodies(*programs):
    """The bodies of the scans in these programs."""
    return [eqn.params["jaxpr"] for p in programs for eqn in equations(p, "scan")]


def test_equal_programs_of_one_code_are_one_object():
    twice = jaxpr(lambda x: lax.scan(step, lax.scan(step, x, XS)[0], XS)[0], F(1))
    first, second = bodies(twice)
    assert first is second
    make = lambda k: lambda c, x: (c * k + x, None)  # another function object each time, of the same code
    a, b, c = (bodies(jaxpr(lambda x, k=k: lax.scan(make(k), x, XS)[0], F(1)))[0] for k in (2.0, 2.0, 3.0))
    assert a is b and a is not c
    calls = lambda x: lax.cond(x > 0, lambda y: y * 2.0, lambda y: y - 1.0, x)
    one, two = (jaxpr(calls, F(1)).eqns[-1].params["branches"] for _ in range(2))
    assert all(a is b for a, b in zip(one, two, strict=True))


def test_kept_programs_do_not_keep_arrays():
    def body_of(w):
        return (lambda c, x: (c * jnp.asarray(w) + x, None)), weakref.ref(w)

    body, held = body_of(np.ones(1000, F))
    lax.scan(body, np.ones(1000, F), XS)
    del body
    gc.collect()
    assert held() is None
