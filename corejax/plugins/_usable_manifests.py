"""Whether the manifests of all plugins together tell what loading the plugins would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from corejax.plugins._records import PluginRecord
from corejax.plugins.manifest import Found, Manifest
from corejax.rules import registries
from corejax.settings.config import config


def usable(
    records: Iterable[PluginRecord], find: Callable[[PluginRecord], Found], reserved: Iterable[str]
) -> dict[str, Manifest] | None:
    """Return the manifests of the plugins that are on, by name; None if a plugin is loaded, or would have to be."""
    found: dict[str, Manifest] = {}
    for record in records:
        if record.status == "off":
            continue
        manifest = find(record).manifest if record.status == "found" else None
        if manifest is None or (not record.at_home and any("." in name for name in manifest.names)):
            return None  # whether others' namespaces have such names, these tell when they are loaded
        found[record.name] = manifest
    return found if _fit_together(found, reserved) else None


def _fit_together(manifests: Mapping[str, Manifest], reserved: Iterable[str]) -> bool:
    """Whether no name is taken twice, and each manifest knows what the others would do to its primitives."""
    taken = {("facade", name) for name in reserved}
    taken |= {("setting", name) for name in config._settings} | {("rule kind", kind) for kind in registries}
    for m in manifests.values():
        tables = {
            "facade": [*m.names, *m.namespaces],
            "method": m.array_methods,
            "operation": m.operations,
            "setting": m.settings,
            "command": m.commands,
            "backend": m.backends,
            "rule kind": m.rule_kinds,
            "primitive": m.primitives,
        }
        offered = [(what, name) for what, names in tables.items() for name in names]
        if len(set(offered)) < len(offered) or not taken.isdisjoint(offered):
            return False
        taken.update(offered)
    derivations = set(known_derivations())
    derivations |= {(kind, name, plugin) for plugin, m in manifests.items() for kind, name in m.derivations}
    if any(derivations - {tuple(d) for d in m.derivations_known} for m in manifests.values()):
        return False
    return all(
        set(entry.rules_of) == _contributors(name, manifests)
        for m in manifests.values()
        for name, entry in m.primitives.items()
    )


def _contributors(primitive: str, manifests: Mapping[str, Manifest]) -> set[str]:
    """Plugins that give somebody else's primitive rules of the kernel's kinds, of which others may be derived."""
    return {plugin for plugin, m in manifests.items() if any(kind in registries for kind in m.rules.get(primitive, ()))}


def known_derivations() -> Iterator[tuple[str, str, str | None]]:
    """Rule kind, name and plugin (None: the kernel) of every derivation there is."""
    for kind, registry in registries.items():
        for derivation in registry.derivations:
            yield kind, derivation.name, derivation.provenance.plugin
