"""Functions with custom VJP rules that close over values; `closure_convert` and `custom_gradient`."""

from __future__ import annotations

import pytest

import corejax
from corejax import lax
from corejax.custom_derivatives import ClosedOverError
from tests.control_flow.custom.test_custom_vjp import XS, clean_stack, near

__all__ = ["clean_stack"]  # a fixture that every test here uses


def scaled_by(y):
    h = corejax.custom_vjp(lambda x: x * y)
    h.defvjp(lambda x: (x * y, y), lambda y, ct: (3 * y * ct,))
    return h


def test_closed_over_values_of_vmap_and_jit_work():
    near(corejax.vmap(lambda y: scaled_by(y)(2.0))(XS), 2 * XS)
    near(corejax.vmap(lambda y: corejax.grad(scaled_by(y))(2.0))(XS), 3 * XS)
    near(corejax.jit(lambda y: scaled_by(y)(2.0))(3.0), 6.0)
    near(corejax.jit(lambda y: corejax.grad(scaled_by(y))(2.0))(3.0), 9.0)
    near(corejax.jit(corejax.vmap(lambda y: corejax.grad(scaled_by(y))(2.0)))(XS), 3 * XS)


@pytest.mark.parametrize("jit", [lambda g: g, corejax.jit], ids=["eager", "jit"])
def test_closed_over_differentiated_values_are_refused(jit):
    for argument in (lambda y: 2.0, lambda y: y):
        fun = jit(lambda y, argument=argument: scaled_by(y)(argument(y)))
        for transformed, x in ((corejax.grad(fun), 1.0), (corejax.vmap(corejax.grad(fun)), XS)):
            with pytest.raises(ClosedOverError, match=r"closes over a value.*Pass the value as an argument"):
                transformed(x)


@pytest.mark.parametrize(
    "program",
    [
        lambda y: corejax.vmap(scaled_by(y))(XS).sum(),
        lambda y: corejax.vmap(scaled_by(y))(XS * y).sum(),
        lambda y: corejax.vmap(lambda z: scaled_by(y * z)(2.0))(XS).sum(),
        lambda y: corejax.vmap(lambda z: scaled_by(y * z)(y * z))(XS).sum(),
        lambda y: corejax.vmap(lambda x: corejax.vmap(scaled_by(y))(XS * x))(XS).sum(),
    ],
)
def test_closed_over_differentiated_values_are_refused_inside_vmap(program):
    for fun in (program, corejax.jit(program)):
        with pytest.raises(ClosedOverError, match="closes over a value"):
            corejax.grad(fun)(2.0)


@pytest.mark.parametrize(
    "rules",
    [
        lambda y: (lambda x: (x, None), lambda _, ct: (ct * y,)),
        lambda y: (lambda x: (x, None), lambda _, ct: (y,)),
        lambda y: (lambda x: (x, y), lambda y, ct: (ct * y,)),
        lambda y: (lambda x: (y, None), lambda _, ct: (ct,)),
    ],
)
def test_closed_over_traced_values_of_rules_are_refused(rules):
    def fun(y):
        h = corejax.custom_vjp(lambda x: x)
        h.defvjp(*rules(y))
        return h(y)

    with pytest.raises(ClosedOverError):
        corejax.grad(fun)(2.0)
    with pytest.raises(ClosedOverError):
        corejax.grad(corejax.jit(fun))(2.0)
    with pytest.raises(ClosedOverError):
        corejax.grad(lambda ys: corejax.vmap(fun)(ys).sum())(XS)


def test_closure_convert():
    def minimise(f, x):
        converted, consts = corejax.closure_convert(f, x)
        return descend(converted, x, *consts)

    descend = corejax.custom_vjp(lambda f, x, *consts: f(x, *consts), nondiff_argnums=0)
    descend.defvjp(
        lambda f, x, *consts: (f(x, *consts), (x, consts)),
        lambda f, res, ct: corejax.vjp(f, res[0], *res[1])[1](2 * ct),
    )
    for jit in (lambda g: g, corejax.jit):
        near(jit(corejax.grad(lambda y: minimise(lambda x: x * y["a"] * XS[0], 3.0)))({"a": 2.0})["a"], 6 * XS[0])
        near(jit(corejax.vmap(corejax.grad(lambda y: minimise(lambda x: x * y, 3.0))))(XS), [6.0] * 3)
    converted, consts = corejax.closure_convert(lambda x: x * XS, 1.0)
    assert consts == []
    near(converted(2.0), 2 * XS)
    with pytest.raises(TypeError, match=r"args\[0\] was float32\[\] in the examples, got int32\[\]"):
        converted(2)
    with pytest.raises(TypeError, match="of the structure of the examples"):
        converted((2.0,))
    with pytest.raises(TypeError, match="takes 1 arguments and 0 consts, got 2"):
        converted(2.0, 3.0)


def test_custom_gradient():
    @corejax.custom_gradient
    def f(x, y=2.0):
        return {"out": x * y, "n": 3}, lambda ct: (ct["out"] * 10 * y, None)

    value = lambda x: f(x)["out"]
    for g in (value, corejax.jit(value)):
        near(g(3.0), 6.0)
        near(corejax.grad(g)(3.0), 20.0)
        near(corejax.jit(corejax.grad(g))(3.0), 20.0)
        near(corejax.vmap(corejax.grad(g))(XS), [20.0] * 3)
        near(corejax.grad(lambda x, g=g: corejax.vmap(g)(x).sum())(XS), [20.0] * 3)
    one = corejax.custom_gradient(lambda x: (x**2, lambda ct: ct * x * x))
    near(corejax.grad(one)(3.0), 9.0)
    near(corejax.grad(corejax.grad(one))(3.0), 6.0)
    near(corejax.grad(lambda x: lax.scan(lambda c, _: (one(c), 0), x, None, length=2)[0])(2.0), 4.0 * 16.0)
    with pytest.raises(TypeError, match=r"custom_gradient: <lambda> must return a pair"):
        corejax.custom_gradient(lambda x: x)(1.0)


def test_custom_gradient_gives_cotangents_of_the_arguments_that_are_given():
    @corejax.custom_gradient
    def f(x, y=2.0, name=None):
        return x * y, lambda ct: (ct * y, ct * x)

    near(corejax.grad(f, (0, 1))(3.0, 4.0), (4.0, 3.0))
    near(corejax.grad(lambda x: f(x, y=5.0))(3.0), 5.0)
    near(corejax.grad(f)(3.0), 2.0)
    near(corejax.jit(corejax.vmap(corejax.grad(f)))(XS), [2.0] * 3)
    with pytest.raises(TypeError, match=r"for each of the 3 arguments .*, got 2 entries"):
        corejax.grad(lambda x: f(x, 5.0, name=()))(3.0)
