"""`explain`: counts, provenance and residuals are right, and nothing is watched before or afterwards."""

from __future__ import annotations

import gc
import io
import json
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax.core.trace import state as trace_state
from corejax.extend import Primitive, Trace, bottom_trace, jvp_rules, new_main, registries, set_current_trace
from corejax.extend.messages import observe
from corejax_explain._explain import explain
from tests.kernel import toys as toy_plugin
from tests.kernel.toys import add, call, mul, sin, sum_

X = np.array([0.5, 1.0, -2.0], np.float32)
M = np.arange(6, dtype=np.float32).reshape(2, 3)


def watched() -> dict[str, Any]:
    """What is otherwise while somebody watches."""
    return {
        **{f"table of {kind}": type(registry.table) for kind, registry in registries.items()},
        "observed": observe.observed(),
        "watched": (observe.watched, observe.watched_here(), observe._state.step, len(observe._watching)),
        "contexts": trace_state.contexts,
    }


@pytest.fixture(autouse=True)
def toys(request: pytest.FixtureRequest) -> Iterator[None]:
    """The toy plugin as the only one; `corejax.explain` is then not found, and called as what it is."""
    if request.node.name == "test_facade":
        yield
        return
    with toy_plugin.installed():
        yield


@pytest.fixture(autouse=True)
def nothing_stays_watched() -> Iterator[None]:
    gc.collect()  # classes of traces that earlier tests defined
    before = watched()
    yield
    assert watched() == before


def test_counts_of_an_eager_call() -> None:
    found = explain(lambda x: add(sin(x), sin(x)))(X)
    np.testing.assert_allclose(found.result, 2 * np.sin(X), rtol=1e-6)
    assert found.function == "<lambda>" and found.ms > 0
    uses = {use.name: (use.bound, use.bound_by_rules, dict(use.interpreters)) for use in found.primitives}
    assert uses == {"toy.sin": (2, 0, {"eval": 2}), "toy.add": (1, 0, {"eval": 1})}
    assert found.primitive("toy.sin").rule("impl").runs == 2
    assert found.linearizations == found.jit == () and found.calls == {}


def test_keyword_arguments_and_names() -> None:
    def scaled(x: Any, *, by: float = 1.0) -> Any:
        """Scale."""
        return mul(x, by)

    explained = explain(scaled)
    assert explained.__name__ == "scaled" and explained.__doc__ == "Scale."
    found = explained(X, by=3.0)
    assert found.function == "scaled"
    np.testing.assert_array_equal(found.result, 3 * X)


def test_who_interprets() -> None:
    found = explain(cj.vmap(lambda x: sin(x)))(M)
    use = found.primitive("toy.sin")
    assert (use.bound, use.bound_by_rules) == (1, 1), "by the function, then by the vmap rule"
    assert use.interpreters == {"vmap": 1, "eval": 1}
    assert {rule.kind: rule.runs for rule in use.rules if rule.kind != "abstract_eval"} == {"vmap": 1, "impl": 1}

    found = explain(lambda x: cj.jvp(sin, (x,), (x,)))(X)
    assert found.primitive("toy.sin").interpreters == {"jvp": 1, "eval": 1}
    assert found.primitive("toy.sin").rule("jvp").runs == 1

    found = explain(lambda x: cj.jvp(lambda y: add(sin(x), y), (x,), (x,)))(X)
    assert found.primitive("toy.sin").interpreters == {"eval": 1}, "jvp passed on what does not move"
    assert found.primitive("toy.sin").bound == 1

    found = explain(cj.make_jaxpr(sin))(X)
    assert found.primitive("toy.sin").interpreters == {"staging": 1}
    assert found.primitive("toy.sin").rule("impl") is None


def test_transposition() -> None:
    found = explain(cj.grad(lambda x: sum_(mul(x, 3.0))))(X)
    assert found.primitive("toy.mul").rule("transpose").runs == 1
    assert found.primitive("toy.mul").interpreters["partial_eval"] == 1


def test_programs_of_higher_order_primitives() -> None:
    found = explain(call(lambda x: sin(sin(x))))(X)
    use = found.primitive("toy.sin")
    assert use.interpreters == {"staging": 2} and use.rule("impl").runs == 2
    (name,) = (use.name for use in found.primitives if "call" in use.name)
    assert found.primitive(name).bound == 1


def test_derived_rules_are_marked() -> None:
    own_jvp = lambda primals, tangents: (p.bind(*primals), mul(tangents[0], 2.0))
    p = Primitive("toy.explained", decomposition=lambda x: mul(x, 2.0), jvp=own_jvp)
    found = explain(cj.vmap(lambda x: cj.jvp(p.bind, (x,), (x,))))(M)
    rules = {rule.kind: rule for rule in found.primitive("toy.explained").rules}
    assert rules["vmap"].derived == "batch of the written rules" and rules["jvp"].derived is None
    assert rules["jvp"].runs == 1, "the rule ran on a batch's tracer"
    assert rules["jvp"].module == __name__ and rules["jvp"].line == own_jvp.__code__.co_firstlineno
    assert rules["jvp"].file == __file__ and rules["jvp"].plugin is None
    assert "derived (batch of the written rules)" in repr(found) and "test_explain.py:" in repr(found)


def test_first_use_of_a_derived_rule_counts_once() -> None:
    p = Primitive("toy.explained_once", decomposition=lambda x: mul(x, 2.0))
    for _ in range(2):
        use = explain(p.bind)(X).primitive("toy.explained_once")
        assert (use.bound, dict(use.interpreters), use.rule("impl").runs) == (1, {"eval": 1}, 1)
        assert use.rule("impl").derived == "decomposition"
    assert not hasattr(jvp_rules.lookup(p), "__wrapped__") and type(jvp_rules.table) is dict


def test_rules_registered_meanwhile_stay() -> None:
    p = Primitive("toy.explained_registering", decomposition=lambda x: mul(x, 2.0))
    rule = lambda primals, tangents: (p.bind(*primals), mul(tangents[0], 7.0))

    def f(x: Any) -> Any:
        jvp_rules.register(p, rule)
        return cj.jvp(p.bind, (x,), (x,))[1]

    found = explain(f)(X)
    np.testing.assert_array_equal(found.result, 7 * X)
    assert found.primitive(p.name).rule("jvp").derived is None
    assert jvp_rules.rule_of(p).fn is rule


def test_residual_bytes() -> None:
    big = cj.Array(np.ones(1000, np.float32))
    found = explain(cj.grad(lambda x: sum_(sin(x))))(big)
    (event,) = found.linearizations
    assert event.facts["residual_bytes"] == found.residual_bytes == 4000, "cos(x)"
    assert event.facts["residuals"] == 1 and event.facts["transform"] == "grad"
    found = explain(cj.grad(lambda x: sum_(mul(x, x))))(big)
    assert found.residual_bytes == 4000, "x, kept once"
    found = explain(cj.grad(lambda x: (sin(x), sum_(x))[1]))(big)
    assert found.residual_bytes == 0, "what no output needs is not kept"
    batch = np.ones((5, 1000), np.float32)
    assert explain(cj.vmap(cj.grad(lambda x: sum_(sin(x)))))(batch).residual_bytes == 20_000
    found = explain(lambda x: (cj.vjp(sin, x), cj.linearize(sin, x)))(big)
    assert [event.facts["transform"] for event in found.linearizations] == ["vjp", "linearize"]


def test_after_exceptions() -> None:
    def fails(x: Any) -> Any:
        sin(x)
        raise ZeroDivisionError

    before = watched()
    for f in (fails, cj.grad(fails), cj.vmap(fails), cj.make_jaxpr(fails)):
        with pytest.raises(ZeroDivisionError):
            explain(f)(X)
        assert watched() == before


def test_rule_that_raises() -> None:
    def impl(x: Any) -> Any:
        raise ZeroDivisionError

    p = Primitive("toy.explained_raising", impl=impl, abstract_eval=lambda x: x)
    with pytest.raises(ZeroDivisionError):
        explain(p.bind)(X)
    assert explain(sin)(X).primitive("toy.sin").bound == 1, "frames of the failed call are gone"


def test_nested() -> None:
    inner = []

    def f(x: Any) -> Any:
        inner.append(explain(sin)(x))
        return sin(inner[0].result)

    outer = explain(f)(X)
    assert inner[0].primitive("toy.sin").bound == 1 and outer.primitive("toy.sin").bound == 2
    assert outer.primitive("toy.sin").rule("impl").runs == 2


def test_other_threads_are_not_watched() -> None:
    def f(x: Any) -> Any:
        other = threading.Thread(target=lambda: [sin(x) for _ in range(5)])
        other.start()
        other.join()
        return sin(x)

    assert explain(f)(X).primitive("toy.sin").bound == 1


def test_concurrent_explanations() -> None:
    counts = {}
    ready = threading.Barrier(3)

    def work(n: int) -> None:
        ready.wait()
        found = explain(lambda x: [sin(x) for _ in range(n)])(X)
        counts[n] = found.primitive("toy.sin").bound, found.primitive("toy.sin").rule("impl").runs

    threads = [threading.Thread(target=work, args=(n,)) for n in (3, 30, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == {n: (n, n) for n in (3, 30, 300)}


class Doubling(Trace):
    """A transformation of somebody else's."""

    __slots__ = ()

    def process_primitive(self, primitive: Any, args: Any, params: Any) -> list[Any]:
        with set_current_trace(self.parent):
            return [add(out, out) for out in self.parent.process_primitive(primitive, args, params)]


def test_interpreters_of_others_are_seen() -> None:
    def f(x: Any) -> Any:
        with new_main(Doubling(bottom_trace())):
            return sin(x)

    found = explain(f)(X)
    np.testing.assert_allclose(found.result, 2 * np.sin(X), rtol=1e-6)
    assert found.primitive("toy.sin").bound == 1 and found.primitive("toy.add").interpreters == {"eval": 1}
    # It passed the sine on, as an interpreter does that has nothing to add to a primitive.
    assert found.primitive("toy.sin").interpreters == {"eval": 1}


def test_presentation() -> None:
    found = explain(cj.grad(lambda x: sum_(sin(x))))(X)
    text = repr(found)
    for words in ("<lambda>: ", "12 bytes of residuals", "primitives:", "rules:", "linearisations:", "toy.sin"):
        assert words in text
    assert "jit:" not in text, "nothing to show"
    data = json.loads(found.to_json())
    assert data["residual_bytes"] == 12 and data["function"] == "<lambda>" and data["jit"] == []
    assert {use["name"] for use in data["primitives"]} >= {"toy.sin", "toy.cos"}
    plain = io.StringIO()
    found.print(plain)
    assert plain.getvalue() == text + "\n"
    with pytest.raises(KeyError, match=r"used no primitive 'toy\.tan'"):
        found.primitive("toy.tan")


def test_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "150")
    shown = io.StringIO()
    explain(sin)(X).print(shown)
    assert "\x1b[" in shown.getvalue() and "toy.sin" in shown.getvalue()


def test_what_is_not_a_function() -> None:
    with pytest.raises(TypeError, match="explain takes a function, got 3"):
        explain(3)


def test_facade() -> None:
    assert cj.explain is explain and "explain" in dir(cj)


def test_without_the_plugin() -> None:
    error = cj.plugins.missing_name("explain", importing=False)
    assert "it comes with the plugin distribution corejax-explain (pip install corejax-explain)" in str(error)
