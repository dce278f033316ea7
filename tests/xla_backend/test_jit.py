"""`jit`: what is traced, compiled and called when, alone and under the other transformations."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from corejax import Array, clear_caches, config, grad, hessian, jit, jvp, lax, make_jaxpr, value_and_grad, vmap
from corejax.core.trace import state as trace_state
from corejax.errors import UnexpectedTracerError
from corejax.extend.transforms import trace_stack

pytest.importorskip("jaxlib")

from corejax_xla_backend import _jaxlib, _programs


class Counted:
    """A function that counts how often Python runs it."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun
        self.calls = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return self.fun(*args, **kwargs)


def vector(*values: float, dtype: Any = np.float32) -> np.ndarray:
    return np.array(values, dtype)


# -- tracing and compiling -------------------------------------------------------------------------


def test_traced_once_for_each_signature() -> None:
    counted = Counted(lambda x: x + x)
    f = jit(counted)
    for x in (vector(1, 2), vector(3, 4), f(vector(1, 2)), jit(lambda x: x)(vector(1, 2))):
        np.testing.assert_array_equal(f(x), 2 * np.asarray(x))
    assert counted.calls == 1
    f(vector(1, 2, 3))
    assert counted.calls == 2, "another shape"
    f(vector(1, 2, dtype=np.int32))
    assert counted.calls == 3, "another dtype"
    f(1.0)
    f(2.0)
    assert counted.calls == 4, "a weak scalar"
    assert f(np.float32(1)).weak_type is False and f(1.0).weak_type is True
    assert counted.calls == 5, "a strong scalar"


def test_compiled_once_for_each_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    compile_module = _jaxlib.compile_module
    monkeypatch.setattr(_jaxlib, "compile_module", lambda *a, **k: compiled.append(1) or compile_module(*a, **k))
    f = jit(lambda x: x * 3)
    for _ in range(3):
        f(vector(1, 2))
    assert len(compiled) == 1
    f(vector(1, 2, 3))
    assert len(compiled) == 2
    for _ in range(3):
        vmap(f)(np.ones((4, 2), np.float32))
    assert len(compiled) == 3, "the batched program"
    for _ in range(3):
        jvp(f, (vector(1, 2),), (vector(1, 2),))
    assert len(compiled) == 4, "the program that pushes tangents forward"


def test_repeated_calls_do_not_run_python(monkeypatch: pytest.MonkeyPatch) -> None:
    f = jit(lambda x, y: {"sum": x + y, "pair": (x, [y])})
    x = f(vector(1), vector(2))["sum"]
    f(x, x)
    with monkeypatch.context() as patch:
        patch.setattr(trace_state.__class__, "contexts", property(lambda self: 1 / 0))  # what a slow call reads first
        out = f(x, x)
    assert float(out["sum"][0]) == 6 and type(out["pair"][1][0]) is Array


def test_retraced_when_the_default_width_changes() -> None:
    counted = Counted(lambda x: x * 1.5)
    f = jit(counted)
    assert f(2.0).dtype == np.float32
    with config.override(default_dtype_bits=64):
        assert f(2.0).dtype == np.float64
        assert f(2).dtype == np.float64
    assert f(2.0).dtype == np.float32
    assert counted.calls == 3
    g = jit(Counted(lambda x: x + lax.sin(1.0)))
    assert g(vector(1)).dtype == np.float32
    assert g.__wrapped__.calls == 1
    with config.override(default_dtype_bits=64):
        g(vector(1))
    assert g.__wrapped__.calls == 2, "the same types of arguments, but what is created inside is wider"


def test_clear_cache() -> None:
    counted = Counted(lambda x: x + 1)
    f = jit(counted)
    f(1.0)
    f.clear_cache()
    f(1.0)
    assert counted.calls == 2
    assert f._cache_size() == 1
    f(1)
    assert f._cache_size() == 2
    clear_caches()
    assert f._cache_size() == 0


def test_inner_jitted_function_is_traced_once_for_each_signature() -> None:
    counted = Counted(lambda x: x * 2)
    inner = jit(counted)
    outer = jit(lambda x: inner(x) + inner(inner(x)) + inner(lax.sin(x)))
    np.testing.assert_allclose(outer(vector(1, 2)), 6 * vector(1, 2) + 2 * np.sin(vector(1, 2)), rtol=1e-6)
    inner(vector(5, 6))
    assert counted.calls == 1


# -- programs --------------------------------------------------------------------------------------


def test_a_call_is_one_equation_and_one_function() -> None:
    inner = jit(lambda x: lax.sin(x) * 2)
    outer = lambda x: inner(x) + inner(inner(x))
    closed = make_jaxpr(outer)(vector(1, 2))
    names = [eqn.primitive.name for eqn in closed.jaxpr.eqns]
    assert sorted(names) == ["add", "xla_call", "xla_call", "xla_call"]
    programs = {id(e.params["call_jaxpr"]) for e in closed.jaxpr.eqns if e.primitive.name == "xla_call"}
    assert len(programs) == 1
    text = jit(outer).lower(vector(1, 2)).as_text()
    assert text.count("func.func private") == 1
    assert text.count("call @") == 3
    assert text.count("stablehlo.sine") == 1


def test_inlined_on_request() -> None:
    inner = jit(lambda x: lax.sin(x) * 2, inline=True)
    closed = make_jaxpr(lambda x: inner(x) + 1)(vector(1, 2))
    assert [eqn.primitive.name for eqn in closed.jaxpr.eqns] == ["sin", "mul", "add"]
    np.testing.assert_allclose(inner(vector(1, 2)), 2 * np.sin(vector(1, 2)), rtol=1e-6)


def test_closures_over_arrays() -> None:
    table, host = lax.sin(vector(1, 2)), vector(3, 4)
    f = jit(lambda x: x * table + host)
    for _ in range(2):
        np.testing.assert_allclose(f(vector(1, 1)), np.sin(vector(1, 2)) + host, rtol=1e-6)
    closed = make_jaxpr(f)(vector(1, 1))
    (eqn,) = closed.jaxpr.eqns
    assert len(closed.consts) == 2 and len(eqn.invars) == 3, "constants are operands of the call"


def test_closures_over_outer_tracers() -> None:
    def f(x: Any, y: Any) -> Any:
        return jit(lambda z: x * z + y)(y)

    x, y = 3.0, 2.0
    assert float(f(x, y)) == float(jit(f)(x, y)) == 8.0
    assert [float(g) for g in grad(f, (0, 1))(x, y)] == [2.0, 4.0]
    assert [float(g) for g in jit(grad(f, (0, 1)))(x, y)] == [2.0, 4.0]
    np.testing.assert_array_equal(vmap(f, (0, None))(vector(1, 2, 3), y), [4, 6, 8])
    np.testing.assert_array_equal(vmap(grad(jit(f)), (None, 0))(x, vector(1, 2, 3)), [1, 2, 3])


def test_a_trace_that_holds_outer_tracers_is_not_used_again() -> None:
    def outer(inner: Callable[..., Any], x: Any) -> Any:
        cell.append(x)
        return inner(1.0)

    cell: list[Any] = []
    inner = jit(lambda y: cell[-1] * y)
    g = grad(lambda x: outer(inner, x))
    assert [float(g(3.0)), float(g(4.0))] == [1.0, 1.0]
    assert float(outer(inner, np.float32(5))) == 5.0


# -- under the other transformations ---------------------------------------------------------------


def loss(w: Any, x: Any) -> Any:
    return lax.reduce_sum(lax.tanh(w * x) ** 2, (0,))


W, X = vector(0.3, -1.2, 2.0), vector(1.0, 0.5, -0.7)


def loss_gradient() -> np.ndarray:
    t = np.tanh(W * X)
    return 2 * t * (1 - t**2) * X


def test_grad_and_jit_commute() -> None:
    expected = loss_gradient()
    for g in (
        grad(loss),
        grad(jit(loss)),
        jit(grad(loss)),
        jit(grad(jit(loss))),
        jit(jit(grad(jit(jit(loss))))),
    ):
        np.testing.assert_allclose(g(W, X), expected, rtol=1e-5)
    value, gradient = jit(value_and_grad(jit(loss)))(W, X)
    np.testing.assert_allclose(value, (np.tanh(W * X) ** 2).sum(), rtol=1e-6)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5)
    np.testing.assert_allclose(hessian(jit(loss))(W, X), jit(hessian(loss))(W, X), rtol=1e-5)


def test_vmap_and_jit_commute() -> None:
    xs = np.stack([X, 2 * X, -X])
    expected = np.stack([loss(W, x) for x in xs])
    for f in (vmap(loss, (None, 0)), vmap(jit(loss), (None, 0)), jit(vmap(loss, (None, 0)))):
        np.testing.assert_allclose(f(W, xs), expected, rtol=1e-6)
    per_example = vmap(jit(grad(jit(loss))), (None, 0))(W, xs)
    np.testing.assert_allclose(per_example[0], loss_gradient(), rtol=1e-5)


def test_vmap_of_a_call_that_leaves_outputs_unmapped() -> None:
    f = jit(lambda x, y: (x + y, y * 2))
    mapped, same = vmap(f, (0, None), (0, None))(vector(1, 2), 3.0)
    np.testing.assert_array_equal(mapped, [4, 5])
    assert float(same) == 6.0


def test_jvp_of_a_call_with_inputs_and_outputs_that_have_no_tangents() -> None:
    f = jit(lambda x, n: (x * 2, n + 1, x > 0))
    (y, m, positive), (t, *_) = jvp(f, (3.0, 4), (1.0, np.zeros((), [("float0", np.void, 0)])))
    assert (float(y), int(m), bool(positive), float(t)) == (6.0, 5, True, 2.0)


def test_integer_and_boolean_arguments_beside_differentiated_ones() -> None:
    f = jit(lambda x, n, flag: x * n if flag is None else lax.select(flag, x * n, x))
    assert float(grad(f)(3.0, np.float32(2), np.array(True))) == 2.0
    assert float(grad(f)(3.0, np.float32(2), np.array(False))) == 1.0


def test_residuals_do_not_pass_through_compiled_code() -> None:
    """The weights that the backward pass needs are the caller's arrays, not copies that the forward call returns."""
    calls = []

    def spy(closed: Any, args: Any, name: str, *where: Any) -> Any:
        calls.append((name, len(closed.in_avals), len(closed.out_avals)))
        return execute(closed, args, name, *where)

    execute = _programs.run_where_they_are
    layer = jit(lambda w, x: lax.reduce_sum(w * x, (0,)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_programs, "run_where_they_are", spy)
        gw, gx = grad(layer, (0, 1))(W, X)
    np.testing.assert_array_equal(gw, X)
    np.testing.assert_array_equal(gx, W)
    forward = calls[0]
    assert forward[2] == 1, "one output: the value; w and x are not returned"


# -- exceptions and threads ------------------------------------------------------------------------


def test_exceptions_leave_everything_as_it_was() -> None:
    def fails(x: Any) -> Any:
        jit(lambda y: vmap(lambda z: grad(raises)(z))(y))(x)

    def raises(x: Any) -> Any:
        raise KeyError("here")

    f = jit(fails)
    for _ in range(2):
        with pytest.raises(KeyError, match="here"):
            f(vector(1, 2))
        assert len(trace_stack()) == 1 and trace_state.contexts == 0
    assert float(jit(lambda x: x + 1)(1.0)) == 2.0


def test_leaked_tracers_are_refused() -> None:
    leaked: list[Any] = []
    jit(lambda x: leaked.append(x) or x)(1.0)
    for use in (
        lambda: leaked[0] + 1,
        lambda: jit(lambda x: x + leaked[0])(1.0),
        lambda: jit(lambda x: x)(leaked[0]),
    ):
        with pytest.raises(UnexpectedTracerError, match="escaped"):
            use()


def test_errors_of_compilation_reach_the_caller() -> None:
    with pytest.raises(TypeError):
        jit(lambda x: lax.dot(x, x))(np.ones((2, 3), np.float32))
    assert len(trace_stack()) == 1


def test_many_threads() -> None:
    counted = Counted(lambda x, n: lax.sin(x) * n)
    f = jit(counted)
    g = jit(grad(lambda x: f(x, 3.0)))

    def work(i: int) -> tuple[float, float]:
        return float(f(np.float32(i), 2.0)), float(g(np.float32(i)))

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(100)))
    np.testing.assert_allclose(results, [(2 * np.sin(i), 3 * np.cos(i)) for i in range(100)], rtol=1e-4, atol=1e-5)
    assert counted.calls <= 8, "once for each signature, and for each thread that came at the same moment"
