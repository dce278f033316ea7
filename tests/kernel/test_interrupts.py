"""An interrupt at any place leaves the thread's state as it was."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import corejax as cj
from corejax.base.restoring import run_within
from corejax.core.trace import _contexts_changed, on_context
from corejax.core.trace import state as trace_state
from corejax.extend import config, new_main, run_with_trace, set_current_trace
from corejax.extend.transforms import named_axes
from corejax.interpreters.batching import BatchTrace
from corejax_explain._explain import explain
from tests.kernel.interrupting import interrupt_everywhere, thread_state
from tests.kernel.toys import call, mul, sin, sum_

pytestmark = pytest.mark.usefixtures("toys")
X = np.array([0.1, -0.5, 2.0], dtype=np.float32)


def overridden():
    with config.override(default_dtype_bits=64, check_jaxprs=True):
        pass


def f(x):
    return sum_(mul(sin(x), x))


ENTERING = {
    "make_jaxpr": lambda: cj.make_jaxpr(f, axis_env=[("k", 2)])(X),
    "make_jaxpr of grad of vmap": lambda: cj.make_jaxpr(cj.grad(lambda x: sum_(cj.vmap(sin)(x))))(X),
    "jvp": lambda: cj.jvp(f, (X,), (X,)),
    "grad": lambda: cj.grad(f)(X),
    "linearize": lambda: cj.linearize(f, X)[1](X),
    "vmap": lambda: cj.vmap(sin, axis_name="i")(X),
    "vmap of grad": lambda: cj.vmap(cj.grad(f))(np.stack([X, X])),
    "grad of a call": lambda: cj.grad(lambda x: sum_(call(sin)(x)))(X),
    "nested make_jaxpr": lambda: cj.make_jaxpr(lambda x: cj.make_jaxpr(f)(x) and f(x))(X),
}
ONE_RUN_IS_LONG = {"vmap of grad", "make_jaxpr of grad of vmap", "grad of a call"}


@pytest.fixture(autouse=True)
def as_before():
    before = thread_state()
    heard: list[bool] = []
    on_context(heard.append)
    try:
        yield heard
    finally:
        _contexts_changed.disconnect(heard.append)
    assert thread_state() == before and gc.isenabled()


@pytest.mark.parametrize("lines", [False, True], ids=["calls", "lines"])
@pytest.mark.parametrize("name", ENTERING)
def test_an_interrupt_anywhere_restores_the_state(name, lines, as_before):
    before = thread_state()
    ENTERING[name]()  # rules are derived, avals remembered

    def after():
        assert thread_state() == before
        assert not as_before or as_before[-1] is False  # dispatchers have been told that nothing is recorded

    step = 3 if name in ONE_RUN_IS_LONG and not lines else 1
    assert interrupt_everywhere(ENTERING[name], after, lines=lines, step=step) > 4
    np.testing.assert_allclose(cj.grad(f)(X), np.sin(X) + X * np.cos(X), rtol=1e-6)


def test_an_interrupt_while_explaining_leaves_nobody_watching():
    before = thread_state()
    tables = [vars(BatchTrace)["process_primitive"], cj.rules.jvp_rules.table]
    action = lambda: explain(cj.grad(f))(X)
    action()

    def after():
        assert thread_state() == before
        assert [vars(BatchTrace)["process_primitive"], cj.rules.jvp_rules.table] == tables
        assert not (cj.observe.observed() or cj.observe.watched or cj.observe.watched_here())

    assert interrupt_everywhere(action, after, step=3) > 20


def test_changes_are_taken_back_inside_a_function_that_restores():
    """What a `with` block leaves that is interrupted before its `__exit__` begins, the function around it restores."""
    before = thread_state()

    def body():
        with set_current_trace(trace_state.trace):
            return sin(X)

    actions = (
        lambda: run_within((config.override(default_dtype_bits=64),), sin, X),
        lambda: run_within((named_axes([("i", 3)]),), sin, X),
        lambda: run_with_trace(BatchTrace(trace_state.trace, 3), body, ()),
    )
    for action in actions:
        action()
        assert interrupt_everywhere(action, lambda: _same(before)) > 5


def _same(before):
    assert thread_state() == before


def test_nothing_is_restored_later():
    """A context manager that an interrupt has cut off does nothing any more when it is collected."""

    def cut_off(manager):
        manager.__enter__()
        raise KeyboardInterrupt

    for make in (
        lambda: new_main(BatchTrace(trace_state.trace, 3)),
        lambda: set_current_trace(trace_state.trace),
        lambda: named_axes([("i", 3)]),
        lambda: config.override(default_dtype_bits=64),
    ):
        manager = make()
        with pytest.raises(KeyboardInterrupt):
            cut_off(manager)
        inside = trace_state.trace, trace_state.axis_env, config.default_dtype_bits
        restore, kept = manager.restore, manager
        del manager, kept
        gc.collect()
        assert (trace_state.trace, trace_state.axis_env, config.default_dtype_bits) == inside
        restore()


def test_a_setting_that_is_refused_changes_none():
    with pytest.raises(ValueError, match="32 or 64"), config.override(check_jaxprs=True, default_dtype_bits=7):
        pass
    assert config.check_jaxprs is False or config.check_jaxprs == thread_state()[-1]["check_jaxprs"]


def test_override_is_a_decorator_that_may_recurse():
    @config.override(default_dtype_bits=64)
    def bits(n):
        return [config.default_dtype_bits, *(bits(n - 1) if n else ())]

    assert bits(2) == [64, 64, 64] and config.default_dtype_bits == 32
