"""`jit` under an interpreter that knows nothing of it: the jitted program's equations, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax
from corejax import lax
from corejax.extend import (
    Derivation,
    Primitive,
    RuleRegistry,
    Trace,
    Tracer,
    current_trace,
    find_primitive,
    flat_decomposition,
    get_aval,
    new_main,
)
from corejax.extend.plugins import isolated_plugins


class LoggedTracer(Tracer):
    """A value whose operations are logged."""

    __slots__ = ("val",)

    def __init__(self, trace: Trace, val: Any) -> None:
        self._trace = trace
        self.val = val

    @property
    def aval(self) -> Any:
        return get_aval(self.val)


class LoggingTrace(Trace):
    """Looks a rule up for each primitive, runs derived ones, and logs the others."""

    __slots__ = ("log", "rules")

    def __init__(self, parent: Trace, rules: RuleRegistry) -> None:
        super().__init__(parent)
        self.rules = rules
        self.log: list[str] = []

    def process_primitive(self, primitive: Primitive, args: Any, params: Any) -> list[Any]:
        rule = self.rules.find(primitive)
        if rule is not None:
            return rule(*args, **params)
        self.log.append(primitive.name)
        vals = [x.val if isinstance(x, LoggedTracer) else x for x in args]
        return [LoggedTracer(self, x) for x in self.parent.process_primitive(primitive, vals, params)]


def test_a_jitted_function_is_inlined_by_derivation() -> None:
    jit, sin = corejax.jit, lax.sin
    with isolated_plugins():
        rules = RuleRegistry("logged", "logging rule", "...", required=False)
        rules.derivations.append(Derivation("decomposition", flat_decomposition, needs="a decomposition"))
        fun = jit(lambda x: jit(lambda y: sin(y) * 2)(x) + 1)
        with new_main(LoggingTrace(current_trace(), rules)) as trace:
            out = fun(LoggedTracer(trace, np.float32(0.5)))
        assert trace.log == ["sin", "mul", "add"]
        np.testing.assert_allclose(out.val, np.sin(0.5) * 2 + 1, rtol=1e-6)
        derived = rules.rule_of(find_primitive("xla_call"))
        assert derived is not None and derived.derived == "decomposition"


def test_its_own_rules_are_not_replaced_by_derived_ones() -> None:
    from corejax.cli.rule_status import rule_statuses

    primitive = find_primitive("xla_call")
    assert primitive is not None
    derived = {kind for kind, found in rule_statuses(primitive).items() if found.status == "derived"}
    assert derived <= {"jet"}, "a plugin's rule kind, which is derived from how it calls"
