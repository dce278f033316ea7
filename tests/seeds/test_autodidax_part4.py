"""Autodidax, part 4: linearize and vjp (and grad!)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from corejax import grad, jit, lax, linearize, make_jaxpr, vjp
from corejax.extend import jvp_jaxpr, partial_eval_jaxpr
from tests.seeds.printed import assert_prints, assert_prints_up_to_names, printed

pytest.importorskip("corejax_xla_backend")


def the_function(ops: Any) -> Callable[[Any], Any]:
    """The tutorial's `f`."""

    def f(x: Any) -> Any:
        y = ops.mul(ops.sin(x), 2.0)
        z = ops.add(ops.neg(y), x)
        return z

    return f


# -- partial evaluation ----------------------------------------------------------------------------


def test_partial_evaluation_unzips(wide: None) -> None:
    closed = make_jaxpr(lambda x: lax.neg(lax.sin(x)))(np.float64(3.0))
    assert_prints(
        closed,
        """
        { lambda a:float64[] .
          let b:float64[] = sin a
              c:float64[] = neg b
          in ( c ) }
        """,
    )
    pushed, _ = jvp_jaxpr(closed, [True])
    assert_prints(
        pushed,
        """
        { lambda a:float64[] b:float64[] .
          let c:float64[] = sin a
              d:float64[] = cos a
              e:float64[] = mul d b
              f:float64[] = neg c
              g:float64[] = neg e
          in ( f, g ) }
        """,
    )
    known, unknown, unknowns_out, num_residuals = partial_eval_jaxpr(pushed, [False, True])
    assert (unknowns_out, num_residuals) == ([False, True], 1)
    assert_prints_up_to_names(
        known,
        """
        { lambda a:float64[] .
          let c:float64[] = sin a
              d:float64[] = cos a
              f:float64[] = neg c
          in ( f, d ) }
        """,
    )
    assert_prints_up_to_names(
        unknown,
        """
        { lambda d:float64[] b:float64[] .
          let e:float64[] = mul d b
              g:float64[] = neg e
          in ( g ) }
        """,
    )


# -- linearize -------------------------------------------------------------------------------------


def test_linearize(ops: Any) -> None:
    y, sin_lin = linearize(ops.sin, 3.0)
    assert printed(y, ops.sin(3.0)) == "0.1411200080598672 0.1411200080598672"
    assert printed(sin_lin(1.0), ops.cos(3.0)) == "-0.9899924966004454 -0.9899924966004454"


def test_linearize_keeps_python_control_flow(wide: None) -> None:
    """Only what depends on tangents is staged: `grad(lambda x: x**2 if x > 0 else 0.)` works."""
    f = lambda x: x**2 if x > 0 else 0.0
    assert [printed(grad(f)(3.0)), printed(grad(f)(-3.0))] == ["6.0", "0.0"]


def test_linearize_does_the_work_once(ops: Any) -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x)
        return ops.sin(x)

    _, f_lin = linearize(f, 3.0)
    assert [printed(f_lin(t)) for t in (1.0, 2.0)] == ["-0.9899924966004454", "-1.9799849932008908"]
    assert len(calls) == 1


def test_linearize_of_jit(ops: Any) -> None:
    y, f_lin = linearize(jit(the_function(ops)), 3.0)
    y_dot = f_lin(1.0)
    assert printed(y, y_dot) == "2.7177599838802657 2.979984993200891"


def test_linearize_of_nested_jit(ops: Any) -> None:
    @jit
    def f(x: Any) -> Any:
        y = ops.mul(ops.sin(x), 2.0)
        z = g(x, y)
        return z

    @jit
    def g(x: Any, y: Any) -> Any:
        return ops.add(ops.cos(x), y)

    y, f_lin = linearize(f, 3.0)
    y_dot = f_lin(1.0)
    assert printed(y, y_dot) == "-0.7077524804807109 -2.121105001260758"


# -- vjp and grad ----------------------------------------------------------------------------------


def test_vjp(ops: Any) -> None:
    _, f_vjp = vjp(ops.sin, 3.0)
    (x_bar,) = f_vjp(1.0)
    assert f"({printed(x_bar)},) {printed(ops.cos(3.0))}" == "(-0.9899924966004454,) -0.9899924966004454"


def test_grad(ops: Any) -> None:
    assert printed(grad(the_function(ops))(3.0)) == "2.979984993200891"


def test_grad_of_jit_in_jit(ops: Any) -> None:
    @jit
    def f(x: Any) -> Any:
        y = ops.mul(x, 2.0)
        z = g(y)
        return z

    @jit
    def g(x: Any) -> Any:
        return ops.mul(ops.cos(x), 2.0)

    assert printed(grad(f)(3.0)) == "1.1176619927957034"


def test_grad_of_a_sum(ops: Any) -> None:
    x = np.arange(3.0)
    for wrap in (lambda f: f, jit):
        f = wrap(lambda x: ops.reduce_sum(ops.mul(ops.sin(x), x), 0))
        np.testing.assert_allclose(grad(f)(x), np.sin(x) + x * np.cos(x), rtol=1e-15)


def test_grad_refuses_outputs_that_are_not_scalars(ops: Any) -> None:
    with pytest.raises(TypeError, match="scalar"):
        grad(ops.sin)(np.arange(3.0))
