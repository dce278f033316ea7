"""Messages of the registries; each function returns one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from corejax.base.plugin_access import plugin_access
from corejax.base.tables import Entry
from corejax.messages import source_info
from corejax.rules.derivation import Derivation
from corejax.settings.config import config

if TYPE_CHECKING:
    from corejax.core.primitive import Primitive


def duplicate_rule(title: str, key: tuple[Primitive, str | None], earlier: Entry, later: Entry) -> str:
    """Return the message for a second rule of a primitive."""
    primitive, platform = key
    where = f" on platform {platform!r}" if platform else ""
    return (
        f"primitive {primitive.name!r} has a {title}{where} from {earlier.provenance}; "
        f"{later.provenance} registers a second one. To replace the first rule, register it with override=True."
    )


def missing_rule(registry: Any, primitive: Primitive, platform: str | None) -> str:
    """Return the message for a missing rule that cannot be derived, with the template of the rule."""
    where = f" for platform {platform!r}" if platform else ""
    problems = plugin_access().problems(registry.kind)
    notes = "".join(f"Note: {fault}\n" for fault in [*problems, *_nonlinear(registry.kind, primitive)])
    line = source_info.needed("It was needed at")
    where_needed = f"{line}.\n" if line else ""
    return (
        f"primitive {primitive.name!r} (from {primitive.provenance.owner}) "
        f"has no {registry.title}{where}{_refused(registry, primitive)}.\n"
        f"{where_needed}{notes}Write one:\n\n"
        f"{registry.template_for(primitive)}{_linear_way(registry.kind, primitive)}{_other_ways(registry)}"
    )


def _nonlinear(kind: str, primitive: Primitive) -> list[str]:
    if kind != "transpose" or primitive.linear_in or "linear" in primitive.tags:
        return []
    return [
        f"{primitive.name} is not declared linear. If a JVP rule applies it to a tangent, that rule is wrong: it has "
        "to be linear in the tangents."
    ]


def _linear_way(kind: str, primitive: Primitive) -> str:
    if kind not in ("jvp", "transpose") or not primitive.linear_in:
        return ""
    return "\n\ndeflinear(primitive, transpose) gives JVP and transpose with respect to the operands linear_in."


def _refused(registry: Any, primitive: Primitive) -> str:
    if not config.strict_rules:
        return ""
    derivation = registry._derivation(primitive)
    name = f", here the one by {derivation[0].name}" if derivation is not None else ""
    return f" (derived rules are refused: config.strict_rules{name})"


def _other_ways(registry: Any) -> str:
    needs = _needs(registry.derivations)
    if not needs or config.strict_rules:
        return ""
    return f"\n\nOr give the primitive something from which the rule can be derived: {needs}."


def _better(registry: Any, derivation: Derivation) -> str:
    """Return the advice to give the primitive the parts that a faster derivation needs."""
    better = registry.derivations[: registry.derivations.index(derivation)]
    ways = " or ".join(f"{d.needs} (by={d.name!r})" for d in better if d.needs)
    return f"Or give the primitive {ways}, from which a fast one is derived.\n" if ways else ""


def _needs(derivations: Sequence[Derivation]) -> str:
    return "; or ".join(dict.fromkeys(d.needs for d in derivations if d.needs))


def no_derived_rule(registry: Any, primitive: Primitive) -> str:
    """Return the message for a call of `registry.derived` if no derivation applies."""
    return (
        f"primitive {primitive.name!r} (from {primitive.provenance.owner}): no {registry.title} can be derived, but "
        f"{registry.kind}_rules.derived was called at {source_info.user_line()}. It is derived from "
        f"{_needs(registry.derivations) or 'nothing'}."
    )


def no_rule_by(registry: Any, primitive: Primitive, by: str) -> str:
    """Return the message for a derivation that an author chose (`by=`) and that does not apply."""
    names = ", ".join(repr(derivation.name) for derivation in registry.derivations) or "none"
    chosen = next((derivation for derivation in registry.derivations if derivation.name == by), None)
    reason = f"there are {names}" if chosen is None else f"it needs {chosen.needs}"
    return (
        f"primitive {primitive.name!r} (from {primitive.provenance.owner}) has a {registry.title} by {by!r}, which "
        f"cannot be derived: {reason}.{source_info.needed(' It was needed at')}"
    )


def slow_rule(registry: Any, primitive: Primitive, derivation: Derivation) -> str:
    """Return the warning about a slow derived rule, with the template of a fast one."""
    return (
        f"primitive {primitive.name!r} (from {primitive.provenance.owner}) has no {registry.title}: "
        f"{derivation.slow}, which is slow. To make it fast, write one:\n\n"
        f"{registry.template_for(primitive)}\n\n"
        f"{_better(registry, derivation)}"
        f"Or register it with by={derivation.name!r} instead of a function, to accept the slow rule."
    )
