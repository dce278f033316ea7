"""Which rules a primitive has: written by somebody, derived by the kernel, or missing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from corejax.core.primitive import Primitive
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


def status_of(
    kind: str, *, own: bool, derivation: str | None, on_platforms: bool, required: bool, linear_in: Collection[int]
) -> Status:
    """Return the status of one primitive's rule of one kind.

    Args:
        kind: the rule kind.
        own: whether a rule for all platforms is written.
        derivation: what the rule would be derived from, if anything.
        on_platforms: whether a rule for some platform is written.
        required: whether a primitive without a rule of this kind is incomplete.
        linear_in: the operands in which the primitive is linear: it is incomplete without a transpose rule.
    """
    if own:
        return "own"
    if derivation is not None:
        return "derived"
    if on_platforms:
        return "platform"
    return "missing" if required or (kind == "transpose" and linear_in) else "not_required"


def rule_status(primitive: Primitive, registry: RuleRegistry) -> RuleStatus:
    """Return the state of one rule. No derived rule is kept; only what lazy rules could be derived from is loaded."""
    kind, rule = registry.kind, registry.rule_of(primitive)
    own = rule if rule is not None and rule.derived is None else None
    platforms = {p: r for p in registry.platforms_of(primitive) if (r := registry.rule_of(primitive, p))}
    derivation = None if own else rule.derived if rule is not None else registry.can_derive(primitive)
    status = status_of(
        kind,
        own=own is not None,
        derivation=derivation,
        on_platforms=bool(platforms),
        required=registry.required,
        linear_in=primitive.linear_in,
    )
    return RuleStatus(kind, status, own, platforms, derivation)


def rule_statuses(primitive: Primitive) -> dict[str, RuleStatus]:
    """The state of every rule, by rule kind."""
    return {kind: rule_status(primitive, registry) for kind, registry in list(registries.items())}
