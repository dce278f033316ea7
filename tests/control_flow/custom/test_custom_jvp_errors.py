"""`custom_jvp`: what it says of missing and wrong rules and arguments."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.custom_derivatives import ClosedOverError
from tests.control_flow.custom.test_custom_jvp import XS, clean_stack, tripled

__all__ = ["clean_stack"]


def test_without_a_rule():
    @corejax.custom_jvp
    def lonely(x):
        return x

    with pytest.raises(AttributeError, match=r"custom_jvp function lonely.*lonely\.defjvp"):
        lonely(1.0)
    with pytest.raises(TypeError, match="custom_jvp takes a function, got 3"):
        corejax.custom_jvp(3)
    with pytest.raises(TypeError, match="defjvp of lonely takes a function, got None"):
        lonely.defjvp(None)
    assert repr(lonely) == "<custom_jvp lonely>"
    assert lonely.__name__ == "lonely"


BAD_RULES = {
    "not a pair": (
        lambda p, t: p[0],
        r"rule rule at \S+ of custom_jvp function f must return a pair \(out, tangent_out\)",
    ),
    "tangent of another structure": (
        lambda p, t: ({"a": p[0], "b": p[0]}, (t[0], t[0])),
        r"the tangent has the structure\n  \(float32\[3\], float32\[3\]\)\nit must have the structure\n"
        r"  {'a': float32\[3\], 'b': float32\[3\]}",
    ),
    "tangent of another shape": (
        lambda p, t: ({"a": p[0], "b": p[0]}, {"a": t[0], "b": t[0][:2]}),
        r"the tangent has type float32\[2\] for result\['b'\], which is float32\[3\]",
    ),
    "tangent of another dtype": (
        lambda p, t: ({"a": p[0], "b": p[0]}, {"a": t[0].astype(np.float16), "b": t[0]}),
        r"the tangent has type float16\[3\] for result\['a'\], which is float32\[3\]",
    ),
    "no array": (lambda p, t: ({"a": "x", "b": p[0]}, None), r"returns 'x' of type str \(\['a'\]\)"),
    "tangent no array": (
        lambda p, t: ({"a": p[0], "b": p[0]}, {"a": "x", "b": t[0]}),
        r"the tangent for result\['a'\]: 'x' of type str",
    ),
}


@pytest.mark.parametrize("name", BAD_RULES)
@pytest.mark.parametrize("jit", [lambda g: g, corejax.jit], ids=["eager", "jit"])
def test_bad_rules(name, jit):
    rule, message = BAD_RULES[name]
    f = corejax.custom_jvp(lambda x: {"a": x, "b": x})

    def call(p, t):
        return rule(p, t)

    call.__name__, f.fun.__name__ = "rule", "f"
    f.defjvp(call)
    with pytest.raises(TypeError, match=message):
        corejax.jvp(jit(f), (XS,), (XS,))


def test_rule_that_disagrees_with_the_staged_function():
    f = corejax.custom_jvp(lambda x: (x, x))
    f.defjvp(lambda p, t: (p[0], t[0]))
    with pytest.raises(
        TypeError, match=r"another structure than the function:\n  rule:     float32\[3\]\n  function: \("
    ):
        corejax.jvp(corejax.jit(f), (XS,), (XS,))
    f.defjvp(lambda p, t: ((p[0], p[0][:1]), (t[0], t[0][:1])))
    with pytest.raises(TypeError, match=r"returns result\[1\] of type float32\[1\], the function of type float32\[3\]"):
        corejax.jvp(corejax.jit(f), (XS,), (XS,))


def test_integer_results_have_no_tangents():
    f = corejax.custom_jvp(lambda x: x.astype(np.int32))
    f.defjvp(lambda p, t: (f(*p), t[0].astype(np.int32)))
    with pytest.raises(TypeError, match=r"int32\[3\] for result, which is int32\[3\]: it must be None or float0 zeros"):
        corejax.jvp(f, (XS,), (XS,))


def test_arguments_that_are_no_arrays():
    f = tripled()
    with pytest.raises(TypeError, match=r"custom_jvp of function f: argument args\[1\] is 'x'"):
        corejax.grad(f)(1.0, "x")


def test_errors_in_rules_leave_the_stack_clean_and_pass_through():
    f = corejax.custom_jvp(lambda x: x)

    @f.defjvp
    def rule(primals, tangents):
        raise ZeroDivisionError("mine")

    for fun in (f, corejax.jit(f), corejax.vmap(f)):
        with pytest.raises(ZeroDivisionError, match="mine"):
            corejax.jvp(fun, (XS,), (XS,))


def test_leaked_arguments_are_named_as_such():
    leaked = []
    corejax.grad(lambda x: (leaked.append(x), x)[1])(1.0)
    f = tripled()
    with pytest.raises(corejax.errors.UnexpectedTracerError) as caught:
        corejax.grad(lambda x: f(leaked[0], 1.0) * x)(1.0)
    assert not isinstance(caught.value, ClosedOverError)


NOT_LINEAR = {
    "product": lambda t: t * t,
    "divisor": lambda t: t / (1.0 + t),
    "dot": lambda t: jnp.dot(t, t) * t,
    "select": lambda t: jnp.where(t > 0, t, 0.0),
    "cond": lambda t: lax.cond(t[0] > 0, lambda t: t, lambda t: t * 2, t),
    "scan": lambda t: lax.scan(lambda c, _: (c * c, None), t, None, length=2)[0],
}


@pytest.mark.parametrize("kind", NOT_LINEAR)
def test_a_rule_that_is_not_linear_in_the_tangents(kind):
    """What has to be linear and is not gives an error, and never a number."""
    fun = NOT_LINEAR[kind]

    @corejax.custom_jvp
    def f(x):
        return x

    f.defjvp(lambda p, t: (p[0], fun(t[0])))
    for attempt in (
        lambda x: corejax.grad(lambda x: f(x).sum())(x),
        lambda x: corejax.jit(corejax.grad(lambda x: f(x).sum()))(x),
        lambda x: corejax.linear_transpose(fun, x)(x),
    ):
        with pytest.raises(TypeError, match=r"a function that has to be linear is not: .*custom_jvp.*linear_transpose"):
            attempt(np.ones(3, np.float32))
