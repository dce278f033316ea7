"""Writing manifests from the code: what a loaded plugin has put into the tables, and what its hooks say."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from corejax.plugins.manifest import ANY, MANIFEST_VERSION, Manifest, PrimitiveEntry
from corejax.primitive import Primitive, primitives
from corejax.provenance import Provenance
from corejax.rules import Derivation, Rule, RuleRegistry, registries

Hook = Callable[..., Any]  # of one plugin: `hook(name, **arguments)`


def describe(
    plugin: str, distribution: str | None, version: str | None, api_version: int, sources: str, hook: Hook
) -> Manifest:
    """A plugin's manifest; everything has been loaded.

    Args:
        plugin, distribution, version, api_version, sources: as in `Manifest`.
        hook: calls a hook of the plugin's.
    """
    kinds = [r for r in registries.values() if r.provenance.plugin == plugin]
    rules = {name: found for name, found in _rules_by(plugin) if primitives[name].provenance.plugin != plugin}
    return Manifest(
        plugin=plugin,
        distribution=distribution,
        version=version,
        api_version=api_version,
        sources=sources,
        names=dict(hook("corejax_export_names") or {}),
        namespaces=dict(hook("corejax_export_namespaces") or {}),
        array_methods=sorted(hook("corejax_provide_array_methods") or ()),
        operations=sorted(hook("corejax_provide_operations") or ()),
        settings={name: repr(s[0]) for name, s in sorted((hook("corejax_declare_settings") or {}).items())},
        commands=_commands(hook),
        backends=dict(hook("corejax_provide_backends") or {}),
        rule_kinds={r.kind: {"title": r.title, "required": r.required} for r in sorted(kinds, key=lambda r: r.kind)},
        derivations=sorted([kind, name] for kind, name, owner in known_derivations() if owner == plugin),
        derivations_known=sorted(([k, n, o] for k, n, o in known_derivations()), key=str),
        primitives={name: _entry(p, plugin) for name, p in sorted(primitives.items()) if p.provenance.plugin == plugin},
        rules=rules,
        overrides=dict(_rules_by(plugin, overriding=True)),
    )


def known_derivations() -> Iterator[tuple[str, str, str | None]]:
    """Rule kind, name and plugin (None: the kernel) of every derivation there is."""
    for kind, registry in registries.items():
        for derivation in registry.derivations:
            yield kind, derivation.name, _owner(derivation)


def _owner(derivation: Derivation) -> str | None:
    return Provenance(derivation.make.__module__).plugin


def _commands(hook: Hook) -> dict[str, str]:
    import click

    group = click.Group()
    hook("corejax_add_cli_commands", group=group)
    return {name: command.get_short_help_str(200) for name, command in sorted(group.commands.items())}


def written(registry: RuleRegistry, primitive: Primitive) -> Iterator[tuple[str, Rule]]:
    """Every rule that somebody wrote, replaced ones too, with its platform (`*`: all)."""
    for platform in (None, *registry.platforms_registered(primitive)):
        yield from ((platform or ANY, rule) for rule in registry.registered(primitive, platform))


def _rules_by(plugin: str, *, overriding: bool = False) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """The plugin's rules: primitive -> rule kind -> platforms."""
    for name, primitive in sorted(primitives.items()):
        found = {}
        for kind, registry in registries.items():
            platforms = sorted(
                platform
                for platform, rule in written(registry, primitive)
                if rule.provenance.plugin == plugin and (rule.overriding or not overriding)
            )
            if platforms:
                found[kind] = platforms
        if found:
            yield name, found


def _entry(primitive: Primitive, plugin: str) -> PrimitiveEntry:
    rules: dict[str, list[str]] = {}
    derivable: dict[str, list[list[str | None]]] = {}
    others: set[str] = set()
    for kind, registry in registries.items():
        found = list(written(registry, primitive))
        own = [platform for platform, rule in found if rule.provenance.plugin == plugin]
        if own:
            rules[kind] = sorted(set(own))
        others.update(rule.provenance.plugin or "" for _, rule in found if registry.provenance.plugin is None)
        applicable = [[d.name, _owner(d)] for d in registry.derivations if d.make(primitive) is not None]
        if applicable and ANY not in own:
            derivable[kind] = applicable
    return PrimitiveEntry(
        module=primitive.provenance.module,
        multiple_results=primitive.multiple_results,
        effects=sorted(primitive.effects),
        linear_in=list(primitive.linear_in),
        tags=sorted(primitive.tags),
        rules=rules,
        derivable=derivable,
        rules_of=sorted(others - {plugin, ""}),
    )


# -- text --------------------------------------------------------------------------------------------------------------


def as_data(manifest: Manifest) -> dict[str, Any]:
    """As JSON; what is empty or false of a primitive is left out."""
    data = dataclasses.asdict(manifest)
    data["primitives"] = {
        name: {key: value for key, value in entry.items() if value not in ([], {}, False)}
        for name, entry in data["primitives"].items()
    }
    return data


def text_of(manifests: Mapping[str, Mapping[str, Any]]) -> str:
    """A file's text: an entry to a line, so that differences are easy to read."""
    lines = ["{", f'"manifest_version": {MANIFEST_VERSION},', '"plugins": {']
    for plugin, data in sorted(manifests.items()):
        lines.append(f"{json.dumps(plugin)}: {{")
        for key, value in data.items():
            lines += _value_lines(key, value)
        lines[-1] = lines[-1].removesuffix(",")
        lines.append("},")
    lines[-1] = lines[-1].removesuffix(",")
    return "\n".join([*lines, "}", "}", ""])


def _value_lines(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        yield f" {json.dumps(key)}: {{"
        rows = [f"  {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in value.items()]
        yield from (f"{row}," for row in rows[:-1])
        yield rows[-1]
        yield " },"
    else:
        yield f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)},"


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What differs between two manifests' data, a line each.

    The digest of the sources does not count, nor what depends on which other plugins were installed.
    """
    old, new = _by_itself(old, new), _by_itself(new, old)
    found = []
    for key in [*new, *(k for k in old if k not in new)]:
        before, now = old.get(key), new.get(key)
        if before == now:
            continue
        if isinstance(before, dict) and isinstance(now, dict):
            for name in sorted({*before, *now}):
                if before.get(name) != now.get(name):
                    found.append(_line(f"{key} {name}", name in before, before.get(name), name in now, now.get(name)))
        else:
            found.append(_line(key, key in old, before, key in new, now))
    return found


def _by_itself(data: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest's data without what other plugins have to do with it, but for derivations known to both."""
    known = [tuple(d) for d in data["derivations_known"]]
    others = {tuple(d) for d in other["derivations_known"]}
    common = {d for d in known if d in others or d[2] in (None, data["plugin"])}
    primitives = {}
    for name, entry in data["primitives"].items():
        derivable = {
            kind: kept
            for kind, found in entry.get("derivable", {}).items()
            if (kept := [[d, owner] for d, owner in found if (kind, d, owner) in common])
        }
        primitives[name] = {k: v for k, v in entry.items() if k not in ("derivable", "rules_of")}
        if derivable:
            primitives[name]["derivable"] = derivable
    kernels = sorted([kind, name] for kind, name, owner in known if owner is None)
    rest = {key: value for key, value in data.items() if key not in ("sources", "derivations_known")}
    return {**rest, "primitives": primitives, "derivations of the kernel": kernels}


def _line(what: str, was: bool, before: Any, has: bool, now: Any) -> str:
    if not was:
        return f"{what}: not in the manifest, the code has {json.dumps(now)}"
    if not has:
        return f"{what}: in the manifest, not in the code"
    return f"{what}: the manifest says {json.dumps(before)}, the code {json.dumps(now)}"
