"""Make a manifest from the rules that a loaded plugin registered and the results of its hooks."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from typing import Any

from corejax.extend import Primitive, primitives, registries
from corejax.extend.plugins import API_VERSION, manifest


def describe(record: Any) -> dict[str, Any]:
    """Return a plugin's manifest as data for JSON; all plugins must be loaded.

    Args:
        record: the plugin's record.

    Raises:
        ValueError: the plugin failed or is off, or some of its rules could not be loaded.
    """
    problems = record.problems()
    if record.status != "loaded" or problems:
        raise ValueError(
            f"the plugin is {record.status}; {'; '.join(problems) or 'only a loaded plugin has a manifest'}"
        )
    return _as_data(_manifest(record))


def _manifest(record: Any) -> manifest.Manifest:
    plugin, path = record.name, manifest.find(record, API_VERSION).path
    own = {name: p for name, p in sorted(primitives.items()) if p.provenance.plugin == plugin}
    kinds = [r for _, r in sorted(registries.items()) if r.provenance.plugin == plugin]
    derivations = [
        (kind, d.name, d.provenance.plugin) for kind, registry in registries.items() for d in registry.derivations
    ]

    def said(hook: str) -> Any:
        return getattr(record.hook, hook)() or {}

    return manifest.Manifest(
        plugin=plugin,
        distribution=record.distribution,
        version=record.version,
        api_version=record.hook.corejax_declare_api_version() or 1,
        sources="" if path is None else manifest.digest(os.path.dirname(path)),
        names=dict(said("corejax_export_names")),
        namespaces=dict(said("corejax_export_namespaces")),
        array_methods=sorted(said("corejax_provide_array_methods")),
        operations=sorted(said("corejax_provide_operations")),
        settings={name: repr(s[0]) for name, s in sorted(said("corejax_declare_settings").items())},
        commands=_commands(record),
        backends=dict(said("corejax_provide_backends")),
        rule_kinds={r.kind: {"title": r.title, "required": r.required} for r in kinds},
        derivations=sorted([kind, name] for kind, name, owner in derivations if owner == plugin),  # type: ignore[misc]  # a list, as JSON has it
        derivations_known=sorted((list(d) for d in derivations), key=str),  # type: ignore[misc]  # a list, as JSON has it
        primitives={name: _entry(p, plugin) for name, p in own.items()},
        rules={name: rules for name, rules in _rules_by(plugin) if name not in own},
        overrides=dict(_rules_by(plugin, overriding=True)),
    )


def _commands(record: Any) -> dict[str, str]:
    import click

    group = click.Group()
    record.hook.corejax_add_cli_commands(group=group)
    return {name: command.get_short_help_str(200) for name, command in sorted(group.commands.items())}


def _rules_by(plugin: str, *, overriding: bool = False) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Yield the plugin's rules: primitive, and rule kind -> platforms."""
    for name, primitive in sorted(primitives.items()):
        found = {}
        for kind, registry in registries.items():
            platforms = sorted(
                platform or manifest.ANY
                for platform, rule in registry.written(primitive)
                if rule.provenance.plugin == plugin and (rule.overriding or not overriding)
            )
            if platforms:
                found[kind] = platforms
        if found:
            yield name, found


def _entry(primitive: Primitive, plugin: str) -> manifest.PrimitiveEntry:
    rules: dict[str, list[str]] = {}
    derivable: dict[str, list[list[str | None]]] = {}
    others: set[str] = set()
    for kind, registry in registries.items():
        found = [(platform or manifest.ANY, rule) for platform, rule in registry.written(primitive)]
        own = [platform for platform, rule in found if rule.provenance.plugin == plugin]
        if own:
            rules[kind] = sorted(set(own))
        others.update(rule.provenance.plugin or "" for _, rule in found if registry.provenance.plugin is None)
        applicable = [[d.name, d.provenance.plugin] for d in registry.derivations if d.make(primitive) is not None]
        if applicable and manifest.ANY not in own:
            derivable[kind] = applicable
    return manifest.PrimitiveEntry(
        module=primitive.provenance.module,
        multiple_results=primitive.multiple_results,
        effects=sorted(primitive.effects),
        linear_in=list(primitive.linear_in),
        tags=sorted(primitive.tags),
        rules=rules,
        derivable=derivable,  # type: ignore[arg-type]  # a list, as JSON has it
        rules_of=sorted(others - {plugin, ""}),
    )


def _as_data(found: manifest.Manifest) -> dict[str, Any]:
    """Convert a manifest to data for JSON, without empty or false fields of primitives."""
    data = dataclasses.asdict(found)
    data["primitives"] = {
        name: {key: value for key, value in entry.items() if value not in ([], {}, False)}
        for name, entry in data["primitives"].items()
    }
    return data
