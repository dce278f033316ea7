"""Which rules a primitive has: written by somebody, derived by the kernel, or missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from corejax.core.primitive import Primitive
from corejax.plugins._manifest import ANY
from corejax.rules import Rule, RuleRegistry, registries

Status = Literal["own", "platform", "derived", "missing", "not_required"]

STATUSES: Mapping[Status, str] = {
    "own": "own rule",
    "platform": "own rule on some platforms only",
    "derived": "derived by the kernel",
    "missing": "missing",
    "not_required": "none, and none required",
}


@dataclass(frozen=True)
class RuleStatus:
    """One primitive's rule of one kind.

    Attributes:
        kind: the rule kind.
        status: whether there is one, and where from.
        rule: the general rule, if somebody wrote one.
        platforms: rules for one platform each.
        derivation: what the rule is or would be derived from.
    """

    kind: str
    status: Status
    rule: Rule | None = None
    platforms: Mapping[str, Rule] = field(default_factory=dict)
    derivation: str | None = None

    @property
    def present(self) -> bool:
        """Whether an interpreter would find a rule, on some platform at least."""
        return self.status in ("own", "platform", "derived")


def is_required(primitive: Primitive, registry: RuleRegistry) -> bool:
    """Whether the primitive is incomplete without such a rule; a declared linear operand asks for transposition."""
    return registry.required or (registry.kind == "transpose" and bool(primitive.linear_in))


def rule_status(primitive: Primitive, registry: RuleRegistry) -> RuleStatus:
    """The state of one rule; no derived rule is kept. Only what lazy rules could be derived from is loaded."""
    rule = registry.rule_of(primitive)
    platforms = {p: r for p in registry.platforms_of(primitive) if (r := registry.rule_of(primitive, p))}
    if rule is not None and rule.derived is None:
        return RuleStatus(registry.kind, "own", rule, platforms)
    derivation = rule.derived if rule is not None else registry.can_derive(primitive)
    if derivation is not None:
        return RuleStatus(registry.kind, "derived", None, platforms, derivation)
    if platforms:
        return RuleStatus(registry.kind, "platform", None, platforms)
    return RuleStatus(registry.kind, "missing" if is_required(primitive, registry) else "not_required")


def rule_statuses(primitive: Primitive) -> dict[str, RuleStatus]:
    """The state of every rule, by rule kind."""
    return {kind: rule_status(primitive, registry) for kind, registry in list(registries.items())}


def written(registry: RuleRegistry, primitive: Primitive) -> Iterator[tuple[str, Rule]]:
    """Every rule that somebody wrote, replaced ones too, with its platform (`*`: all)."""
    for platform in (None, *registry.platforms_registered(primitive)):
        yield from ((platform or ANY, rule) for rule in registry.registered(primitive, platform))
