"""Steps that watchers are told of: who interprets what, which rules run, nested as they happen."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax.extend import (
    Primitive,
    RuleRegistry,
    Trace,
    bottom_trace,
    jvp_rules,
    new_main,
    partial_eval_rules,
    set_current_trace,
)
from corejax.extend.messages import observe, run_within
from corejax.extend.plugins import isolated_plugins
from tests.kernel.toys import add, mul, sin, sin_p

pytestmark = pytest.mark.usefixtures("toys")
X = np.array([0.5, 1.0, -2.0], np.float32)


def steps_of(fun: Callable[..., Any], *args: Any) -> list[str]:
    """Each step when it begins, indented by those around it: the primitive, and who interprets it or which rule."""
    lines: list[str] = []
    around: list[observe.Step] = []

    def watcher(step: observe.Step, begins: bool) -> None:
        if begins:
            by = step.kind if step.trace is None else type(step.trace).__name__
            lines.append(f"{'  ' * len(around)}{step.primitive.name} {by}")
            around.append(step)
        else:
            assert around.pop() is step

    run_within((observe.watching(watcher),), fun, *args)
    assert not around
    return [line for line in lines if not line.endswith("abstract_eval")]


def test_steps_nest_as_interpreters_do() -> None:
    assert steps_of(lambda x: cj.jvp(sin, (x,), (x,)), X)[:5] == [
        "toy.sin JVPTrace",
        "  toy.sin jvp",
        "    toy.sin EvalTrace",
        "      toy.sin impl",
        "    toy.cos EvalTrace",
    ]
    assert steps_of(cj.make_jaxpr(cj.vmap(sin)), X) == [
        "toy.sin BatchTrace",
        "  toy.sin vmap",
        "    toy.sin StagingTrace",
    ]


def test_what_is_passed_on_is_a_step_inside() -> None:
    lines = steps_of(lambda x: cj.jvp(lambda y: add(sin(X), y), (x,), (x,)), X)
    assert lines[:3] == ["toy.sin JVPTrace", "  toy.sin EvalTrace", "    toy.sin impl"]


def test_a_rule_comes_with_who_wrote_it() -> None:
    rules: list[Any] = []
    p = Primitive("toy.observed", decomposition=lambda x: mul(x, 2.0))
    jvp_rules.register(p, lambda primals, tangents: (p.bind(*primals), mul(tangents[0], 2.0)))

    def watcher(step: observe.Step, begins: bool) -> None:
        if begins and step.kind in ("jvp", "vmap") and step.primitive is p:
            rules.append((step.kind, step.rule.derived, step.rule.provenance.module))

    run_within((observe.watching(watcher),), cj.vmap(lambda x: cj.jvp(p.bind, (x,), (x,))[1]), X)
    assert rules == [("jvp", None, __name__), ("vmap", "batch of the written rules", __name__)]


class Doubling(Trace):
    """An interpreter of somebody else's, which knows nothing of watchers."""

    __slots__ = ()

    def process_primitive(self, primitive: Any, args: Any, params: Any) -> list[Any]:
        rule = self.rules.table.get(primitive)
        if rule is None:
            return self.parent.process_primitive(primitive, args, params)
        with set_current_trace(self.parent):
            return [rule(*args, **params)]


def test_interpreters_and_rule_kinds_of_others_report_too() -> None:
    def f(x: Any) -> Any:
        with new_main(Doubling(bottom_trace())):
            return add(sin(x), x)

    with isolated_plugins():
        Doubling.rules = RuleRegistry("doubling", "doubling rule", "", required=False)
        Doubling.rules.register(sin_p, lambda x: mul(sin(x), 2.0))
        lines = steps_of(f, X)
        assert Doubling.rules.table.get(sin_p) is Doubling.rules.lookup(sin_p), "the rule itself, unwatched"
    assert lines[:3] == ["toy.sin Doubling", "  toy.sin doubling", "    toy.sin EvalTrace"]
    assert lines[-3:] == ["toy.add Doubling", "  toy.add EvalTrace", "    toy.add impl"]


def test_a_rule_that_only_the_table_is_asked_for_runs_while_watched() -> None:
    p = Primitive(
        "toy.known_anyway", impl=np.sin, abstract_eval=lambda x: x, jvp=lambda xs, ts: (sin(*xs), p.bind(*ts))
    )
    ran: list[bool] = []

    @partial_eval_rules.register(p)
    def partial_eval(trace: Any, args: Any) -> Any:
        ran.append(observe.watched)
        return trace.record(p, args, {})

    assert "  toy.known_anyway partial_eval" in "\n".join(steps_of(lambda x: cj.linearize(p.bind, x), X))
    assert ran == [True]


def test_only_the_thread_that_watches_is_watched() -> None:
    def elsewhere(x: Any) -> Any:
        thread = threading.Thread(target=lambda: [observe.watched_here(), sin(x)])
        thread.start()
        thread.join()
        return mul(x, 2.0)

    assert steps_of(elsewhere, X) == ["toy.mul EvalTrace", "  toy.mul impl"]


def test_nobody_is_told_before_and_after() -> None:
    told: list[observe.Step] = []

    def fails(x: Any) -> Any:
        sin(x)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_within((observe.watching(lambda step, begins: told.append(step)),), fails, X)
    assert told and not observe.watched and type(jvp_rules.table) is dict
    told.clear()
    sin(X)
    assert told == []
