"""The pages' examples of `cond`, `switch`, `fori_loop` and `scan`: today's notation to the letter, what they compute.

The pages are older than omnistaging: `jnp.ones(...)` in a traced function is now an equation there and no hoisted
constant. `cond` has branches chosen by an index in place of `true_jaxpr` and `false_jaxpr`, and both of them take the
operands of both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax.numpy as jnp
from corejax import grad, jit, make_jaxpr, vmap
from corejax.ir import parse_jaxpr
from tests.seeds.printed import untyped

lax = pytest.importorskip("corejax.lax")
if not hasattr(lax, "cond"):
    pytest.skip("no plugin exports lax.cond", allow_module_level=True)

ONES = np.ones(16, np.float32)


def func7(arg: Any) -> Any:
    return lax.cond(arg >= 0.0, arg, lambda xtrue: xtrue + 3.0, arg, lambda xfalse: xfalse - 3.0)


FUNC7 = """\
{ lambda ; a:~f32[]. let
    b:bool[] = ge a 0.0:~f32[]
    c:i32[] = convert_element_type[
      new_dtype=int32
      weak_type=False
    ] b
    d:~f32[] = cond[
      branches=(
        { lambda ; a:~f32[] b:~f32[]. let
            c:~f32[] = sub b 3.0:~f32[]
          in (c,) }
        { lambda ; a:~f32[] b:~f32[]. let
            c:~f32[] = add a 3.0:~f32[]
          in (c,) }
      )
      linear=(False, False)
    ] c a a
  in (d,) }"""


def func8(arg1: Any, arg2: Any) -> Any:  # arg2 is a pair
    return lax.cond(
        arg1 >= 0.0,
        arg2,
        lambda xtrue: xtrue[0],
        arg2,
        lambda xfalse: jnp.ones(1) + xfalse[1],
    )


FUNC8 = """\
{ lambda ; a:~f32[] b:f32[1] c:~f32[]. let
    d:bool[] = ge a 0.0:~f32[]
    e:i32[] = convert_element_type[
      new_dtype=int32
      weak_type=False
    ] d
    f:f32[1] = cond[
      branches=(
        { lambda ; a:f32[1] b:~f32[] c:f32[1] d:~f32[]. let
            e:f32[1] = broadcast_in_dim[
              broadcast_dimensions=()
              shape=(1,)
            ] 1.0:f32[]
            f:f32[1] = add e d
          in (f,) }
        { lambda ; a:f32[1] b:~f32[] c:f32[1] d:~f32[]. let  in (a,) }
      )
      linear=(False, False, False, False)
    ] e b c b c
  in (f,) }"""


def one_of_three(index: Any, arg: Any) -> Any:
    return lax.switch(index, [lambda x: x + 1.0, lambda x: x - 2.0, lambda x: x + 3.0], arg)


ONE_OF_THREE = """\
{ lambda ; a:~i32[] b:~f32[]. let
    c:i32[] = convert_element_type[
      new_dtype=int32
      weak_type=False
    ] a
    d:i32[] = clamp 0:i32[] c 2:i32[]
    e:~f32[] = cond[
      branches=(
        { lambda ; a:~f32[]. let
            b:~f32[] = add a 1.0:~f32[]
          in (b,) }
        { lambda ; a:~f32[]. let
            b:~f32[] = sub a 2.0:~f32[]
          in (b,) }
        { lambda ; a:~f32[]. let
            b:~f32[] = add a 3.0:~f32[]
          in (b,) }
      )
      linear=(False,)
    ] d b
  in (e,) }"""

# As the page prints it.
ONE_OF_THREE_UNTYPED = """\
{ lambda  ; a b.
  let c = convert_element_type[ new_dtype=int32
                                weak_type=False ] a
      d = clamp 0 c 2
      e = cond[ branches=( { lambda  ; a.
                             let b = add a 1.0
                             in (b,) }
                           { lambda  ; a.
                             let b = sub a 2.0
                             in (b,) }
                           { lambda  ; a.
                             let b = add a 3.0
                             in (b,) } )
                linear=(False,) ] d b
  in (e,) }"""


def func10(arg: Any, n: Any) -> Any:
    ones = jnp.ones(arg.shape)  # A constant
    return lax.fori_loop(0, n, lambda i, carry: carry + ones * 3.0 + arg, arg + ones)


FUNC10 = """\
{ lambda ; a:f32[16] b:~i32[]. let
    c:f32[16] = broadcast_in_dim[
      broadcast_dimensions=()
      shape=(16,)
    ] 1.0:f32[]
    d:f32[16] = add a c
    _:~i32[] _:~i32[] e:f32[16] = while[
      body_jaxpr={ lambda ; a:f32[16] b:f32[16] c:~i32[] d:~i32[] e:f32[16]. let
          f:~i32[] = add c 1:~i32[]
          g:f32[16] = mul a 3.0:f32[]
          h:f32[16] = add e g
          i:f32[16] = add h b
        in (f, d, i) }
      body_nconsts=2
      cond_jaxpr={ lambda ; a:~i32[] b:~i32[] c:f32[16]. let
          d:bool[] = lt a b
        in (d,) }
      cond_nconsts=0
    ] c a 0:~i32[] b d
  in (e,) }"""


def func11(arr: Any, extra: Any) -> Any:
    ones = jnp.ones(arr.shape)  #  A constant

    def body(carry: Any, aelems: Any) -> Any:
        # carry: running dot-product of the two arrays
        # aelems: a pair with corresponding elements from the two arrays
        ae1, ae2 = aelems
        return (carry + ae1 * ae2 + extra, carry)

    return lax.scan(body, 0.0, (arr, ones))


FUNC11 = """\
{ lambda ; a:f32[16] b:~f32[]. let
    c:f32[16] = broadcast_in_dim[
      broadcast_dimensions=()
      shape=(16,)
    ] 1.0:f32[]
    d:f32[] e:f32[16] = scan[
      jaxpr={ lambda ; a:~f32[] b:f32[] c:f32[] d:f32[]. let
          e:f32[] = mul c d
          f:f32[] = add b e
          g:f32[] = add f a
        in (g, b) }
      length=16
      linear=(False, False, False, False)
      num_carry=1
      num_consts=1
      reverse=False
      unroll=1
    ] b 0.0:f32[] a c
  in (d, e) }"""

PRINTED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    "func7": (func7, (5.0,), FUNC7),
    "func8": (func8, (5.0, (np.zeros(1, np.float32), 2.0)), FUNC8),
    "one_of_three": (one_of_three, (1, 5.0), ONE_OF_THREE),
    "func10": (func10, (ONES, 5), FUNC10),
    "func11": (func11, (ONES, 5.0), FUNC11),
}


@pytest.mark.parametrize("name", PRINTED)
def test_printed(name: str) -> None:
    function, args, text = PRINTED[name]
    closed = make_jaxpr(function)(*args)
    assert str(closed) == text
    assert closed.consts == []
    assert str(parse_jaxpr(text)) == text


def test_switch_as_the_page_prints_it() -> None:
    assert untyped(make_jaxpr(one_of_three)(1, 5.0)).split() == ONE_OF_THREE_UNTYPED.split()


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "compiled"])
def test_values(wrap: Any) -> None:
    assert [float(wrap(func7)(x)) for x in (5.0, 0.0, -5.0)] == [8.0, 3.0, -8.0]
    pair = (np.array([7.0], np.float32), 2.0)
    assert [wrap(func8)(x, pair).tolist() for x in (5.0, -5.0)] == [[7.0], [3.0]]
    # An index below 0 counts as 0, one past the end as the last.
    assert [float(wrap(one_of_three)(i, 5.0)) for i in (-1, 0, 1, 2, 3)] == [6.0, 6.0, 3.0, 8.0, 8.0]
    np.testing.assert_array_equal(wrap(func10)(ONES, 5), 22.0 * ONES)
    carry, before = wrap(func11)(ONES, 5.0)
    assert float(carry) == 16 * (1.0 + 5.0)
    np.testing.assert_array_equal(before, 6.0 * np.arange(16))


def test_derivatives_and_batches() -> None:
    assert [float(grad(func7)(x)) for x in (5.0, -5.0)] == [1.0, 1.0]
    np.testing.assert_array_equal(vmap(func7)(np.array([5.0, -5.0], np.float32)), [8.0, -8.0])
    np.testing.assert_array_equal(vmap(one_of_three, in_axes=(0, None))(np.arange(3), 5.0), [6.0, 3.0, 8.0])
    assert grad(lambda pair: func8(-1.0, pair).sum())((np.zeros(1, np.float32), 2.0))[1] == 1.0
    # The page's bound is traced; with one that is known the loop is a scan, and differentiable in reverse.
    np.testing.assert_array_equal(grad(lambda arg: func10(arg, 5).sum())(ONES), 6.0 * ONES)
    np.testing.assert_array_equal(vmap(func10, in_axes=(None, 0))(ONES, np.arange(3))[:, 0], [2.0, 6.0, 10.0])
    np.testing.assert_array_equal(grad(lambda arr: func11(arr, 5.0)[0])(ONES), ONES)
    assert float(grad(lambda extra: func11(ONES, extra)[0])(5.0)) == 16.0


def test_constants_from_outside_are_hoisted_to_the_top() -> None:
    """The pages' constvars: `e` of func8, an operand of its `cond`, and `c` of func11, an operand of its `scan`."""
    ones = jnp.ones(1)

    def func8(arg1: Any, arg2: Any) -> Any:
        return lax.cond(arg1 >= 0.0, arg2, lambda xtrue: xtrue[0], arg2, lambda xfalse: ones + xfalse[1])

    def func11(arr: Any, extra: Any) -> Any:
        return lax.scan(lambda c, x: (c + x[0] * x[1] + extra, c), 0.0, (arr, jnp.asarray(ONES)))

    for closed in (make_jaxpr(func8)(5.0, (np.zeros(1, np.float32), 2.0)), make_jaxpr(func11)(ONES, 5.0)):
        (constvar,) = closed.jaxpr.constvars
        assert closed.jaxpr.eqns[-1].invars.count(constvar) == 1
        np.testing.assert_array_equal(closed.consts[0], np.ones(constvar.aval.shape))
