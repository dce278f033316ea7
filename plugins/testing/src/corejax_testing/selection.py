"""Select primitives by names of plugins, distributions and primitives, and report plugins that did not load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import Primitive, primitives, registries
from corejax.extend.messages import did_you_mean
from corejax.extend.plugins import plugin_records
from corejax.extend.printing import plugin_access
from corejax_testing.checks import all_checks, checks_of


def resolved(names: Sequence[str]) -> list[str]:
    """Return the names, with each distribution's name replaced by the names of its plugins."""
    records = _records()
    found: list[str] = []
    for name in names:
        own = [plugin for plugin, record in records.items() if record.comes_from(name)]
        found += [name] if name in primitives or name in records or not own else own
    return found


def chosen(names: Sequence[str]) -> list[Primitive]:
    """Return the primitives that the names select, sorted by name; all primitives if there are no names.

    A name of a primitive that is also a plugin's selects both.

    A plugin that failed, is switched off, or has no primitives selects nothing: `faults` and `notes` report it.

    Args:
        names: names of plugins, distributions and primitives.

    Raises:
        KeyError: there is no such plugin or primitive; the message suggests a close name.
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
        if name in primitives:
            found[name] = primitives[name]
        found.update({primitive.name: primitive for primitive in by_plugin.get(name, [])})
    return [found[name] for name in sorted(found)]


def planned(names: Sequence[str], checks: Sequence[str] = ()) -> list[tuple[Primitive, list[str]]]:
    """Return the selected primitives, each with the names of the checks to run on it.

    A plugin without primitives may have rules for other plugins' primitives, and checks of these rules. If such a
    plugin is named, its own checks run on the primitives that it has rules for.

    Args:
        names: as for `chosen`.
        checks: names of checks; all checks if empty.

    Raises:
        KeyError: as `chosen`.
    """
    found = {p: list(checks) or list(all_checks()) for p in chosen(names)}
    owners = {p.provenance.plugin for p in list(primitives.values())}
    for plugin in resolved(names):
        own_checks = [name for name in checks_of(plugin) if not checks or name in checks]
        if plugin in primitives or plugin in owners or not own_checks:
            continue
        for primitive in list(primitives.values()):
            if primitive not in found and plugin in _rule_owners(primitive):
                found[primitive] = own_checks
    return sorted(found.items(), key=lambda entry: entry[0].name)


def _rule_owners(primitive: Primitive) -> set[str | None]:
    return {rule.provenance.plugin for registry in registries.values() for rule in registry.registered(primitive)}


def faults(names: Sequence[str]) -> list[str]:
    """Return what went wrong in the plugins that the names select (all plugins if none), one sentence each."""
    names, records = resolved(names), _records()
    owners = {primitives[name].provenance.plugin for name in names if name in primitives}
    selected = [record for name, record in records.items() if not names or name in names or name in owners]
    found = [problem for record in selected for problem in record.problems()]
    off = [record for record in selected if record.status == "off" and record.name in names]
    return found + [f"plugin {record.title} is switched off (COREJAX_PLUGINS)" for record in off]


def notes(names: Sequence[str]) -> list[str]:
    """Return a sentence for each named plugin that loaded but has no primitives: what is checked instead."""
    with_primitives = {p.provenance.plugin for p in list(primitives.values())}
    records = _records()
    return [
        f"plugin {records[name].title} has no primitives{_checked_instead(name)}"
        for name in resolved(names)
        if name in records and name not in primitives and name not in with_primitives
        if records[name].status == "loaded"
    ]


def _checked_instead(plugin: str) -> str:
    own_checks = checks_of(plugin)
    if not own_checks:
        return ": only its manifest is checked"
    return f" of its own; its checks run on the primitives that it has rules for ({', '.join(own_checks)})"


def _records() -> dict[str, Any]:
    return {record.name: record for record in plugin_records()}


def _unknown(name: str, known: list[str]) -> str:
    home = plugin_access().whose_primitive(name)
    if not home.endswith("?"):  # a question if no plugin is known that has the primitive
        return f"there is no plugin and no primitive named {name!r}; {home}"
    inner = next((other for other in known if other.endswith(f".{name}")), None)
    hint = did_you_mean(name, known) if inner is None else f"; did you mean {inner!r}?"
    failed = [problem for record in _records().values() for problem in record.problems()]
    perhaps = f"; it may belong to a plugin that failed to load: {'; '.join(failed)}" if failed else ""
    absent = ", and no installed distribution of that name has a plugin" if "-" in name else ""
    return f"there is no plugin and no primitive named {name!r}{absent}{hint}{perhaps}"
