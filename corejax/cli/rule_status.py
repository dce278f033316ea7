"""The status of a primitive's rules: written, derived by the kernel, or missing."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from corejax.rules import Rule, RuleRegistry, registries

if TYPE_CHECKING:
    from corejax.core.primitive import Primitive

Status = Literal["own", "platform", "derived", "missing", "not_required"]

STATUSES: Mapping[Status, str] = {
    "own": "own rule",
    "platform": "own rule on some platforms only",
    "derived": "derived by the kernel",
    "missing": "missing",
    "not_required": "none, and none required",
}


class RuleStatus(NamedTuple):
    """The status of a primitive's rule of one kind.

    Attributes:
        status: "own", "platform", "derived", "missing" or "not_required".
        derivation: name of the derivation that makes or would make the rule, or None.
        rule: the general rule, if it is written.
        platforms: platform -> rule for that platform only.
    """

    status: Status
    derivation: str | None = None
    rule: Rule | None = None
    platforms: Mapping[str, Rule] = MappingProxyType({})

    @property
    def present(self) -> bool:
        """Whether an interpreter finds a rule, on one platform at least."""
        return self.status in ("own", "platform", "derived")


def status_of(*, own: bool, derivation: str | None, on_platforms: bool, required: bool) -> Status:
    """Return the status of one primitive's rule of one kind.

    Args:
        own: whether a rule for all platforms is written.
        derivation: name of the derivation that would make the rule, or None.
        on_platforms: whether a rule for one platform is written.
        required: whether the primitive is incomplete without a rule of this kind.
    """
    if own:
        return "own"
    if derivation is not None:
        return "derived"
    if on_platforms:
        return "platform"
    return "missing" if required else "not_required"


def rule_status(primitive: Primitive, registry: RuleRegistry) -> RuleStatus:
    """Return the status of one rule. It stores no derived rule, and loads only rules that a derivation would need."""
    rule = registry.rule_of(primitive)
    own = rule if rule is not None and rule.derived is None else None
    platforms = {p: r for p in registry.platforms_of(primitive) if (r := registry.rule_of(primitive, p))}
    derivation = None if own else rule.derived if rule is not None else registry.can_derive(primitive)
    required = registry.required or (registry.kind == "transpose" and bool(primitive.linear_in))
    status = status_of(own=own is not None, derivation=derivation, on_platforms=bool(platforms), required=required)
    return RuleStatus(status, derivation, own, platforms)


def rule_statuses(primitive: Primitive) -> dict[str, RuleStatus]:
    """Return the status of every rule of a primitive, by rule kind."""
    return {kind: rule_status(primitive, registry) for kind, registry in list(registries.items())}
