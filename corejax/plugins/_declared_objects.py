"""Importing what plugins declare by its place, `module:object`: registries of rule kinds, backends."""

from __future__ import annotations

import importlib
from typing import Any

from corejax.core.backends import Backend, ill_made, lacking
from corejax.errors import DuplicateRegistrationError, PluginError
from corejax.rules import RuleRegistry, registries


def import_registry(kind: str, target: str) -> None:
    """Import the registry of a rule kind that a plugin declared, and see that it is in the table.

    Raises:
        PluginError: the target is no registry of that kind.
        DuplicateRegistrationError: there is another registry of that kind.
    """
    found: RuleRegistry = _import_instance(f"rule kind {kind!r} is declared", target, RuleRegistry, "a RuleRegistry")
    if found.kind != kind:
        raise PluginError(f"rule kind {kind!r} is declared as {target}, which is the registry of kind {found.kind!r}")
    # Not always there: a plugin that is registered again finds its modules imported and its registry taken out.
    if kind not in registries:
        registries.register(kind, found, provenance=found.provenance)
    if registries[kind] is not found:
        raise DuplicateRegistrationError(
            f"rule kind {kind!r} exists, from {registries[kind].provenance}; {target} is a second one"
        )


def import_backend(name: str, target: str) -> Backend:
    """Import the object that a plugin provides as a backend.

    Raises:
        PluginError: the target is no complete backend.
    """
    found: Backend = _import_instance(f"backend {name!r} is provided", target, Backend, "a corejax.extend.Backend")
    missing = lacking(found)
    if missing:
        raise PluginError(
            f"backend {name!r}, {target}, lacks {', '.join(missing)}; corejax.extend.Backend says what each has to be"
        )
    wrong = ill_made(found)
    if wrong:
        raise PluginError(f"backend {name!r}, {target}: {wrong}; corejax.extend.Backend says what each has to be")
    return found


def _import_instance(said: str, target: str, wanted: type, title: str) -> Any:
    """Import the object at a place and check its class; `said` and `title` begin and end the message."""
    module, _, attribute = target.partition(":")
    found = getattr(importlib.import_module(module), attribute, None)
    if not isinstance(found, wanted):
        given = "there is nothing of that name" if found is None else f"it is {found!r}"
        raise PluginError(f"{said} as {target}, which has to be {title}; {given}")
    return found
