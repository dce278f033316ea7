"""What loops, conditionals and custom rules say of bad input: where, both types, and what would mend it."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.core.trace import state as trace_state
from corejax.custom_derivatives import ClosedOverError

X = np.arange(3, dtype=np.float32)


def said(kind, call):
    """The message of an error, its notes included; nothing is left on the trace stack."""
    before = trace_state.trace
    with pytest.raises(kind) as caught:
        call()
    assert trace_state.trace is before
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


def line_of(fun):
    """Where a function is, as messages say it."""
    return f"test_bad_input.py:{inspect.getsourcelines(fun)[1]}"


def test_the_structure_of_a_carry():
    """Both structures, the first place where they differ, the body's line, and what to do."""

    def body(c, _):
        return {"a": c["a"], "b": [c["b"][0], c["b"][1]]}, None

    text = said(TypeError, lambda: lax.scan(body, {"a": 1.0, "b": (X, X)}, None, 3))
    assert line_of(body) in text
    assert "takes   {'a': float32[], 'b': (float32[3], float32[3])}" in text
    assert "returns {'a': float32[], 'b': [float32[3], float32[3]]}" in text
    assert "at carry['b']: tuple of 2 against list of 2: return a carry of the structure that is taken" in text


@pytest.mark.parametrize("loop", ["scan", "while_loop", "fori_loop"])
def test_a_carry_of_another_shape(loop):
    """A first carry that could be broadcast gets that as advice; any other does not."""

    def run(change):
        loops = {
            "scan": lambda c: lax.scan(lambda c, _: (change(c), None), c, None, 3),
            "while_loop": lambda c: lax.while_loop(lambda c: True, change, c),
            "fori_loop": lambda c: lax.fori_loop(0, 3, lambda i, c: change(c), c),
        }
        return loops[loop]

    added = run(lambda c: {"sum": c["sum"] + X})
    text = said(TypeError, lambda: added({"sum": 0.0}))
    assert "carry['sum'] is float32[] when taken and float32[3] when returned: the shapes must be equal" in text
    assert "start from broadcast_to(init['sum'], (3,))" in text
    halved = run(lambda c: c[:2])
    text = said(TypeError, lambda: halved(X))
    assert "carry is float32[3] when taken and float32[2] when returned: the shapes must be equal" in text
    assert "broadcast_to" not in text
    lowered = run(lambda c: c.astype("float16"))
    text = said(TypeError, lambda: lowered(X))
    assert "carry is float32[3] when taken and float16[3] when returned" in text
    assert "carry.astype('float32')" in text


def test_where_64_bits_come_from():
    """A type error of 64 against 32 bits says that NumPy's defaults are 64 bits wide."""
    wide = np.linspace(0, 1, 3)
    for call in (
        lambda: lax.scan(lambda c, x: (c + x, None), jnp.float32(0), wide),
        lambda: lax.fori_loop(0, 3, lambda i, c: c * np.sqrt(2), jnp.ones(2)),
        lambda: lax.cond(X[0] > 0, lambda: jnp.ones(3), lambda: X * wide),
    ):
        assert "float64 is the default of NumPy's arrays and scalars" in (text := said(TypeError, call)), text
        with corejax.config.override(default_dtype_bits=64):
            assert "what NumPy's" not in said(TypeError, lambda: lax.scan(lambda c, x: (X + x, None), X, wide))
    with corejax.config.override(x64_compat=True):
        assert lax.scan(lambda c, x: (c + x, None), jnp.float32(0), wide)[0] == 1.5
    for other in (jnp.int32, jnp.bfloat16):
        assert "what NumPy's" not in said(TypeError, lambda: lax.scan(lambda c, x: (c + x, None), other(0), X))  # noqa: B023


def test_a_body_with_other_parameters():
    """Python's own error, and with how many arguments the body is called."""

    def lonely(c):
        return c, None

    assert f"scan calls {lonely.__name__} at {__file__}" in said(TypeError, lambda: lax.scan(lonely, X, None, 3))
    assert "with 2 arguments." in said(TypeError, lambda: lax.scan(lonely, X, None, 3))
    text = said(TypeError, lambda: lax.while_loop(lambda c: True, lambda a, b: a, (X, X)))
    assert "while_loop calls" in text and "with 1 argument." in text

    def wrong_inside(c, _):
        return lonely(c, c), None

    assert "scan calls" not in said(TypeError, lambda: lax.scan(wrong_inside, X, None, 3))
    assert "calls" not in said(TypeError, lambda: lax.map(lambda x: lonely(x, x), X))


def test_lengths():
    """Paths and sizes, and where the body is."""

    def body(c, _):
        return c, None

    text = said(ValueError, lambda: lax.scan(body, X, {"a": np.ones((3, 2), "f"), "b": (np.ones(4, "f"),)}, length=5))
    assert line_of(body) in text
    for line in ("xs['a']: float32[3,2] has 3", "xs['b'][0]: float32[4] has 4", "length: 5"):
        assert line in text
    assert "must not be negative, got -1" in said(ValueError, lambda: lax.scan(body, X, None, -1))


def test_predicates_and_indices():
    assert "Compare it: pred != 0" in said(TypeError, lambda: lax.cond(1j, lambda: 1, lambda: 2))
    branches = [lambda: 1, lambda: 2]
    assert "got float32[]: cast it, .astype('int32')" in said(TypeError, lambda: lax.switch(1.0, branches))
    assert "got bool[]: use cond, or cast it" in said(TypeError, lambda: lax.switch(True, branches))
    text = said(TypeError, lambda: lax.switch(1, lambda: 1))
    assert "branches must be a sequence of functions, got" in text and "of type function" in text


def test_branches_of_another_structure():
    """The place where they differ stands beside both."""
    text = said(TypeError, lambda: lax.cond(True, lambda x: {"a": (x, x)}, lambda x: {"a": x}, X))
    assert "same pytree structure, but two differ (at ['a']: tuple of 2 against a leaf)" in text
    assert "returns {'a': (float32[3], float32[3])}" in text and "returns {'a': float32[3]}" in text
    assert "(tuple of 2 against list of 2)" in said(TypeError, lambda: lax.cond(True, lambda: (1, 2), lambda: [1, 2]))


def test_rules_of_another_dtype():
    """The rule's line, both types and the cast."""
    f = corejax.custom_jvp(lambda x: x)

    def rule(primals, tangents):
        return primals[0], tangents[0].astype("float16")

    f.defjvp(rule)
    text = said(TypeError, lambda: corejax.jvp(f, (X,), (X,)))
    assert f"rule rule at {__file__}" in text and line_of(rule) in text
    assert "float16[3]" in text and "it must be float32[3] (.astype('float32'))" in text

    g = corejax.custom_vjp(lambda x, y: x)
    g.defvjp(lambda x, y: (x, None), lambda res, ct: ct)
    text = said(TypeError, lambda: corejax.grad(lambda x: jnp.sum(g(x, x)))(X))
    assert "each of the 2 arguments that are differentiated, (ct0, ct1), got Array" in text


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp", "custom_vmap"])
def test_rules_never_given(kind):
    """The function and its line."""

    def lonely(x):
        return x

    text = said(AttributeError, lambda: getattr(corejax, kind)(lonely)(1.0))
    assert line_of(lonely) in text
    assert {"custom_jvp": "lonely.defjvp", "custom_vjp": "lonely.defvjp", "custom_vmap": "lonely.def_vmap"}[
        kind
    ] in text


def test_a_value_that_a_rule_closes_over():
    """What to do instead; the error that it came out of says whose value it is."""

    def outer(y):
        f = corejax.custom_vjp(lambda x: x)
        f.defvjp(lambda x: (x, None), lambda res, ct: (y,))
        return f(y * 2)

    with pytest.raises(ClosedOverError, match=r"closes over a value.*Pass the value as an argument") as caught:
        corejax.grad(outer)(3.0)
    assert f"while tracing the function outer at {__file__}" in str(caught.value.__cause__)
