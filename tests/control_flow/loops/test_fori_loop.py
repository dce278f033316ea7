"""`fori_loop` and `map`: values, which loop they become, derivatives, batched bounds, bad input."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from tests.control_flow.checks import check, equations, jaxpr, message

F = np.float32
both = pytest.mark.parametrize("wrap", [lambda f: f, corejax.jit], ids=["eager", "compiled"])


# -- fori_loop -------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("lower, upper", [(0, 5), (3, 7), (-4, 2), (5, 5), (7, 2)])
def test_values(wrap, lower, upper):
    def body(i, c):
        return {"s": c["s"] * 0.5 + i, "n": c["n"] + i}

    init = {"s": F(1), "n": 0}
    want = init
    for i in range(lower, upper):
        want = {"s": want["s"] * F(0.5) + i, "n": want["n"] + i}
    check(wrap(lambda c: lax.fori_loop(lower, upper, body, c))(init), want)
    check(wrap(lambda lo, hi, c: lax.fori_loop(lo, hi, body, c))(lower, upper, init), want)
    check(wrap(lambda hi, c: lax.fori_loop(lower, hi, body, c))(np.int32(upper), init), want)


def test_static_bounds_make_a_scan():
    f = lambda x: lax.fori_loop(2, 7, lambda i, c: c * x + i, x)
    closed = jaxpr(f, F(1.1))
    (eqn,) = equations(closed, "scan")
    assert eqn.params["length"] == 5 and eqn.params["unroll"] == 1
    four = jnp.asarray(4)
    (eqn,) = equations(jaxpr(lambda x: lax.fori_loop(np.int32(0), four, lambda i, c: c + i, x), 0), "scan")
    assert eqn.params["length"] == 4
    unrolled = jaxpr(lambda x: lax.fori_loop(0, 6, lambda i, c: c * x, x, unroll=3), F(2))
    assert next(equations(unrolled, "scan")).params["unroll"] == 3
    for unroll in (0, 3, True):
        assert corejax.jit(lambda x, u=unroll: lax.fori_loop(0, 7, lambda i, c: c * x, x, unroll=u))(F(2)) == 2.0**8
    assert list(equations(jaxpr(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0), 5), "while"))


def test_index_types():
    seen = []

    def body(i, c):
        seen.append(i.aval.str_short() + ("~" if i.aval.weak_type else ""))
        return c + 1

    lax.fori_loop(0, 3, body, 0)
    lax.fori_loop(np.int8(0), 3, body, 0)
    lax.fori_loop(0, np.uint32(3), body, 0)
    corejax.jit(lambda n: lax.fori_loop(0, n, body, 0))(np.int64(3))
    assert list(dict.fromkeys(seen)) == ["i32[]~", "i8[]", "ui32[]" if "ui32[]" in seen else "u32[]", "i64[]"]
    assert lax.fori_loop(0, 5, lambda i, c: c * i, np.int8(1)).dtype == np.int8  # the index does not promote


def test_derivatives():
    f = lambda x: lax.fori_loop(0, 4, lambda i, c: lax.sin(c) * x + i, x)
    x, eps = np.float64(0.7), 1e-6
    difference = (np.asarray(f(x + eps)) - np.asarray(f(x - eps))) / (2 * eps)
    for g in (corejax.grad(f), corejax.grad(corejax.jit(f)), lambda x: corejax.jvp(f, (x,), (np.float64(1),))[1]):
        np.testing.assert_allclose(g(x), difference, rtol=1e-6)


@both
def test_batched_bounds(wrap):
    power = lambda lo, hi, x: lax.fori_loop(lo, hi, lambda i, c: c * x + i, F(1))
    los, his = np.array([0, 2, -1, 4]), np.array([3, 2, 5, 1])
    xs = np.array([0.5, 1.0, 1.5, 2.0], F)
    want = [power(int(a), int(b), x) for a, b, x in zip(los, his, xs, strict=True)]
    check(wrap(corejax.vmap(power))(los, his, xs), np.array(want, F))
    want = [power(0, int(b), xs[2]) for b in his]
    check(wrap(corejax.vmap(power, in_axes=(None, 0, None)))(0, his, xs[2]), np.array(want, F))


@both
@pytest.mark.parametrize("lower, upper", [(0.0, 3.0), (F(-1), F(2)), (np.float16(1), 4.0), (2.0, 1.0)])
def test_bounds_that_are_floats(wrap, lower, upper):
    got = wrap(lambda x: lax.fori_loop(lower, upper, lambda i, c: c * 2 + i, x))(F(1))
    traced = corejax.jit(lambda a, b, x: lax.fori_loop(a, b, lambda i, c: c * 2 + i, x))(lower, upper, F(1))
    want = F(1)
    for i in np.arange(lower, upper):
        want = want * 2 + i
    assert got == traced == want and got.dtype == traced.dtype == F


def test_bad_input_of_fori_loop():
    body = lambda i, c: c
    assert "body_fun must be a function (i, val) -> val, got 3" in message(TypeError, lambda: lax.fori_loop(0, 3, 3, 0))
    assert "lower must be an integer scalar, got bool[]" in message(TypeError, lambda: lax.fori_loop(False, 3, body, 0))
    assert "equal types, got float32[] and int32[]" in message(TypeError, lambda: lax.fori_loop(0.0, 3, body, 0))
    assert "upper must be an integral number, got 2.5" in message(ValueError, lambda: lax.fori_loop(0.0, 2.5, body, 0))
    assert "upper must be an integer scalar, got int32[2]" in message(
        TypeError, lambda: lax.fori_loop(0, np.ones(2, np.int32), body, 0)
    )
    assert "upper must be an integer scalar, got 'n' of type str" in message(
        TypeError, lambda: lax.fori_loop(0, "n", body, 0)
    )
    text = message(TypeError, lambda: lax.fori_loop(np.int8(0), np.int32(3), body, 0))
    assert "equal types, got int8[] and int32[]" in text and "upper.astype('int8')" in text
    text = message(ValueError, corejax.jit(lambda n: lax.fori_loop(0, n, body, 0, unroll=2)), 3)
    assert "unroll=2 needs bounds that are known while tracing" in text
    assert "fori_loop: `unroll` must be" in message(ValueError, lambda: lax.fori_loop(0, 3, body, 0, unroll=-1))
    assert "does not fit" in message(OverflowError, lambda: lax.fori_loop(np.int8(0), 300, body, 0))
    text = message(TypeError, lambda: lax.fori_loop(0, 3, lambda i, c: {"a": c["a"] * 1.5}, {"a": np.int32(1)}))
    assert "fori_loop: " in text and "carry['a'] is int32[] when taken and float32[] when returned" in text
    text = message(TypeError, lambda: lax.fori_loop(0, 3, lambda i, c: (c, i), F(1)))
    assert "takes   float32[]" in text and "returns (float32[], int32[])" in text


# -- map -------------------------------------------------------------------------------------------------------


@pytest.mark.sampled
@both
@pytest.mark.parametrize("batch_size", [None, 0, 1, 2, 3, 7, 10])
@pytest.mark.parametrize("n", [0, 1, 6, 7])
def test_map(wrap, batch_size, n):
    xs = {"a": np.linspace(0, 1, n, dtype=F), "b": np.arange(2 * n).reshape(n, 2)}
    f = lambda x: (lax.sin(x["a"]) * 2.0, x["b"].sum(), F(7))
    got = wrap(lambda xs: lax.map(f, xs, batch_size=batch_size))(xs)
    check(got, (np.sin(xs["a"]) * 2, xs["b"].sum(1).astype(np.int64), np.full(n, 7, F)))


def test_map_is_a_scan_and_differentiable():
    w = np.linspace(0.5, 1.5, 5, dtype=F)
    for batch_size, sizes in ((None, [5]), (0, []), (2, [2]), (5, [1])):
        f = lambda w, b=batch_size: lax.map(lambda x: lax.sin(x) * w[0], w, batch_size=b)
        assert [e.params["length"] for e in equations(jaxpr(f, w), "scan")] == sizes
        want = np.cos(w) * w[0] + np.eye(5)[0] * np.sin(w).sum()
        np.testing.assert_allclose(corejax.grad(lambda w, f=f: f(w).sum())(w), want, rtol=1e-5)
        np.testing.assert_allclose(
            corejax.vmap(f)(np.stack([w, 2 * w])), np.stack([np.sin(w) * w[0], np.sin(2 * w) * 2 * w[0]]), rtol=1e-5
        )


def test_bad_input_of_map():
    assert "map: f must be a function of one element, got 3" in message(TypeError, lambda: lax.map(3, np.ones(2, F)))
    text = message(ValueError, lambda: lax.map(lambda x: x, {"a": np.ones(2, F), "b": np.ones(3, F)}, batch_size=2))
    assert "share the length" in text and "xs['a']: float32[2]" in text and "xs['b']: float32[3]" in text
    text = message(ValueError, lambda: lax.map(lambda x: x, {"a": np.ones(2, F), "b": np.ones(3, F)}))
    assert "xs['a']" in text and "xs['b']" in text
    assert "batch_size must be a number" in message(ValueError, lambda: lax.map(lambda x: x, np.ones(2), batch_size=-1))
    assert "batch_size must be an integer" in message(
        TypeError, lambda: lax.map(lambda x: x, np.ones(2, F), batch_size=2.0)
    )
    assert "got none" in message(ValueError, lambda: lax.map(lambda x: x, (), batch_size=2))
