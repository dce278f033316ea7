"""Rules that report their runs: what takes the place of a table of ready rules while somebody watches (`observe`)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from corejax import observe
from corejax.rules._rule import Rule, RuleFn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corejax.primitive import Primitive
    from corejax.rules._written import WrittenRules


def reporting(
    kind: str, primitive: Primitive, rule: RuleFn, registered: Rule | None, platform: str | None = None
) -> RuleFn:
    """A rule whose runs this thread's watchers are told of; the rule itself where the thread has none."""
    if not observe.watched_here():
        return rule
    step = observe.Step(primitive, None, kind, platform, registered)

    @functools.wraps(rule)
    def reported(*args: Any, **params: Any) -> Any:
        return observe.run_step(step, rule, args, params)

    return reported


class _ReportingTable(dict["Primitive", RuleFn]):
    """Empty itself, it gives the rules of another table, reporting."""

    def __init__(self, registry: WrittenRules, ready: dict[Primitive, RuleFn]) -> None:
        self._registry = registry
        self._ready = ready

    def get(self, primitive: Primitive, default: Any = None) -> Any:
        return self[primitive] if primitive in self._ready else default

    def __getitem__(self, primitive: Primitive) -> RuleFn:
        registry = self._registry
        return reporting(registry.kind, primitive, self._ready[primitive], registry.rule_of(primitive))

    def __contains__(self, primitive: object) -> bool:
        return primitive in self._ready


def reporting_table(registry: WrittenRules, ready: dict[Primitive, RuleFn]) -> dict[Primitive, RuleFn]:
    """A table of rules ready to run; while somebody watches, one in its place whose rules report their runs."""
    return _ReportingTable(registry, ready) if observe.watched else ready


def follow_watchers(registries: Mapping[str, WrittenRules]) -> None:
    """Have the tables of registries report from when the first watcher comes until the last one is gone."""

    def follow() -> None:
        for registry in list(registries.values()):
            registry.report()

    observe.watched_changed.connect(follow)
