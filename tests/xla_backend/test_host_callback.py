"""Primitives with an impl and a type alone are called back on the host; those with a translation alone are compiled."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import threading
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
from corejax import config, jit, lax, vmap
from corejax.cli.rule_status import rule_statuses
from corejax.errors import DerivedRuleWarning, MissingRuleError
from corejax.extend import Primitive, ShapedArray, impl_rules, xla_translations
from corejax.extend.transforms import trace_stack

pytest.importorskip("jaxlib")

from corejax_xla_backend._xla import compiling

ignored = pytest.mark.filterwarnings("ignore::corejax.errors.DerivedRuleWarning")
_numbers = itertools.count()
X = np.array([3.0, 1.0, 2.0], np.float32)
M = np.arange(12, dtype=np.float32).reshape(3, 4)


def make(impl: Any, abstract_eval: Any = lambda x, **params: x, **options: Any) -> Primitive:
    return Primitive(f"callback_test.p{next(_numbers)}", impl=impl, abstract_eval=abstract_eval, **options)


# -- values ----------------------------------------------------------------------------------------


@ignored
def test_compiled_program_calls_the_impl_at_each_run() -> None:
    calls = []
    p = make(lambda x: calls.append(type(x)) or np.sort(x))
    f = jit(lambda x: p.bind(x * 2) + 1)
    for i in range(3):
        np.testing.assert_array_equal(f(X + i), np.sort((X + i) * 2) + 1)
    assert calls == [np.ndarray] * 3
    assert xla_translations.rule_of(p).derived == "host callback"


@ignored
def test_calls_of_equal_params_that_differ_are_told_apart() -> None:
    p = make(lambda x, *, k: np.full_like(x, 7) if k is True else np.copysign(x, k))
    f = jit(lambda x: [p.bind(x, k=k) for k in (0.0, -0.0, 1, True)])
    np.testing.assert_array_equal(f(X), [X, -X, X, np.full_like(X, 7)])


@pytest.mark.sampled
@ignored
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 0), (2, 3, 2)])
@pytest.mark.parametrize(
    "dtype",
    [
        np.bool_,
        np.int8,
        np.uint16,
        np.int32,
        np.int64,
        np.float16,
        ml_dtypes.bfloat16,
        np.float64,
        np.complex64,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.int4,
    ],
)
def test_dtypes_and_shapes(dtype: Any, shape: tuple[int, ...]) -> None:
    x = (np.arange(np.prod(shape, dtype=int)) % 3).reshape(shape).astype(dtype)
    seen = []
    # With an effect: XLA makes nothing of a call without one whose result has no elements.
    p = make(lambda x: seen.append((x.dtype, x.shape)) or (x[::-1] if x.ndim else x), effects=("count",))
    got = jit(p.bind)(x)
    np.testing.assert_array_equal(got, x[::-1] if shape else x)
    assert got.dtype == x.dtype and got.shape == shape and seen == [(x.dtype, shape)]


@ignored
def test_weak_types() -> None:
    p = make(lambda x: x)
    assert jit(p.bind)(2.0).aval is p.bind(2.0).aval


@ignored
def test_several_results_no_operands_params() -> None:
    def impl(x: Any, y: Any, *, k: float) -> Any:
        return [np.asarray(x.sum() * k, x.dtype), np.outer(x, y)]

    def typed(x: Any, y: Any, *, k: float) -> Any:
        return [ShapedArray((), x.dtype), ShapedArray((*x.shape, *y.shape), x.dtype)]

    p = make(impl, typed, multiple_results=True)
    f = lambda x, y: [*p.bind(x, y, k=2.0), *p.bind(y, x, k=3.0)]
    for got, wanted in zip(jit(f)(X, X[:2]), f(X, X[:2]), strict=True):
        np.testing.assert_array_equal(got, wanted)
    table = make(lambda *, n: np.arange(n), lambda *, n: ShapedArray((n,), np.int64))
    np.testing.assert_array_equal(jit(lambda: table.bind(n=4))(), range(4))


@ignored
def test_layouts_are_row_major() -> None:
    p = make(lambda x: np.cumsum(x, 1), lambda x: x)
    f = lambda x: p.bind(lax.transpose(p.bind(lax.transpose(x, (1, 0))), (1, 0)))
    np.testing.assert_array_equal(jit(f)(M), f(M))


@ignored
def test_operands_are_the_impls_own_memory() -> None:
    kept = []
    p = make(lambda x: kept.append(x) or x)
    f = jit(lambda x: p.bind(x + 1))
    for i in range(3):
        f(X + i)
    gc.collect()
    for i, x in enumerate(kept):
        np.testing.assert_array_equal(x, X + 1 + i)


# -- programs --------------------------------------------------------------------------------------


@ignored
def test_several_callbacks_in_one_program() -> None:
    calls = []
    double = make(lambda x: calls.append("double") or x * 2)
    shift = make(lambda x, *, by: calls.append(by) or x + np.float32(by))

    def f(x: Any) -> Any:
        for k in range(3):
            x = double.bind(shift.bind(x, by=k % 2))
        return x

    np.testing.assert_array_equal(jit(f)(X), f(X))
    assert calls == [0, "double", 1, "double", 0, "double"] * 2
    assert len(compiling.lower(cj.make_jaxpr(f)(X), "f", "cpu").callbacks) == 3, "equal ones are one"


@ignored
def test_in_bodies_of_scan_cond_and_nested_jit() -> None:
    p = make(np.sort)
    f = lambda x: lax.scan(lambda c, row: (c + p.bind(row)[0], p.bind(row) + c), np.float32(0), x)
    for got, wanted in zip(jit(f)(-M), f(-M), strict=True):
        np.testing.assert_array_equal(got, wanted)
    g = jit(lambda b, x: lax.cond(b, p.bind, lambda x: x, x))
    np.testing.assert_array_equal(g(True, X), np.sort(X))
    np.testing.assert_array_equal(g(False, X), X)
    inner = jit(p.bind)
    np.testing.assert_array_equal(jit(lambda x: inner(x) + inner(x * 2))(X), np.sort(X) * 3)


@ignored
def test_vmap_is_a_loop_in_the_program() -> None:
    calls = []
    p = make(lambda x: calls.append(x.shape) or np.sort(x))
    for f in (jit(vmap(p.bind)), vmap(jit(p.bind))):
        np.testing.assert_array_equal(f(-M), np.sort(-M))
    np.testing.assert_array_equal(jit(vmap(vmap(p.bind)))(-M[None]), np.sort(-M[None]))
    assert calls == [(4,)] * 9
    big = np.random.default_rng(0).normal(size=(500, 4)).astype(np.float32)
    assert jit(vmap(p.bind)).lower(big).as_text().count("custom_call") == 1
    np.testing.assert_array_equal(jit(vmap(p.bind))(big), np.sort(big))
    assert jit(vmap(p.bind))(big[:0]).shape == (0, 4)


@ignored
def test_own_jvp_beside_a_callback() -> None:
    p = make(np.square, lambda x: x, jvp=lambda xs, ts: (p.bind(*xs), ts[0] * 2 * xs[0]))
    np.testing.assert_allclose(jit(cj.grad(lambda x: p.bind(x).sum()))(X), 2 * X)
    np.testing.assert_allclose(jit(vmap(cj.value_and_grad(p.bind)))(X)[0], X**2)


@ignored
def test_effects_run_though_nobody_uses_the_result() -> None:
    seen: list[float] = []
    log = make(lambda x: seen.append(x.tolist()) or [], lambda x: [], multiple_results=True, effects=("log",))

    @jit
    def f(x: Any) -> Any:
        log.bind(x)
        return x + 1

    f(np.float32(1))
    f(np.float32(2))
    assert seen == [1, 2]


@ignored
def test_callbacks_live_as_long_as_the_program() -> None:
    f = jit(make(np.sort).bind)
    f(X)
    compiled = f.lower(X).compile()
    for _ in range(3):
        gc.collect()
        np.testing.assert_array_equal(f(X), np.sort(X))
        np.testing.assert_array_equal(compiled(X), np.sort(X))
    assert "custom-call" in compiled.as_text() and "callback" in f.lower(X).as_text()


# -- errors ----------------------------------------------------------------------------------------


@ignored
@pytest.mark.parametrize(
    ("impl", "options", "message"),
    [
        (lambda x: x.astype(np.float64), {}, r"its impl rule returned float64\[3\], but .* promises float32\[3\]"),
        (lambda x: x[:2], {}, r"its impl rule returned float32\[2\], but .* promises float32\[3\]"),
        (lambda x: x, {"multiple_results": True}, "its impl rule returned one value of type ndarray"),
        (lambda x: [x, x], {"multiple_results": True}, "its impl rule returned 2 results"),
    ],
)
def test_results_of_another_type_than_promised(impl: Any, options: Any, message: str) -> None:
    p = make(impl, (lambda x: [x]) if options else (lambda x: x), **options)
    with pytest.raises(TypeError, match=message):
        p.bind(X)
    with pytest.raises(TypeError, match=message) as info:
        jit(p.bind)(X)
    assert f"'{p.name}'" in str(info.value) and "test_host_callback.py" in str(info.value)


@ignored
def test_interrupts_stay_interrupts() -> None:
    def impl(x: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jit(make(impl).bind)(X)


# -- threads ---------------------------------------------------------------------------------------

DEADLOCK = """
import faulthandler, threading, warnings
faulthandler.dump_traceback_later(60, exit=True)
import numpy as np
import corejax as cj, corejax.numpy as jnp
from corejax.extend import Primitive, ShapedArray
warnings.simplefilter("ignore")
big = np.random.default_rng(0).normal(size=(400, 400)).astype(np.float32)
slow = cj.jit(lambda x: jnp.sum(jnp.exp(jnp.sin(x @ x @ x + x.T))) * 0)

def impl(x):
    y = jnp.array(big) + x           # an eager operation
    return np.asarray(slow(y) + x)   # a jitted function that takes a while, and an eager one

inner = Primitive("deadlock.inner", impl=impl, abstract_eval=lambda x: x)
outer = Primitive("deadlock.outer", impl=lambda x: np.asarray(cj.jit(inner.bind)(x)), abstract_eval=lambda x: x)
f = cj.jit(lambda x: outer.bind(inner.bind(x + 1)))
assert float(f(np.float32(1))) == 2
pending = slow(big)                  # not computed yet
outs = [f(pending) for _ in range(20)]
assert [float(x) for x in outs] == [1] * 20

def work():
    for _ in range(3):
        assert float(f(slow(big))) == 1

threads = [threading.Thread(target=work) for _ in range(6)]
for t in threads: t.start()
for t in threads: t.join()
print("done")
"""


@pytest.mark.parametrize("background", ["0", "1"])
def test_callbacks_that_compute_with_corejax_do_not_deadlock(background: str) -> None:
    command = [sys.executable, "-c", DEADLOCK]
    environment = {**os.environ, "COREJAX_CPU_ENABLE_ASYNC_DISPATCH": background}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr


@ignored
def test_callback_on_another_thread_starts_from_a_clean_stack() -> None:
    stacks = []
    p = make(lambda x: stacks.append(len(trace_stack())) or x)
    f = jit(p.bind)
    cj.make_jaxpr(lambda x: f(x))(X)
    cj.jvp(lambda x: x * f(X), (X,), (X,))
    threads = [threading.Thread(target=f, args=(X,)) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert stacks == [1] * 5


# -- warnings and marks ----------------------------------------------------------------------------


def test_warns_once() -> None:
    p = make(np.sort)
    with pytest.warns(DerivedRuleWarning) as caught:
        jit(p.bind)(X)
        jit(lambda x: p.bind(x) + 1)(X[:2])
    [warning] = caught
    message = str(warning.message)
    assert message.startswith(f"primitive '{p.name}' (from module {__name__}) has no XLA translation rule: compiled ")
    assert "@xla_translations.register(" in message and warning.filename == __file__


def test_strict_rules_refuse_the_callback() -> None:
    p = make(np.sort)
    with config.override(strict_rules=True), pytest.raises(MissingRuleError, match="here the one by host callback"):
        jit(p.bind)(X)


# -- an impl from a translation --------------------------------------------------------------------


def test_impl_by_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    compile_module = compiling._jaxlib.compile_module
    monkeypatch.setattr(
        compiling._jaxlib, "compile_module", lambda *a, **k: compiled.append(1) or compile_module(*a, **k)
    )
    p = Primitive("callback_test.only_xla", abstract_eval=lambda x, *, k: x)
    assert rule_statuses(p)["impl"].status == "missing"

    @xla_translations.register(p)
    def translation(ctx: Any, in_avals: Any, in_vals: Any, *, k: int) -> Any:
        return ctx.op("add", in_vals[0], ctx.full(in_avals[0], k), out=in_avals[0])

    assert rule_statuses(p)["impl"].derivation == "compilation"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            np.testing.assert_array_equal(p.bind(X, k=2), X + 2)
        assert len(compiled) == 1
        np.testing.assert_array_equal(p.bind(X[:2], k=2), X[:2] + 2)
        np.testing.assert_array_equal(p.bind(X, k=3), X + 3)
        assert len(compiled) == 3
        assert p.bind(2.0, k=1).aval.weak_type
        np.testing.assert_array_equal(jit(lambda x: p.bind(x, k=1))(X), X + 1)
    assert impl_rules.rule_of(p).derived == "compilation" and impl_rules.rule_of(p).flags == {"device": True}
    with pytest.warns(DerivedRuleWarning, match="no vmap rule"):
        np.testing.assert_array_equal(vmap(lambda x: p.bind(x, k=1))(M), M + 1)


def test_impl_by_compilation_with_several_results() -> None:
    p = Primitive("callback_test.both", abstract_eval=lambda x, y: [y, x], multiple_results=True)
    xla_translations.register(p, lambda ctx, avals, vals: [vals[1], vals[0]])
    got = p.bind(X, np.int32(3))
    assert int(got[0]) == 3 and got[0].dtype == np.int32
    np.testing.assert_array_equal(got[1], X)


def test_nothing_from_a_type_alone() -> None:
    p = Primitive("callback_test.type_only", abstract_eval=lambda x: x)
    with pytest.raises(MissingRuleError, match="an XLA translation rule and an abstract-eval rule"):
        p.bind(X)
    with pytest.raises(MissingRuleError, match="no XLA translation rule"):
        jit(p.bind)(X)


def test_a_callback_that_is_meant_is_an_own_rule() -> None:
    p = make(np.sort)
    xla_translations.register(p, by="host callback")
    with warnings.catch_warnings(), config.override(strict_rules=True):
        warnings.simplefilter("error")
        np.testing.assert_array_equal(jit(lambda x: p.bind(x) * 2)(X), np.sort(X) * 2)
        assert rule_statuses(p)["xla_translation"].status == "own"
    q = Primitive(f"callback_test.p{next(_numbers)}", abstract_eval=lambda x: x)
    xla_translations.register(q, by="host callback")
    with pytest.raises(MissingRuleError, match="by 'host callback', which cannot be derived: it needs an impl"):
        jit(q.bind)(X)


@ignored
@pytest.mark.parametrize("inner", [lambda f: f, jit], ids=["inlined", "called"])
def test_a_reduction_refuses_to_call_back(inner: Any) -> None:
    p = make(np.sin)
    combine = inner(lambda x, y: p.bind(x) * y)
    for f in (
        lambda x: lax.reduce(x, 1.0, combine, (0,)),
        lambda x: lax.reduce_window(x, 1.0, combine, (2,), (1,), "VALID"),
    ):
        with pytest.raises(NotImplementedError, match="combines elements with has a primitive that calls back"):
            jit(f)(X)
