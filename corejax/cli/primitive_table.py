"""The primitives of all plugins as a table, from manifests if all of them are good, else from the loaded plugins.

Both sources have the same result. Plugins are also loaded if their manifests do not fit together: two plugins have one
name, or a manifest was written without the derivations of another plugin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from corejax import plugins
from corejax.base.registered import primitives
from corejax.cli.rule_status import RuleStatus, rule_statuses, status_of
from corejax.plugins.manifest import ANY, Manifest, PrimitiveEntry
from corejax.rules import registries
from corejax.settings.config import config


class Override(NamedTuple):
    """A rule that replaces another one on purpose.

    Attributes:
        primitive, kind: the primitive and the rule kind.
        platform: platform of the rule, `*` for all.
        plugin: the plugin with the replacement.
        on: whether the replacement is in force (`config.rule_overrides`).
    """

    primitive: str
    kind: str
    platform: str
    plugin: str
    on: bool

    def __str__(self) -> str:
        where = "" if self.platform == ANY else f" on {self.platform}"
        return f"{self.primitive} {self.kind}{where} by {self.plugin}{'' if self.on else ' (off)'}"


class Row(NamedTuple):
    """One primitive.

    Attributes:
        name: name of the primitive.
        plugin, version: the plugin that defines it.
        module: the module that defines it.
        file, line: place of the definition, if plugins are loaded.
        rules: rule kind -> status.
    """

    name: str
    plugin: str | None
    version: str | None
    module: str
    file: str | None
    line: int | None
    rules: Mapping[str, RuleStatus]

    @property
    def owner(self) -> str:
        """The plugin, or in parentheses the module of a primitive without one."""
        return self.plugin or f"({self.module})"


class PrimitiveTable(NamedTuple):
    """All primitives.

    Attributes:
        kinds: rule kinds of the kernel, then those of plugins by name.
        rows: the primitives, sorted by plugin and name.
        overrides: rules that replace others.
        loaded: whether plugins were loaded.
    """

    kinds: list[str]
    rows: list[Row]
    overrides: list[Override]
    loaded: bool


def primitive_table(*, load: bool = False) -> PrimitiveTable:
    """Return all installed primitives; `load` loads plugins even if their manifests suffice."""
    manifests = None if load or primitives else plugins.manager().usable_manifests()
    if manifests is None:
        plugins.load_everything()
    required = {kind: registry.required for kind, registry in registries.items()}
    for m in (manifests or {}).values():
        required |= {kind: bool(about["required"]) for kind, about in m.rule_kinds.items()}
    own = [kind for kind, registry in registries.items() if registry.provenance.package == "corejax"]
    kinds = own + sorted(required.keys() - set(own))
    rows, overrides = _of_tables(kinds) if manifests is None else _of_manifests(manifests, kinds, required)
    return PrimitiveTable(
        kinds,
        sorted(rows, key=lambda row: (row.plugin is None, row.owner, row.name)),
        sorted(set(overrides), key=lambda o: (o.primitive, kinds.index(o.kind), o.platform, o.plugin)),
        loaded=manifests is None,
    )


def _of_tables(kinds: list[str]) -> tuple[list[Row], list[Override]]:
    rows, overrides = [], []
    for p in list(primitives.values()):
        origin, statuses = p.provenance, rule_statuses(p)
        rules = {kind: statuses[kind] for kind in kinds}
        rows.append(Row(p.name, origin.plugin, origin.version, origin.module, origin.file, origin.line, rules))
        for kind in kinds:
            for platform, rule in registries[kind].written(p):
                if rule.overriding:
                    by = rule.provenance
                    on = config.overrides_are_on(by.plugin)
                    overrides.append(Override(p.name, kind, platform or ANY, by.plugin or f"({by.module})", on))
    return rows, overrides


def _of_manifests(
    manifests: Mapping[str, Manifest], kinds: list[str], required: Mapping[str, bool]
) -> tuple[list[Row], list[Override]]:
    rows, overrides = [], []
    platforms = defaultdict[tuple[str, str], set[str]](set)  # with a rule in force, by primitive and rule kind
    for plugin, m in manifests.items():
        on = config.overrides_are_on(plugin)
        for name, written in (*m.rules.items(), *((name, entry.rules) for name, entry in m.primitives.items())):
            for kind, each in written.items():
                replacing = m.overrides.get(name, {}).get(kind, [])
                overrides += [Override(name, kind, platform, plugin, on) for platform in replacing]
                platforms[name, kind].update(each if on else set(each) - set(replacing))
    for plugin, m in manifests.items():
        for name, entry in m.primitives.items():
            rules = {kind: _status(entry, kind, platforms[name, kind], required[kind], manifests) for kind in kinds}
            rows.append(Row(name, plugin, m.version, entry.module, None, None, rules))
    return rows, overrides


def _status(
    entry: PrimitiveEntry, kind: str, platforms: set[str], required: bool, manifests: Mapping[str, Manifest]
) -> RuleStatus:
    """Return the status of a rule from manifests, as `corejax.cli.rule_status.rule_status` does from the tables."""
    own = ANY in platforms
    derivable = () if own or config.strict_rules else entry.derivable.get(kind, ())
    derivation = next((d for d, owner in derivable if owner is None or owner in manifests), None)
    required = required or (kind == "transpose" and bool(entry.linear_in))
    status = status_of(own=own, derivation=derivation, on_platforms=bool(platforms), required=required)
    return RuleStatus(status, derivation)
