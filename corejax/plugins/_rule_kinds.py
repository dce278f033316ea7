"""Rule kinds that plugins add: what they declare, and the registries that it names."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any

from corejax import rules
from corejax.errors import DuplicateRegistrationError, PluginError
from corejax.rules import RuleRegistry, registries

_EXAMPLE = '{"interval": "acme_corejax.interpreter:interval_rules"}'


def check_rule_kinds(declared: Any) -> dict[str, str]:
    """What `corejax_declare_rule_kinds` returned, validated; nothing is imported.

    Raises:
        PluginError: naming the entry and the form that is wanted.
        DuplicateRegistrationError: a kind is one of the kernel's.
    """
    if declared is None:
        return {}
    if not isinstance(declared, Mapping):
        raise PluginError(f"corejax_declare_rule_kinds gives a mapping such as {_EXAMPLE}, this one gave {declared!r}")
    for kind, target in declared.items():
        if not (isinstance(kind, str) and isinstance(target, str) and target.count(":") == 1):
            raise PluginError(f"corejax_declare_rule_kinds gives entries such as {_EXAMPLE}, got {kind!r}: {target!r}")
        if not re.fullmatch(r"[a-z][a-z0-9_]*", kind):
            raise PluginError(
                f"a rule kind is lower-case letters, digits and underscores, such as 'interval'; got {kind!r}"
            )
        if kind in rules.NOT_KINDS or is_kernels(kind):
            raise DuplicateRegistrationError(f"rule kind {kind!r} is the kernel's own; choose another name for yours")
    return dict(declared)


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
    module, _, attribute = target.partition(":")
    found = getattr(importlib.import_module(module), attribute, None)
    if not isinstance(found, RuleRegistry):
        given = "there is nothing of that name" if found is None else f"it is {found!r}"
        raise PluginError(f"rule kind {kind!r} is declared as {target}, which has to be a RuleRegistry; {given}")
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
