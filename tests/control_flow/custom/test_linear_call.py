"""`linear_call`: against what it means, under every transformation."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

import corejax
from corejax import lax
from corejax.custom_derivatives import linear_call
from corejax.extend.programs import check_jaxpr
from tests.control_flow.solvers.test_solvers import XS, F, clean_stack, jits, near

__all__ = ["clean_stack"]  # a fixture that every test here uses


def divided(r, x):
    """x / r whose transpose is five times what it is, so that one that is not used shows."""
    return linear_call(lambda r, x: x / r, lambda r, ct: 5 * ct / r, r, x)


@jits
def test_linear_call(jit):
    f = jit(divided)
    near(f(2.0, 3.0), 1.5)
    near(jit(corejax.grad(f, 1))(2.0, 3.0), 2.5)
    near(corejax.jvp(f, (2.0, 3.0), (0.0, 1.0))[1], 0.5)
    near(jit(corejax.grad(f, 0))(2.0, 3.0), -0.75)  # by the residual: the function's own derivative
    near(corejax.linear_transpose(lambda x: f(2.0, x), 1.0)(1.0), (2.5,))
    transposed_twice = corejax.linear_transpose(lambda c: corejax.linear_transpose(lambda x: f(2.0, x), 1.0)(c)[0], 1.0)
    near(transposed_twice(1.0), (0.5,))
    near(jit(corejax.vmap(f))(XS, XS), np.ones(3))
    near(jit(corejax.vmap(corejax.grad(f, 1), (0, None)))(XS, 1.0), 5 / XS)
    near(corejax.grad(lambda x: jit(corejax.vmap(f, (0, None)))(XS, x).sum())(1.0), (5 / XS).sum())
    near(corejax.grad(lambda x: jit(corejax.vmap(f, (None, 0)))(2.0, x).sum())(XS), np.full(3, 2.5))
    near(
        corejax.grad(lambda x: jit(corejax.vmap(f, (None, 1), 1))(2.0, x).sum())(np.ones((2, 3), F)),
        np.full((2, 3), 2.5),
    )
    near(corejax.grad(lambda x: lax.scan(lambda c, r: (f(r, c), 0), x, XS)[0])(1.0), 125 / 6)


def test_linear_call_of_pytrees_and_closures():
    def call(y, x):
        return linear_call(
            lambda r, x: {"out": x[0] * r["s"] * y + x[1]},
            lambda r, ct: (ct["out"] * r["s"] * y, 7 * ct["out"]),
            {"s": 2.0, "text": None},
            x,
        )["out"]

    for f in (call, corejax.jit(call)):
        near(f(3.0, (1.0, 1.0)), 7.0)
        near(corejax.grad(f, 1)(3.0, (1.0, 1.0)), (6.0, 7.0))
        near(corejax.grad(f, 0)(3.0, (1.0, 1.0)), 2.0)
        near(corejax.vmap(f, (0, None))(XS, (1.0, 1.0)), 2 * XS + 1)


def test_linear_call_program():
    closed = corejax.make_jaxpr(divided)(F(1), F(2))
    check_jaxpr(closed)
    assert str(closed) == dedent("""\
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = linear_call[
              callee={ lambda ; a:f32[] b:f32[]. let
                  c:f32[] = div b a
                in (c,) }
              num_res=1
              transpose={ lambda ; a:f32[] b:f32[]. let
                  c:f32[] = mul 5.0:f32[] b
                  d:f32[] = div c a
                in (d,) }
            ] a b
          in (c,) }""")


def test_linear_call_of_a_wrong_transpose():
    with pytest.raises(TypeError, match=r"<lambda> must return.*\n  float32\[3\]\nit returns\n  float32\[\]"):
        linear_call(lambda r, x: x, lambda r, ct: ct.sum(), 1.0, XS)
    with pytest.raises(TypeError, match=r"linear_call of function <lambda>: argument args\[0\] is 'x'"):
        linear_call(lambda r, x: x, lambda r, ct: ct, "x", XS)
