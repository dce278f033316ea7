"""What plugins offer, as tables to print: from their manifests where all of those are good, else by loading them.

Both ways give the same: what the manifests leave open (derivations of a plugin that a manifest does not know, two
plugins with one name) has the plugins loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from corejax import plugins
from corejax.cli.rule_status import RuleStatus, Status, rule_statuses, written
from corejax.core.primitive import Primitive, primitives
from corejax.plugins._manifest import ANY, Manifest, PrimitiveEntry
from corejax.rules import registries
from corejax.settings.config import config


@dataclass(frozen=True)
class Override:
    """A rule that replaces another one on purpose.

    Attributes:
        primitive, kind: what rule.
        platform: of the rule, `*` for all.
        plugin: who replaces it.
        on: whether it is in force (`config.rule_overrides`).
    """

    primitive: str
    kind: str
    platform: str
    plugin: str
    on: bool

    def __str__(self) -> str:
        where = "" if self.platform == ANY else f" on {self.platform}"
        return f"{self.primitive} {self.kind}{where} by {self.plugin}{'' if self.on else ' (off)'}"


@dataclass(frozen=True)
class Row:
    """One primitive.

    Attributes:
        name: of the primitive.
        plugin, version: whose it is.
        module: where it is defined.
        rules: rule kind -> state.
        primitive: itself, where plugins are loaded.
    """

    name: str
    plugin: str | None
    version: str | None
    module: str
    rules: Mapping[str, RuleStatus]
    primitive: Primitive | None = None

    @property
    def owner(self) -> str:
        """The plugin, or in parentheses the module of a primitive that belongs to none."""
        return self.plugin or f"({self.module})"


@dataclass(frozen=True)
class PrimitiveTable:
    """All primitives.

    Attributes:
        kinds: rule kinds: the kernel's, then plugins' by name.
        rows: sorted by plugin and name.
        overrides: rules that replace others.
        loaded: whether plugins had to be loaded.
    """

    kinds: list[str]
    rows: list[Row]
    overrides: list[Override] = field(default_factory=list)
    loaded: bool = True


def primitive_table(*, load: bool = False) -> PrimitiveTable:
    """Everything that is installed.

    Args:
        load: load plugins even where manifests would do.
    """
    manifests = None if load else plugins.manager().usable_manifests() if not primitives else None
    if manifests is not None:
        return _of_manifests(manifests)
    plugins.load_everything()
    return _of_tables()


def _sorted(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row.plugin is None, row.owner, row.name))


def _kinds(contributed: Iterable[str]) -> list[str]:
    own = [kind for kind, registry in registries.items() if registry.provenance.package == "corejax"]
    return own + sorted(contributed)


# -- from the tables ---------------------------------------------------------------------------------------------------


def _of_tables() -> PrimitiveTable:
    kinds = _kinds(k for k, registry in registries.items() if registry.provenance.package != "corejax")
    rows = []
    for p in list(primitives.values()):
        where, rules = p.provenance, rule_statuses(p)
        rows.append(Row(p.name, where.plugin, where.version, where.module, {kind: rules[kind] for kind in kinds}, p))
    return PrimitiveTable(kinds, _sorted(rows), _overrides_in_force(kinds))


def _overrides_in_force(kinds: list[str]) -> list[Override]:
    found = []
    for name, primitive in sorted(primitives.items()):
        for kind in kinds:
            for platform, rule in written(registries[kind], primitive):
                if rule.overriding:
                    owner = rule.provenance.plugin or f"({rule.provenance.module})"
                    found.append(Override(name, kind, platform, owner, config.overrides_are_on(rule.provenance.plugin)))
    return sorted(set(found), key=lambda o: (o.primitive, kinds.index(o.kind), o.platform, o.plugin))


# -- from manifests ----------------------------------------------------------------------------------------------------


def _of_manifests(manifests: Mapping[str, Manifest]) -> PrimitiveTable:
    required = {kind: registry.required for kind, registry in registries.items()}
    for m in manifests.values():
        required |= {kind: bool(about["required"]) for kind, about in m.rule_kinds.items()}
    kinds = _kinds(required.keys() - registries.keys())
    rows = [
        Row(
            name,
            plugin,
            m.version,
            entry.module,
            {kind: _status(name, entry, kind, plugin, required[kind], manifests) for kind in kinds},
        )
        for plugin, m in manifests.items()
        for name, entry in m.primitives.items()
    ]
    overrides = [
        Override(name, kind, platform, plugin, config.overrides_are_on(plugin))
        for plugin, m in manifests.items()
        for name, given in m.overrides.items()
        for kind, platforms in given.items()
        for platform in platforms
    ]
    overrides.sort(key=lambda o: (o.primitive, kinds.index(o.kind), o.platform, o.plugin))
    return PrimitiveTable(kinds, _sorted(rows), overrides, loaded=False)


def _status(
    name: str, entry: PrimitiveEntry, kind: str, plugin: str, required: bool, manifests: Mapping[str, Manifest]
) -> RuleStatus:
    """As `corejax.cli.rule_status.rule_status`, of what manifests say."""
    platforms = set(entry.rules.get(kind, ()))
    for other, m in manifests.items():
        given = set(m.rules.get(name, {}).get(kind, ())) if other != plugin else platforms
        off = () if config.overrides_are_on(other) else m.overrides.get(name, {}).get(kind, ())
        platforms = (platforms - set(off) if other == plugin else platforms) | (given - set(off))
    if ANY in platforms:
        return RuleStatus(kind, "own")
    derivable = entry.derivable.get(kind, ())
    derivation = next((d for d, owner in derivable if owner is None or owner in manifests), None)
    if derivation is not None and not config.strict_rules:
        return RuleStatus(kind, "derived", derivation=derivation)
    if platforms:
        return RuleStatus(kind, "platform")
    missing: Status = "missing" if required or (kind == "transpose" and entry.linear_in) else "not_required"
    return RuleStatus(kind, missing)
