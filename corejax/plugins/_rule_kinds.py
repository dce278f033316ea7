"""Rule kinds that plugins add: what they declare, and the registries that it names."""

from __future__ import annotations

from typing import Any

from corejax import rules
from corejax.errors import DuplicateRegistrationError, PluginError
from corejax.plugins._targets import check_plain_name, check_targets, import_instance
from corejax.rules import RuleRegistry, registries

# What `PluginAccess.load_rules` loads besides rules of a kind, so that no rule kind may be called that.
NOT_KINDS = frozenset({"primitives", "rule_kinds"})

_EXAMPLE = '{"interval": "acme_corejax.interpreter:interval_rules"}'


def check_rule_kinds(declared: Any) -> dict[str, str]:
    """What `corejax_declare_rule_kinds` returned, validated; nothing is imported.

    Raises:
        PluginError: naming the entry and the form that is wanted.
        DuplicateRegistrationError: a kind is one of the kernel's.
    """
    found = check_targets("corejax_declare_rule_kinds", _EXAMPLE, declared)
    for kind in found:
        check_plain_name("a rule kind", "interval", kind)
        if kind in NOT_KINDS or is_kernels(kind):
            raise DuplicateRegistrationError(f"rule kind {kind!r} is the kernel's own; choose another name for yours")
    return found


def is_kernels(kind: str) -> bool:
    """Whether a rule kind is one of the kernel's."""
    registry = registries.get(kind)
    return registry is not None and registry.provenance.module.startswith(f"{rules.__name__}.")


def import_registry(kind: str, target: str) -> RuleRegistry:
    """The registry that a plugin declared, imported, and in its place in `registries`.

    Raises:
        PluginError: there is no registry of that kind at the place named.
        DuplicateRegistrationError: somebody else has a registry of that kind.
    """
    found: RuleRegistry = import_instance(f"rule kind {kind!r} is declared", target, RuleRegistry, "a RuleRegistry")
    if found.kind != kind:
        raise PluginError(f"rule kind {kind!r} is declared as {target}, which is the registry of kind {found.kind!r}")
    # Not always there: a plugin that is registered again finds its modules imported and its registry taken out.
    if kind not in registries:
        registries.register(kind, found, provenance=found.provenance)
    if registries[kind] is not found:
        raise DuplicateRegistrationError(
            f"rule kind {kind!r} exists, from {registries[kind].provenance}; {target} is a second one"
        )
    return found
