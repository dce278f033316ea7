"""Which primitives somebody means: names of plugins and of primitives; and what keeps them from being there."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from corejax.extend import Primitive, primitives, registries
from corejax.extend.plugins import plugin_records
from corejax_testing.checks import all_checks, checks_of


def resolved(names: Sequence[str]) -> list[str]:
    """The names with plugins' in the place of distributions'; other names stay as they are."""
    records = _records()
    found: list[str] = []
    for name in names:
        own = [plugin for plugin, record in records.items() if record.comes_from(name)]
        found += [name] if name in primitives or name in records or not own else own
    return found


def chosen(names: Sequence[str]) -> list[Primitive]:
    """The primitives of these plugins, distributions and names, sorted by name; all that there are for no name.

    Of a plugin that failed, is off, or has no primitives there are none: `faults` and `notes` say so.

    Raises:
        KeyError: there is no such plugin or primitive; with what was probably meant.
    """
    by_plugin: dict[str, list[Primitive]] = {}
    for primitive in list(primitives.values()):
        if primitive.provenance.plugin is not None:
            by_plugin.setdefault(primitive.provenance.plugin, []).append(primitive)
    records = _records()
    found: dict[str, Primitive] = {}
    for name in resolved(names) or sorted(by_plugin):
        if name not in primitives and name not in by_plugin and name not in records:
            raise KeyError(_unknown(name, [*primitives, *by_plugin, *records]))
        for primitive in [primitives[name]] if name in primitives else by_plugin.get(name, []):
            found[primitive.name] = primitive
    return [found[name] for name in sorted(found)]


def planned(names: Sequence[str], checks: Sequence[str] = ()) -> list[tuple[Primitive, list[str]]]:
    """What to check of which primitives: all checks or those named, of the primitives that are meant.

    A plugin without primitives may have rules for those of others, and checks for these: they are what is meant then.

    Raises:
        KeyError: as `chosen`.
    """
    found = {p: list(checks) or list(all_checks()) for p in chosen(names)}
    owners = {p.provenance.plugin for p in list(primitives.values())}
    for plugin in resolved(names):
        its = [name for name in checks_of(plugin) if not checks or name in checks]
        if plugin in primitives or plugin in owners or not its:
            continue
        for primitive in list(primitives.values()):
            if primitive not in found and plugin in _rule_owners(primitive):
                found[primitive] = its
    return sorted(found.items(), key=lambda entry: entry[0].name)


def _rule_owners(primitive: Primitive) -> set[str | None]:
    return {rule.provenance.plugin for registry in registries.values() for rule in registry.registered(primitive)}


def faults(names: Sequence[str]) -> list[str]:
    """What went wrong in the plugins meant by these names, one sentence each; in all plugins for no name."""
    names, records = resolved(names), _records()
    owners = {primitives[name].provenance.plugin for name in names if name in primitives}
    meant = [record for name, record in records.items() if not names or name in names or name in owners]
    found = [problem for record in meant for problem in record.problems()]
    off = [record for record in meant if record.status == "off" and record.name in names]
    return found + [f"plugin {record.title} is switched off (COREJAX_PLUGINS)" for record in off]


def notes(names: Sequence[str]) -> list[str]:
    """Plugins among these names that are well and have no primitives, one sentence each: what is checked of them."""
    with_primitives = {p.provenance.plugin for p in list(primitives.values())}
    records = _records()
    return [
        f"plugin {records[name].title} has no primitives{_instead(name)}"
        for name in resolved(names)
        if name in records and name not in primitives and name not in with_primitives
        if records[name].status == "loaded"
    ]


def _instead(plugin: str) -> str:
    its = checks_of(plugin)
    if not its:
        return ": there is nothing to check but its manifest"
    return f" of its own; of those that it has rules for its own checks are run ({', '.join(its)})"


def _records() -> dict[str, Any]:
    return {record.name: record for record in plugin_records()}


def _unknown(name: str, known: list[str]) -> str:
    close = [other for other in known if other.endswith(f".{name}")] or difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    failed = [problem for record in _records().values() for problem in record.problems()]
    perhaps = f"; it may be of a plugin that failed: {'; '.join(failed)}" if failed else ""
    absent = ", and no installed distribution of that name has a plugin" if "-" in name else ""
    return f"there is no plugin and no primitive named {name!r}{absent}{hint}{perhaps}"
