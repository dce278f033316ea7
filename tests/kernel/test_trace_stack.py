"""The trace stack: what is on it when, omnistaging, clean after anything, one per thread."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest

import corejax as cj
from corejax.core.trace import _contexts_changed, bottom_trace
from corejax.core.trace import state as trace_state
from corejax.errors import UnexpectedTracerError
from corejax.extend import Array, Primitive, current_trace, new_main, set_current_trace
from corejax.extend.transforms import (
    axes_in_scope,
    in_context,
    named_axes,
    on_context,
    recording_trace,
    replayed_source,
    replaying,
    scope,
    trace_stack,
)
from corejax.interpreters.batching import BatchTrace
from corejax.interpreters.jvp import JVPTrace, JVPTracer
from corejax.interpreters.staging import JitTracer, StagingTrace
from tests.kernel.toys import add, call, cos, hessian, jacfwd, mul, sin, sum_

pytestmark = pytest.mark.usefixtures("toys")
X = np.array([0.5, 1.0, -2.0], np.float32)


def kinds():
    return [type(t).__name__ for t in trace_stack()]


def test_stack_shows_the_traces_from_the_bottom_up():
    seen = {}

    def note(key):
        def f(x):
            seen[key] = kinds()
            return sin(x)

        return f

    assert kinds() == ["EvalTrace"]
    cj.vmap(note("vmap"))(X)
    cj.grad(note("grad"))(1.0)
    cj.make_jaxpr(cj.vmap(note("staged vmap")))(X)
    cj.vmap(cj.vmap(note("vmaps")))(X[None])
    assert seen == {
        "vmap": ["EvalTrace", "BatchTrace"],
        "grad": ["EvalTrace", "PartialEvalTrace", "JVPTrace"],
        "staged vmap": ["EvalTrace", "StagingTrace", "BatchTrace"],
        "vmaps": ["EvalTrace", "BatchTrace", "BatchTrace"],
    }
    assert kinds() == ["EvalTrace"]


def test_omnistaging_records_what_does_not_depend_on_the_arguments():
    text = str(cj.make_jaxpr(lambda x: add(x, sin(X)))(X))
    assert "toy.sin" in text
    inner = []

    def f(x):
        inner.append(sin(X))
        inner.append(cj.make_jaxpr(lambda y: add(mul(y, inner[0]), x))(X))
        return sin(2.0)

    closed = cj.make_jaxpr(f)(X)
    assert type(inner[0]) is JitTracer
    assert [e.primitive.name for e in closed.eqns] == ["toy.sin", "toy.sin"]
    assert [type(c) for c in inner[1].consts] == [JitTracer, JitTracer]  # tracers of the program around it


def test_values_that_do_not_depend_on_the_arguments_are_computed_outside_of_staging():
    seen = []
    cj.grad(lambda x: seen.append(sin(X)) or mul(x, sum_(seen[0])))(1.0)
    cj.vmap(lambda x: seen.append(sin(X)) or x)(X)
    assert [type(x) for x in seen] == [Array, Array]


def test_new_main_marks_its_trace_dead():
    trace = JVPTrace(trace_state.trace)
    with new_main(trace) as top:
        assert top is trace is trace_state.trace
        x = JVPTracer(trace, X, X)
        y = sin(x)
        np.testing.assert_allclose(y.tangent, X * np.cos(X), rtol=1e-6)
    assert not trace.alive and trace_state.trace is bottom_trace()
    assert repr(trace) == "<JVPTrace, ended>"
    with pytest.raises(UnexpectedTracerError, match="running JVPTrace, and that transformation has ended"):
        sin(x)
    with pytest.raises(ZeroDivisionError), new_main(BatchTrace(trace_state.trace, 3)) as trace:
        _ = 1 / 0
    assert not trace.alive and kinds() == ["EvalTrace"]


def test_set_current_trace_leaves_it_alive():
    trace = StagingTrace()
    with pytest.raises(ZeroDivisionError), set_current_trace(trace):
        assert kinds() == ["EvalTrace", "StagingTrace"]
        _ = 1 / 0
    assert trace.alive and trace_state.trace is bottom_trace()


def test_rules_run_one_level_down():
    """What a rule binds is interpreted by the traces below only: nothing is traced twice."""
    seen = []

    def spy(primals, tangents):
        seen.append(kinds())
        return mul(primals[0], 2.0), mul(tangents[0], 2.0)

    p = Primitive(
        "toy.spied",
        impl=lambda x: x * 2,
        abstract_eval=lambda a: a,
        jvp=spy,
        vmap=lambda size, vals, dims: (seen.append(kinds()) or p.bind(*vals), dims[0]),
    )
    cj.vmap(lambda x: cj.jvp(p.bind, (x,), (x,))[1])(X)
    assert seen == [["EvalTrace", "BatchTrace"]]
    seen.clear()
    cj.jvp(cj.vmap(p.bind), (X,), (X,))
    assert seen == [["EvalTrace", "JVPTrace"], ["EvalTrace"]]


TRANSFORMS = {
    "jvp": lambda f: lambda x: cj.jvp(f, (x,), (x,))[1],
    "grad": lambda f: lambda x: cj.grad(lambda y: sum_(f(y)))(x),
    "vjp": lambda f: lambda x: cj.vjp(f, x)[1](x)[0],
    "linearize": lambda f: lambda x: cj.linearize(f, x)[1](x),
    "vmap": lambda f: cj.vmap(lambda x: f(x), axis_name="i"),
    "make_jaxpr": lambda f: lambda x: (cj.make_jaxpr(f)(x), x)[1],
    "eval_shape": lambda f: lambda x: (cj.eval_shape(f, x), x)[1],
    "call": call,
    "jacfwd": lambda f: lambda x: mul(x, sum_(jacfwd(f)(x))),
}


class Boom(BaseException):
    pass


@pytest.mark.parametrize("names", list(itertools.product(TRANSFORMS, repeat=2)), ids="-".join)
def test_clean_after_an_exception_at_any_depth(names):
    fail = True

    def f(x):
        y = sin(x)
        if fail:
            raise Boom
        return mul(y, x)

    g = f
    for name in names:
        g = TRANSFORMS[name](g)
    x = X.reshape(3, 1)[:, :1] * np.ones((3, 3), np.float32)
    with pytest.raises(Boom):
        g(x)
    state = (trace_state.trace, trace_state.source, trace_state.axis_env, trace_state.contexts)
    assert state == (bottom_trace(), None, (), 0)
    fail = False
    g(x)
    np.testing.assert_allclose(cj.vmap(cj.grad(sin))(X), np.cos(X), rtol=1e-6)


@pytest.mark.parametrize("rule", ["impl", "jvp", "vmap", "transpose", "abstract_eval"])
def test_clean_after_an_exception_in_a_rule(rule):
    def boom(*args, **kwargs):
        raise Boom

    rules = {
        "impl": lambda x: x,
        "abstract_eval": lambda a: a,
        "jvp": lambda primals, tangents: (p.bind(*primals), p.bind(*tangents)),
        "vmap": lambda size, vals, dims: (p.bind(*vals), dims[0]),
        "transpose": lambda ct, x: [ct],
    }
    p = Primitive(f"toy.raises_in_{rule}", **{**rules, rule: boom})
    with pytest.raises(Boom):
        cj.vmap(cj.grad(p.bind))(X)
    assert kinds() == ["EvalTrace"] and trace_state.source is None


def test_named_axes_and_context_hooks():
    calls = []
    on_context(calls.append)
    try:
        with pytest.raises(Boom), named_axes([("i", 3)]):
            assert trace_state.axis_env == (("i", 3),) and trace_state.contexts == 1
            cj.make_jaxpr(sin)(X)
            raise Boom
        cj.vmap(sin, axis_name="j")(X)
        cj.vmap(sin)(X)
        cj.grad(sin)(1.0)
        assert calls == [True, False, True, False]  # once for each outermost context; not for vmap and grad as such
    finally:
        _contexts_changed.disconnect(calls.append)
    assert trace_state.axis_env == ()


def test_axis_env_of_vmap_and_make_jaxpr():
    seen = []
    note = lambda x: seen.append(trace_state.axis_env) or x
    cj.vmap(cj.vmap(note, axis_name="j"), axis_name="i")(X[None])
    cj.make_jaxpr(note, axis_env=[("k", 5)])(X)
    assert seen == [(("i", 1), ("j", 3)), (("k", 5),)]


def work(seed):
    x = np.random.default_rng(seed).normal(size=4).astype(np.float32)
    f = lambda x: sum_(mul(sin(x), x))
    return (
        np.asarray(cj.grad(f)(x)),
        np.asarray(cj.vmap(cj.grad(sin))(x)),
        str(cj.make_jaxpr(cj.grad(call(f)))(x)),
        np.asarray(hessian(f)(x)),
        np.asarray(cj.jvp(cj.vmap(cos), (x,), (x,))[1]),
    )


def test_many_threads_at_once():
    expected = {seed: work(seed) for seed in range(4)}
    failures = []
    barrier = threading.Barrier(8)

    def run(index):
        try:
            assert kinds() == ["EvalTrace"]
            barrier.wait()
            for i in range(6):
                seed = (index + i) % 4
                for got, wanted in zip(work(seed), expected[seed], strict=True):
                    assert got == wanted if isinstance(got, str) else np.array_equal(got, wanted)
            assert kinds() == ["EvalTrace"] and trace_state.contexts == 0
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures[0]


def test_a_thread_inside_a_transformation_starts_at_the_bottom():
    seen = []

    def f(x):
        thread = threading.Thread(target=lambda: seen.extend([kinds(), float(sin(1.0))]))
        thread.start()
        thread.join()
        return x

    cj.make_jaxpr(f)(X)
    assert seen == [["EvalTrace"], pytest.approx(np.sin(1.0))]


def test_a_tracer_given_to_another_thread_is_refused():
    errors = []

    def f(x):
        def use():
            try:
                sin(x)
            except UnexpectedTracerError as error:
                errors.append(str(error))

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        return x

    cj.grad(f)(1.0)
    cj.make_jaxpr(f)(1.0)
    assert len(errors) == 2 and all("another thread" in e for e in errors)


def test_a_hook_on_contexts_is_told_of_the_one_that_it_is_added_in():
    calls = []
    try:
        with named_axes([("i", 3)]):
            assert in_context() and axes_in_scope() == (("i", 3),)
            assert on_context(calls.append) == calls.append and calls == [True]
        assert calls == [True, False] and not in_context() and axes_in_scope() == ()
    finally:
        _contexts_changed.disconnect(calls.append)


def test_which_trace_records():
    found = {}

    def note(name):
        def fun(x):
            found[name] = (type(current_trace()).__name__, type(recording_trace()).__name__)
            return sin(x)

        return fun

    note("eager")(X)
    cj.grad(note("grad"))(1.0)
    cj.make_jaxpr(cj.vmap(note("vmap")))(X)
    assert found["eager"] == ("EvalTrace", "NoneType") and found["grad"] == ("JVPTrace", "NoneType")
    assert found["vmap"] == ("BatchTrace", "StagingTrace")


def test_scopes_and_replayed_sources_end_with_their_block():
    source = cj.make_jaxpr(sin)(X).eqns[0].source_info
    with pytest.raises(Boom), scope("a"), replaying(source):
        assert trace_state.scope == ("a",) and replayed_source() is source
        raise Boom
    assert trace_state.scope == () and replayed_source() is None
    names = scope("b")(lambda: scope("c")(lambda: trace_state.scope)())
    assert names() == ("b", "c") and names() == ("b", "c") and trace_state.scope == ()


def test_named_axes_that_are_none():
    for wrong, error, message in (
        ([("rows", -1)], ValueError, r"the size of an axis is not negative, got \('rows', -1\)"),
        (["rows"], TypeError, r"takes pairs of a name and a size, such as \('rows', 4\), got 'rows'"),
    ):
        with pytest.raises(error, match=f"named_axes.*{message}"):
            named_axes(wrong)
