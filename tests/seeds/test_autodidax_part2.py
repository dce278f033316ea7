"""Autodidax, part 2: jaxprs. The texts are the tutorial's, layout aside."""

from __future__ import annotations

import numpy as np
import pytest

from corejax import eval_shape, lax, make_jaxpr
from corejax.errors import JaxprTypeError
from corejax.extend import Jaxpr, JaxprEqn, ShapedArray, Var, jaxpr_as_fun
from corejax.extend.programs import Literal, check_jaxpr, eval_jaxpr
from corejax.interpreters.partial_eval import partial_eval_flat
from tests.seeds.printed import assert_prints, type_text

pytestmark = pytest.mark.usefixtures("wide")

F64 = ShapedArray((), np.dtype(np.float64))


def test_make_jaxpr() -> None:
    closed = make_jaxpr(lambda x: 2.0 * x)(F64)
    assert_prints(
        closed,
        """
        { lambda a:float64[], b:float64[] .
          let c:float64[] = mul a b
          in ( c ) }
        """,
    )
    assert type_text(closed) == "(float64[], float64[]) -> (float64[])"


def test_without_omnistaging_what_does_not_depend_on_an_argument_is_computed_now() -> None:
    """Partial evaluation still works by data dependence: it leaves nothing of `mul(2., 2.)` but its value."""
    jaxpr, residuals, outs, unknowns = partial_eval_flat(lambda: [lax.mul(2.0, 2.0)], [], [])
    assert (jaxpr.eqns, residuals, unknowns) == ([], [], [False])
    assert float(outs[0]) == 4.0
    assert_prints(
        make_jaxpr(lambda: outs[0])(),
        """
        { lambda a:float64[] .
          in ( a ) }
        """,
    )


def test_omnistaging() -> None:
    assert_prints(
        make_jaxpr(lambda: lax.mul(2.0, 2.0))(),
        """
        { lambda a:float64[] .
          let b:float64[] = mul a a
          in ( b ) }
        """,
    )


def test_jaxprs_are_evaluated() -> None:
    closed = make_jaxpr(lambda x: 2.0 * x)(F64)
    assert float(eval_jaxpr(closed.jaxpr, closed.consts, [3.0])[0]) == 6.0
    again = make_jaxpr(jaxpr_as_fun(closed))(F64)
    assert str(again) == str(closed), "the interpreter of jaxprs is itself traceable"


def test_each_constant_is_one_binder() -> None:
    table = lax.sin(np.arange(3.0))
    closed = make_jaxpr(lambda x: (x + table) * table)(table)
    assert len(closed.consts) == 1
    assert type_text(closed) == "(float64[3], float64[3]) -> (float64[3])"


def test_an_argument_that_is_an_output() -> None:
    assert_prints(make_jaxpr(lambda x: x)(F64), "{ lambda a:float64[] . in ( a ) }")


def test_type_errors() -> None:
    closed = make_jaxpr(lambda x: 2.0 * x)(F64)
    (eqn,), (x,), (out,) = closed.jaxpr.eqns, closed.jaxpr.invars, closed.jaxpr.outvars
    wrong = Var(ShapedArray((3,), np.dtype(np.float64)))
    for jaxpr, message in (
        (Jaxpr([], [], [eqn], [out]), "unbound variable"),
        (Jaxpr([], [x, x], [eqn], [out]), "bound twice"),
        (Jaxpr([], [x], [eqn, eqn], [out]), "bound twice"),
        (Jaxpr([], [x], [eqn.replace(outvars=[wrong])], [wrong]), "mul.*binds a variable of type"),
        (
            Jaxpr([], [x], [JaxprEqn(eqn.primitive, [x, Literal(np.int32(1))], [out], {})], [out]),
            "mul.*does not take its operands",
        ),
    ):
        with pytest.raises(JaxprTypeError, match=message):
            check_jaxpr(jaxpr)


def test_abstract_evaluation_alone() -> None:
    out = eval_shape(lambda x: lax.reduce_sum(lax.broadcast_in_dim(x, (3, 2), (0,)), (0,)), np.arange(3.0))
    assert (out.shape, out.dtype) == ((2,), np.float64)
