"""The examples of the two pages on jaxprs, with today's omnistaging, in the pages' untyped layout.

The older page prints a single output without parentheses and `reduce_sum` with a second parameter; the texts
here are the newer page's. `lax.switch`, `while`, `fori_loop` and `pmap` wait for later issues.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from corejax import jit, make_jaxpr
from tests.seeds.printed import renamed, tokens, untyped

jnp = pytest.importorskip("corejax.numpy")
lax = pytest.importorskip("corejax.lax")

SIN_MUL_ADD_SUM = """\
{ lambda  ; a b.
  let c = sin b
      d = mul c 3.0
      e = add a d
      f = reduce_sum[ axes=(0,) ] e
  in (f,) }"""


def func1(first: Any, second: Any) -> Any:
    temp = first + jnp.sin(second) * 3.0
    return jnp.sum(temp)


@pytest.mark.parametrize("size", [8, 5])
def test_func1(size: int) -> None:
    assert untyped(make_jaxpr(func1)(jnp.zeros(size), jnp.ones(size))) == SIN_MUL_ADD_SUM


def func2(inner: Any, first: Any, second: Any) -> Any:
    temp = first + inner(second) * 3
    return jnp.sum(temp)


def inner(second: Any) -> Any:
    if second.shape[0] > 4:
        return jnp.sin(second)
    else:
        raise AssertionError


def func3(first: Any, second: Any) -> Any:
    return func2(inner, first, second)


def test_python_functions_and_control_flow_are_traced_through() -> None:
    assert untyped(make_jaxpr(func3)(jnp.zeros(8), jnp.ones(8))) == SIN_MUL_ADD_SUM
    with pytest.raises(AssertionError):
        make_jaxpr(func3)(jnp.zeros(4), jnp.ones(4))
    assert untyped(make_jaxpr(func3)(jnp.zeros(8), jnp.ones(8))) == SIN_MUL_ADD_SUM


def test_functions_are_not_arguments() -> None:
    with pytest.raises(TypeError, match="inner"):
        make_jaxpr(func2)(inner, jnp.zeros(8), jnp.ones(8))
    assert untyped(make_jaxpr(func2, static_argnums=0)(inner, jnp.zeros(8), jnp.ones(8))) == SIN_MUL_ADD_SUM


def test_pytrees_are_flattened() -> None:
    def func4(arg: Any) -> Any:  # Arg is a pair
        temp = arg[0] + jnp.sin(arg[1]) * 3.0
        return jnp.sum(temp)

    assert untyped(make_jaxpr(func4)((jnp.zeros(8), jnp.ones(8)))) == SIN_MUL_ADD_SUM


# -- constants -------------------------------------------------------------------------------------


def test_constants_have_binders() -> None:
    """What the page's `func5` computes from constants alone, computed before tracing: omnistaging would record it."""
    b = jnp.sin(jnp.ones(8)) * 3.0
    d = jnp.ones(8)
    closed = make_jaxpr(lambda first: first + b - d)(jnp.zeros(8))
    expected = "{ lambda b d; a. let c = add a b\n e = sub c d in (e,) }"
    assert names_in_order(untyped(closed)) == names_in_order(expected)
    np.testing.assert_array_equal(closed.consts[0], b)
    np.testing.assert_array_equal(closed.consts[1], d)


def names_in_order(text: str) -> list[str]:
    """Tokens with the variables renamed as they come; untyped binders have no `:type` to tell them by."""
    return renamed(word + ":" if word in set("abcde") else word for word in tokens(text))


def test_constants_made_while_tracing_are_recorded() -> None:
    def func5(first: Any, second: Any) -> Any:
        temp = first + jnp.sin(second) * 3.0 - jnp.ones(8)
        return temp

    def func6(first: Any) -> Any:
        return func5(first, jnp.ones(8))

    assert untyped(make_jaxpr(func6)(jnp.zeros(8))) == (
        """\
{ lambda  ; a.
  let b = broadcast_in_dim[ broadcast_dimensions=()
                            shape=(8,) ] 1.0
      c = sin b
      d = mul c 3.0
      e = add a d
      f = broadcast_in_dim[ broadcast_dimensions=()
                            shape=(8,) ] 1.0
      g = sub e f
  in (g,) }"""
    )


def test_a_closed_jaxpr_has_types_of_arguments_and_outputs() -> None:
    table = jnp.ones((10, 10))
    closed = make_jaxpr(lambda x: x + table)(jnp.zeros((10, 10)))
    assert [repr(a) for a in closed.in_avals] == [repr(a) for a in closed.out_avals] == ["ShapedArray(float32[10,10])"]
    assert len(closed.consts) == len(closed.jaxpr.constvars) == 1


# -- higher-order primitives -----------------------------------------------------------------------


def test_cond() -> None:
    if not hasattr(lax, "cond"):
        pytest.skip("no plugin exports lax.cond")

    def func7(arg: Any) -> Any:
        return lax.cond(arg >= 0.0, arg, lambda xtrue: xtrue + 3.0, arg, lambda xfalse: xfalse - 3.0)

    closed = make_jaxpr(func7)(5.0)
    eqns = closed.jaxpr.eqns
    assert (eqns[0].primitive.name, eqns[-1].primitive.name) == ("ge", "cond")
    on_false, on_true = eqns[-1].params["branches"]
    assert [e.primitive.name for e in on_false.jaxpr.eqns] == ["sub"]
    assert [e.primitive.name for e in on_true.jaxpr.eqns] == ["add"]
    assert [float(func7(x)) for x in (5.0, -5.0)] == [8.0, -8.0]
    assert [float(jit(func7)(x)) for x in (5.0, -5.0)] == [8.0, -8.0]


def test_jit_is_a_call() -> None:
    pytest.importorskip("corejax_xla_backend")

    def func12(arg: Any) -> Any:
        @jit
        def inner(x: Any) -> Any:
            return x + arg * jnp.ones(1)  # Include a constant in the inner function

        return arg + inner(arg - 2.0)

    assert untyped(make_jaxpr(func12)(1.0)) == (
        """\
{ lambda  ; a.
  let b = sub a 2.0
      c = xla_call[ backend=None
                    call_jaxpr={ lambda  ; a b.
                                 let c = broadcast_in_dim[ broadcast_dimensions=()
                                                           shape=(1,) ] 1.0
                                     d = mul a c
                                     e = add b d
                                 in (e,) }
                    name=inner ] a b
      d = add a c
  in (d,) }"""
    )
    np.testing.assert_array_equal(func12(3.0), [7.0])
