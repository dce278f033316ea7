"""Autodidax, part 3: jit, simplified. 'tracing!' is printed once for each signature, as in the tutorial."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from corejax import Array, jit, jvp, make_jaxpr, vmap
from corejax.extend import batch_jaxpr, jvp_jaxpr
from tests.seeds.printed import assert_prints, printed, type_text

pytest.importorskip("corejax_xla_backend")


def the_function(ops: Any) -> Callable[[Any], Any]:
    """The tutorial's `f`, jitted, which says when it is traced."""

    @jit
    def f(x: Any) -> Any:
        print("tracing!")
        y = ops.mul(ops.sin(x), 2.0)
        z = ops.add(ops.neg(y), x)
        return z

    return f  # type: ignore[no-any-return]


def traced(capsys: pytest.CaptureFixture[str]) -> int:
    """How often 'tracing!' was printed since the last call."""
    return capsys.readouterr().out.count("tracing!")


def deriv(f: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda x: jvp(f, (x,), (1.0,))[1]


def test_jit_traces_once(ops: Any, capsys: pytest.CaptureFixture[str]) -> None:
    @jit
    def f(x: Any, y: Any) -> Any:
        print("tracing!")
        return ops.mul(ops.sin(x), ops.cos(y))

    z = f(3.0, 4.0)  # 'tracing!' prints the first time
    assert traced(capsys) == 1
    assert printed(z) == "-0.09224219304455371"
    z = f(4.0, 5.0)  # 'tracing!' doesn't print, compilation cache hit!
    assert traced(capsys) == 0
    assert printed(z) == "-0.21467624978306993"


def test_jit_of_a_reduction(ops: Any) -> None:
    @jit
    def f(x: Any) -> Any:
        return ops.reduce_sum(x, axis=0)

    assert printed(f(np.array([1.0, 2.0, 3.0]))) == "6.0"


def test_derivatives_of_a_jitted_function(ops: Any) -> None:
    f = the_function(ops)
    assert printed(deriv(deriv(f))(3.0)) == "0.2822400161197344"


def test_jvp_of_jit(ops: Any, capsys: pytest.CaptureFixture[str]) -> None:
    f = the_function(ops)
    x, xdot = 3.0, 1.0
    y, ydot = jvp(f, (x,), (xdot,))
    assert traced(capsys) == 1
    assert printed(y) == "2.7177599838802657"
    assert printed(ydot) == "2.979984993200891"
    y, ydot = jvp(f, (x,), (xdot,))  # 'tracing!' not printed
    assert traced(capsys) == 0
    assert printed(y, ydot) == "2.7177599838802657 2.979984993200891"


def test_vmap_of_jit(ops: Any, capsys: pytest.CaptureFixture[str]) -> None:
    f = the_function(ops)
    ys = vmap(f, (0,))(np.arange(3.0))
    assert printed(ys) == "[ 0.         -0.68294197  0.18140515]"
    ys = vmap(f, (0,))(np.arange(3.0))
    assert printed(ys) == "[ 0.         -0.68294197  0.18140515]"
    assert traced(capsys) == 1


def test_results_are_arrays_on_the_device(ops: Any) -> None:
    """What the tutorial calls DeviceArray."""
    y = the_function(ops)(3.0)
    assert type(y) is Array
    assert (y.dtype, y.shape, y.ndim) == (np.float64, (), 0)
    assert len(y.devices()) == 1
    assert repr(np.asarray(y)) == "array(2.71775998)"
    assert printed(y) == "2.7177599838802657"
    assert float(-y) == -2.7177599838802657
    assert float(y + y) == float(2.0 * y) == 2 * 2.7177599838802657
    assert bool(y > 2.0)
    z = the_function(ops)(y)
    assert printed(*jvp(the_function(ops), (y,), (1.0,))) == printed(z, deriv(the_function(ops))(y))


def test_a_jitted_function_is_one_equation(wide: None) -> None:
    f = jit(lambda x: 2.0 * x)
    closed = make_jaxpr(lambda x: f(f(x)))(np.float64(3.0))
    first, second = closed.jaxpr.eqns
    assert first.primitive.name == second.primitive.name == "xla_call"
    assert first.params["call_jaxpr"] is second.params["call_jaxpr"]
    assert_prints(
        first.params["call_jaxpr"],
        "{ lambda a:float64[], b:float64[] . let c:float64[] = mul a b in ( c ) }",
    )
    assert type_text(closed) == "(float64[]) -> (float64[])"


def test_rules_of_the_call_transform_its_program(wide: None) -> None:
    """Staged ("initial style") processing: a program in, a program out, each made once."""
    closed = make_jaxpr(lambda x: 2.0 * x)(np.float64(3.0))
    pushed, nonzeros = jvp_jaxpr(closed, [True])
    assert nonzeros == [True]
    assert type_text(pushed) == "(float64[], float64[], float64[]) -> (float64[], float64[])"
    assert jvp_jaxpr(closed, [True])[0] is pushed
    batched, dims = batch_jaxpr(closed, 3, [0])
    assert (type_text(batched), dims) == ("(float64[], float64[3]) -> (float64[3])", [0])
    assert batch_jaxpr(closed, 3, [0])[0] is batched
