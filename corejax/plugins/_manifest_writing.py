"""Writing manifests: what a loaded plugin has put into the tables and what its hooks say, and how a manifest differs.

Only authors of plugins need it (`corejax write-manifest`, checks of plugins); reading manifests is in `_manifest.py`.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from corejax import plugins
from corejax.plugins._manifest import ANY, FILE, MANIFEST_VERSION, Found, Manifest, PrimitiveEntry, digest
from corejax.plugins._records import PluginRecord
from corejax.plugins._rule_status import written
from corejax.plugins._usable_manifests import known_derivations, owner_of
from corejax.plugins.hookspecs import API_VERSION
from corejax.primitive import Primitive, primitives
from corejax.rules import registries
from corejax.texts import error_text

# -- files -------------------------------------------------------------------------------------------------------------


def describe(record: PluginRecord) -> dict[str, Any]:
    """What a loaded plugin offers, as a manifest says it.

    Raises:
        ValueError: the plugin failed or is off; some of its rules could not be loaded.
    """
    problems = record.problems()
    if record.status != "loaded" or problems:
        raise ValueError(
            f"the plugin is {record.status}; {'; '.join(problems) or 'only a loaded one can be described'}"
        )
    found = plugins.manager().manifest(record)
    return _as_data(_manifest_of(record, digest(os.path.dirname(found.path)) if found.path is not None else ""))


def write(record: PluginRecord, output: Path | None = None) -> Path:
    """Write a plugin's manifest; those of other plugins in the same file stay.

    Args:
        record: the plugin, loaded.
        output: where to; by default the plugin's package, if it is installed editable.

    Raises:
        ValueError: as `describe`; or the package is no place to write to.
    """
    data = describe(record)
    path = _place(record, plugins.manager().manifest(record)) if output is None else output
    others = {name: other for name, other in _plugins_in(path).items() if name != record.name}
    path.write_text(_text_of({**others, record.name: data}), encoding="utf-8", newline="\n")
    return path


def _place(record: PluginRecord, found: Found) -> Path:
    if found.path is None:
        raise ValueError(
            f"the plugin is the single module {record.module}: a manifest needs a package to be in. Make it a package "
            f"({record.module}/__init__.py), or say where to write with --output"
        )
    if not found.editable:
        raise ValueError(
            f"{record.distribution} is not installed editable, so {FILE} would be written into the installation. "
            "Install it with pip install -e, or say where to write with --output"
        )
    return Path(found.path)


def _plugins_in(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return data["plugins"] if data["manifest_version"] == MANIFEST_VERSION else {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def differences(record: PluginRecord) -> list[str]:
    """What is wrong with a plugin's manifest, compared to its code, a line each; empty if nothing is.

    Raises:
        ValueError: as `describe`.
    """
    data, found = describe(record), plugins.manager().manifest(record)
    shipped = _plugins_in(Path(found.path)).get(record.name) if found.path is not None else None
    if shipped is None:
        return [f"there is no manifest to use ({found.problem})"]
    try:
        return _differences(shipped, json.loads(json.dumps(data)))
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        return [f"the manifest is malformed: {error_text(error)}"]


def manifest_differences(plugin: str) -> list[str] | None:
    """What a plugin's manifest says that its code does not, and the other way round; for checks of plugins.

    Args:
        plugin: its name.

    Returns:
        A line each, none where they agree; None where the plugin ships no manifest.

    Raises:
        KeyError: there is no such plugin.
        ValueError: the plugin cannot be loaded.
    """
    plugins.load_everything()
    record = plugins.manager().records[plugin]
    path = plugins.manager().manifest(record).path
    return differences(record) if path is not None and os.path.exists(path) else None


# -- what a manifest says ----------------------------------------------------------------------------------------------


def _manifest_of(record: PluginRecord, sources: str) -> Manifest:
    """A plugin's manifest; everything has been loaded."""
    plugin, hook = record.name, record.hook
    kinds = [r for r in registries.values() if r.provenance.plugin == plugin]
    rules = {name: found for name, found in _rules_by(plugin) if primitives[name].provenance.plugin != plugin}
    return Manifest(
        plugin=plugin,
        distribution=record.distribution,
        version=record.version,
        api_version=hook.corejax_declare_api_version() or API_VERSION,
        sources=sources,
        names=dict(hook.corejax_export_names() or {}),
        namespaces=dict(hook.corejax_export_namespaces() or {}),
        array_methods=sorted(hook.corejax_provide_array_methods() or ()),
        operations=sorted(hook.corejax_provide_operations() or ()),
        settings={name: repr(s[0]) for name, s in sorted((hook.corejax_declare_settings() or {}).items())},
        commands=_commands(hook),
        rule_kinds={r.kind: {"title": r.title, "required": r.required} for r in sorted(kinds, key=lambda r: r.kind)},
        derivations=sorted([kind, name] for kind, name, owner in known_derivations() if owner == plugin),
        derivations_known=sorted(([k, n, o] for k, n, o in known_derivations()), key=str),
        primitives={name: _entry(p, plugin) for name, p in sorted(primitives.items()) if p.provenance.plugin == plugin},
        rules=rules,
        overrides=dict(_rules_by(plugin, overriding=True)),
    )


def _commands(hook: Any) -> dict[str, str]:
    import click

    group = click.Group()
    hook.corejax_add_cli_commands(group=group)
    return {name: command.get_short_help_str(200) for name, command in sorted(group.commands.items())}


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
        applicable = [[d.name, owner_of(d)] for d in registry.derivations if d.make(primitive) is not None]
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


def _as_data(manifest: Manifest) -> dict[str, Any]:
    """As JSON; what is empty or false of a primitive is left out."""
    data = dataclasses.asdict(manifest)
    data["primitives"] = {
        name: {key: value for key, value in entry.items() if value not in ([], {}, False)}
        for name, entry in data["primitives"].items()
    }
    return data


def _text_of(manifests: Mapping[str, Mapping[str, Any]]) -> str:
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


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
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
