"""`custom_vmap`: the rule under every nesting, its derivatives, closures, bad input."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.custom_batching import custom_vmap
from corejax.custom_derivatives import ClosedOverError
from corejax.extend.programs import check_jaxpr
from corejax.extend.transforms import trace_stack

F = np.float32
XS = np.array([0.3, -0.7, 1.1], F)


@pytest.fixture(autouse=True)
def clean_stack():
    yield
    assert len(trace_stack()) == 1


def near(got, want):
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5, atol=1e-6)


def tenfold(seen=None):
    """x * y whose batches are ten times as large, so that a rule that is not used shows."""

    @custom_vmap
    def f(x, y):
        return x * y

    @f.def_vmap
    def f_vmap(axis_size, in_batched, x, y):
        if seen is not None:
            seen.append((axis_size, list(in_batched)))
        return 10 * (x * y), in_batched[0] or in_batched[1]

    return f


def test_rule_is_used_where_something_is_mapped():
    seen = []
    f = tenfold(seen)
    assert f(2.0, 3.0) == 6.0
    assert corejax.jit(f)(2.0, 3.0) == 6.0
    assert corejax.grad(f)(2.0, 3.0) == 3.0
    assert corejax.vmap(lambda x: x * f(2.0, y=3.0))(XS).shape == (3,)
    assert not seen
    near(corejax.vmap(f)(XS, XS), 10 * XS * XS)
    near(corejax.vmap(f, (0, None))(XS, 2.0), 20 * XS)
    near(corejax.vmap(f, (None, 0))(2.0, XS), 20 * XS)
    assert seen == [(3, [True, True]), (3, [True, False]), (3, [False, True])]
    near(corejax.jit(corejax.vmap(f, (0, None)))(XS, 2.0), 20 * XS)
    near(corejax.vmap(corejax.jit(f), (0, None))(XS, 2.0), 20 * XS)


def test_batch_comes_along_axis_0():
    shapes = []
    f = custom_vmap(lambda x: x)
    f.def_vmap(lambda n, b, x: (*(shapes.append(x.shape), x)[1:], True))
    x = np.zeros((2, 3), F)
    assert corejax.vmap(f, 1, 1)(x).shape == (2, 3)
    assert shapes == [(3, 2)]


def test_nested_vmap():
    """The rule is code: an outer vmap maps over what it does, for which f's rule has no more to say."""
    f = tenfold()
    near(corejax.vmap(corejax.vmap(f, (0, None)), (None, 0))(XS, XS), 10 * XS * XS[:, None])
    near(corejax.vmap(corejax.vmap(f))(np.ones((2, 3), F), np.ones((2, 3), F)), np.full((2, 3), 10.0))
    g = custom_vmap(lambda x: jnp.sin(x))
    g.def_vmap(lambda n, b, x: (g(x), True))  # of the whole batch at once
    near(corejax.vmap(corejax.vmap(g))(np.ones((2, 3), F)), np.full((2, 3), np.sin(1.0)))


def test_derivatives():
    f = tenfold()
    for jit in (lambda g: g, corejax.jit):
        near(corejax.grad(lambda x, jit=jit: jit(corejax.vmap(f))(x, XS).sum())(XS), 10 * XS)
        near(jit(corejax.vmap(lambda x: corejax.jvp(f, (x, 2.0), (1.0, 0.0))))(XS), (20 * XS, [20.0] * 3))
        near(jit(corejax.vmap(lambda t: corejax.jvp(f, (2.0, 3.0), (t, 0.0))[1]))(XS), 30 * XS)
        near(corejax.jvp(jit(corejax.vmap(f)), (XS, XS), (XS, XS))[1], 20 * XS * XS)
        # Reverse mode inside vmap: results are the rule's, cotangents the function's.
        got = jit(corejax.vmap(corejax.value_and_grad(f), (0, None)))(XS, 2.0)
        near(got[0], 20 * XS)
        near(got[1], [2.0] * 3)
        near(corejax.grad(jit(corejax.grad(jit(lambda x: f(x, x)))))(3.0), 2.0)
    near(corejax.linear_transpose(lambda x: corejax.jit(f)(x, 2.0), 1.0)(3.0)[0], 6.0)


def test_in_scan_and_cond():
    f = tenfold()
    program = lambda x: lax.scan(lambda c, a: (lax.cond(a > 0, f, lambda c, a: c, c, a), c), x, XS)[0]
    near(program(2.0), 2 * 0.3 * 1.1)
    near(corejax.grad(program)(2.0), 0.3 * 1.1)
    near(corejax.vmap(program)(XS), XS * 100 * 0.33)
    near(corejax.jit(corejax.vmap(program))(XS), XS * 100 * 0.33)


def test_pytrees_and_prefix_of_out_batched():
    f = custom_vmap(lambda p: {"a": p["x"] + p["y"], "b": p["y"]})

    @f.def_vmap
    def rule(n, in_batched, p):
        assert in_batched == [{"x": True, "y": False}]
        return {"a": p["x"] + p["y"], "b": p["y"]}, {"a": True, "b": False}

    out = corejax.vmap(f, ({"x": 0, "y": None},))({"x": XS, "y": 1.0})
    near(out["a"], XS + 1)
    near(out["b"], np.ones(3))
    f.def_vmap(lambda n, b, p: ({"a": p["x"], "b": p["x"]}, True))
    near(corejax.vmap(f, ({"x": 0, "y": None},))({"x": XS, "y": 1.0})["b"], XS)


def test_program():
    f = tenfold()
    closed = corejax.make_jaxpr(f)(F(1), F(2))
    check_jaxpr(closed)
    assert str(closed) == dedent("""\
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = custom_vmap_call[
              call_jaxpr={ lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c,) }
              name='f'
              num_consts=0
              rule=<opaque f_vmap>
            ] a b
          in (c,) }""").replace(
        "call_jaxpr={ lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c,) }",
        "call_jaxpr={ lambda ; a:f32[] b:f32[]. let\n          c:f32[] = mul a b\n        in (c,) }",
    )
    check_jaxpr(corejax.make_jaxpr(lambda x: corejax.jvp(f, (x, x), (x, x)))(F(1)))


def test_against_jax():
    jax = pytest.importorskip("jax")

    def results(api, sin, custom_vmap):
        f = custom_vmap(lambda x, y: sin(x) * y)
        f.def_vmap(lambda n, b, x, y: (sin(x) * y * 10, b[0] or b[1]))
        ones = np.ones(3, F)
        return [
            api.vmap(f)(XS, XS),
            api.jit(api.vmap(f, (0, None)))(XS, 2.0),
            api.vmap(api.vmap(f, (0, None)), (None, 0))(XS, XS),
            api.jvp(api.vmap(f), (XS, XS), (ones, XS))[1],
            api.vmap(lambda x: api.jvp(f, (x, x), (x, x))[1])(XS),
            api.grad(lambda x: api.vmap(f)(x, XS).sum())(XS),
        ]

    for got, want in zip(
        results(corejax, jnp.sin, custom_vmap),
        results(jax, jax.numpy.sin, jax.custom_batching.custom_vmap),
        strict=True,
    ):
        near(got, want)


def test_closures():
    def scaled_by(y):
        f = custom_vmap(lambda x: x * y)
        f.def_vmap(lambda n, b, x: (x * y * 10, True))
        return f

    near(corejax.vmap(scaled_by(2.0))(XS), 20 * XS)
    near(corejax.jit(lambda y: corejax.vmap(scaled_by(y))(XS))(2.0), 20 * XS)
    near(corejax.grad(lambda y: corejax.vmap(scaled_by(y))(XS).sum())(2.0), 10 * XS.sum())
    near(corejax.grad(lambda y: scaled_by(y)(3.0))(2.0), 3.0)
    with pytest.raises(ClosedOverError, match="custom_vmap function <lambda> closes over a batched value"):
        corejax.vmap(lambda y: scaled_by(y)(2.0))(XS)


def test_bad_input():
    @custom_vmap
    def lonely(x):
        return x

    with pytest.raises(AttributeError, match=r"custom_vmap function lonely.*lonely\.def_vmap"):
        lonely(1.0)
    with pytest.raises(TypeError, match="custom_vmap takes a function, got 3"):
        custom_vmap(3)
    with pytest.raises(TypeError, match="def_vmap of lonely takes a function, got 3"):
        lonely.def_vmap(3)
    assert repr(lonely) == "<custom_vmap lonely>"
    for rule, message in (
        (lambda n, b, x: x, r"must return a pair \(out, out_batched\)"),
        (lambda n, b, x: ((x, x), True), "another structure than the function"),
        (lambda n, b, x: (x, (True, True)), "out_batched does not have the structure of the result"),
        (lambda n, b, x: (x, False), r"returns result of type float32\[3\]; not batched, it must be float32\[\]"),
        (lambda n, b, x: (x[:2], True), r"type float32\[2\]; batched \(axis size 3\), it must be float32\[3\]"),
        (lambda n, b, x: (x.astype(np.float16), True), r"of type float16\[3\]; batched"),
    ):
        lonely.def_vmap(rule)
        with pytest.raises(TypeError, match=message):
            corejax.vmap(lonely)(XS)
    with pytest.raises(TypeError, match=r"custom_vmap of function lonely: argument args\[0\] is 'x'"):
        corejax.jit(lambda: lonely("x"))()


def test_sequential_vmap() -> None:
    """Batches go through `lax.map`: effects in order, what is not batched stays, derivatives are the function's."""
    seen: list[float] = []

    @corejax.custom_batching.sequential_vmap
    def f(x: Any, y: Any) -> Any:
        corejax.debug.callback(lambda v: seen.append(float(v)), x.sum(), ordered=True)
        return {"product": jnp.sin(x) @ y, "x": x}

    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32([1, 2, 3])
    for g in (corejax.vmap(f, (0, None)), corejax.jit(corejax.vmap(f, (0, None)))):
        seen.clear()
        out = g(x, y)
        corejax.effects_barrier()
        np.testing.assert_allclose(out["product"], np.sin(x) @ y, rtol=1e-5)
        assert seen == [3.0, 12.0] and out["x"].shape == (2, 3)
    grads = corejax.jit(corejax.vmap(corejax.grad(lambda x: f(x, y)["product"])))(x)
    np.testing.assert_allclose(grads, np.cos(x) * y, rtol=1e-5, atol=1e-6)
    both = corejax.vmap(corejax.vmap(f, (0, None)), (None, 0))(x, np.stack([y, 2 * y]))
    np.testing.assert_allclose(both["product"], np.stack([np.sin(x) @ y, np.sin(x) @ (2 * y)]), rtol=1e-5)
    with pytest.raises(TypeError, match="takes a function, got 3"):
        corejax.custom_batching.sequential_vmap(3)


def test_a_batch_of_tangents_alone_is_not_a_batch_of_values():
    told = []

    @custom_vmap
    def f(x, y):
        return jnp.sin(x) * y

    @f.def_vmap
    def f_vmap(axis_size, in_batched, x, y):
        told.append(list(in_batched))
        return jnp.cos(x) * y, in_batched[0] or in_batched[1]

    x = F(0.7)
    near(corejax.jacfwd(f)(XS, XS), np.diag(-np.sin(XS) * XS))
    tangents = corejax.vmap(lambda t: corejax.jvp(f, (x, x), (t, F(0)))[1])(XS)
    near(tangents, -np.sin(x) * x * XS)
    assert told == [[False, False]] * 2
    near(corejax.vmap(lambda x, t: corejax.jvp(f, (x, x), (t, t))[1])(XS, XS), (np.cos(XS) - np.sin(XS) * XS) * XS)
    assert told[2:] and all(flags == [True, True] for flags in told[2:])
