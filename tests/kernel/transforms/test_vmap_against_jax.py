"""`vmap` compared with the real jax: axes, prefixes, sizes, nesting, trees."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernel.oracle import assert_as_jax

X = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
Y = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
V = np.array([1.0, -2.0, 0.5], np.float32)
B = np.array([0.5, 2.0], np.float32)
T = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 8
N = np.arange(6, dtype=np.int32).reshape(2, 3)

CASES = {
    "default": lambda t, n: t.vmap(n.sin)(X),
    "in_axes 1": lambda t, n: t.vmap(n.sum_, in_axes=1)(X),
    "in_axes -1": lambda t, n: t.vmap(n.sum_, in_axes=-1)(T),
    "in_axes None": lambda t, n: t.vmap(n.mul, in_axes=(0, None))(X, V),
    "in_axes list": lambda t, n: t.vmap(n.mul, in_axes=[None, 0])(V, X),
    "in_axes differ": lambda t, n: t.vmap(n.dot, in_axes=(0, 1))(X, Y.T),
    "in_axes of dicts": lambda t, n: t.vmap(lambda d: n.mul(d["a"], d["b"]), in_axes=({"a": 0, "b": None},))(
        {"a": X, "b": V}
    ),
    "in_axes prefix": lambda t, n: t.vmap(lambda d, x: n.mul(d["a"], n.mul(d["b"], x)), in_axes=(None, 0))(
        {"a": V, "b": V}, X
    ),
    "in_axes nested": lambda t, n: t.vmap(lambda p, x: n.mul(p[0]["a"], n.add(p[1], x)), in_axes=(({"a": 1}, None), 0))(
        ({"a": X.T}, V), X
    ),
    "in_axes None for None": lambda t, n: t.vmap(lambda d: n.sin(d["a"]), in_axes=({"a": 0, "b": None},))(
        {"a": X, "b": None}
    ),
    "kwargs": lambda t, n: t.vmap(lambda x, *, k: n.mul(x, k))(X, k=Y),
    "kwargs beside None": lambda t, n: t.vmap(lambda x, *, k: n.mul(x, k), in_axes=None)(V, k=Y),
    "out_axes 1": lambda t, n: t.vmap(n.sin, out_axes=1)(T),
    "out_axes -1": lambda t, n: t.vmap(n.sin, out_axes=-1)(T),
    "out_axes prefix": lambda t, n: t.vmap(lambda x: {"a": n.sin(x), "b": (x, n.cos(x))}, out_axes={"a": 1, "b": 0})(T),
    "out_axes None": lambda t, n: t.vmap(lambda x: (n.sin(x), n.sin(V)), out_axes=(0, None))(X),
    "out not mapped": lambda t, n: t.vmap(lambda x: n.sin(V))(X),
    "out not mapped, out_axes 1": lambda t, n: t.vmap(lambda x: V, out_axes=1)(X),
    "out a number": lambda t, n: t.vmap(lambda x: 2.0)(X),
    "axis_size": lambda t, n: t.vmap(lambda: V, axis_size=4)(),
    "axis_size with None": lambda t, n: t.vmap(lambda x: n.sin(x), in_axes=None, axis_size=2)(V),
    "axis_size agrees": lambda t, n: t.vmap(n.sin, axis_size=2)(X),
    "size 0": lambda t, n: t.vmap(lambda x: n.sum_(n.sin(x)))(np.zeros((0, 3), np.float32)),
    "size 0 inside": lambda t, n: t.vmap(n.sum_)(np.zeros((3, 0), np.float32)),
    "integers": lambda t, n: t.vmap(lambda i: n.add(i, i))(N),
    "no outputs": lambda t, n: t.vmap(lambda x: ())(X),
    "returns None": lambda t, n: t.vmap(lambda x: None)(X),
    "pass through": lambda t, n: t.vmap(lambda x: x, in_axes=1, out_axes=0)(T),
    "batch of scalars beside array": lambda t, n: t.vmap(lambda x, b: n.mul(x, b))(X, B),
    "batch of scalars beside constant array": lambda t, n: t.vmap(lambda b: n.mul(b, V))(B),
    "batch of scalars beside matrix": lambda t, n: t.vmap(lambda b, m: n.mul(b, m), in_axes=(0, 2), out_axes=1)(
        B, np.moveaxis(T, 0, 2)
    ),
    "batch of scalars and number": lambda t, n: t.vmap(lambda b: n.add(n.mul(b, 2.0), 1.0))(B),
    "batches in different places": lambda t, n: t.vmap(n.add, in_axes=(0, 1))(T, np.moveaxis(T, 0, 1)),
    "nested": lambda t, n: t.vmap(t.vmap(n.sin))(T),
    "nested, other axes": lambda t, n: t.vmap(t.vmap(n.sum_, in_axes=1), in_axes=2)(T),
    "nested, closed over": lambda t, n: t.vmap(lambda x: t.vmap(lambda y: n.mul(n.sum_(x), y))(Y))(X),
    "outer product": lambda t, n: t.vmap(t.vmap(n.mul, (None, 0)), (0, None))(V, B),
    "matmul": lambda t, n: t.vmap(t.vmap(n.dot, (None, 1)), (0, None))(X, Y.T),
    "of grad": lambda t, n: t.vmap(t.grad(lambda x: n.sum_(n.sin(x))))(X),
    "of grad by two": lambda t, n: t.vmap(t.grad(lambda x, y: n.dot(n.sin(x), y), (0, 1)), (0, None))(X, V),
    "in grad": lambda t, n: t.grad(lambda x: n.sum_(t.vmap(n.sin, 1)(n.mul(x, x))))(X),
    "in grad, not mapped": lambda t, n: t.grad(lambda v: n.sum_(t.vmap(lambda x: n.mul(x, v))(X)))(V),
    "in jvp": lambda t, n: t.jvp(t.vmap(n.sum_), (X,), (Y,)),
    "in jvp, constant": lambda t, n: t.jvp(lambda v: t.vmap(lambda x: v)(X), (V,), (V,)),
    "of jvp": lambda t, n: t.vmap(lambda x, y: t.jvp(n.sin, (x,), (y,)))(X, Y),
    "of grad with int": lambda t, n: t.vmap(t.grad(lambda i, x: n.sum_(x), (0, 1), allow_int=True))(N, X),
    "of a call": lambda t, n: t.vmap(n.call(lambda x: {"o": n.sin(x), "s": n.sum_(x)}))(X),
    "of a call, not mapped": lambda t, n: t.vmap(n.call(lambda x, v: (n.mul(x, v), n.sin(v))), (0, None))(X, V),
    "of vmap of grad of a call": lambda t, n: t.vmap(t.vmap(t.grad(n.call(lambda x: n.sum_(n.sin(x)))), 1), 1)(T),
    "reshape and transpose": lambda t, n: t.vmap(lambda x: n.reshape(n.transpose(x), (2, 6)), in_axes=0)(T),
    "comparison and conversion": lambda t, n: t.vmap(lambda x: n.astype(n.greater(x, V), np.int32))(X),
    "eval_shape of": lambda t, n: [s.shape for s in t.eval_shape(t.vmap(lambda x: (x, n.sum_(x)), 1), T)],
}


@pytest.mark.parametrize("program", CASES.values(), ids=CASES)
def test_as_jax(program):
    assert_as_jax(program)
