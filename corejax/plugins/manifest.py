"""Manifests: the list of a plugin's contributions, as JSON in its package, which is read without importing the plugin.

It is used only if it surely belongs to the code: the distribution, its version and the plugin API must be the same, and
in an editable install the sources as well. `corejax write-manifest` of the author's kit writes manifests.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, get_args, get_origin, get_type_hints

from corejax.base.texts import error_text
from corejax.plugins._records import PluginRecord
from corejax.rules import registries
from corejax.settings.config import config

__all__ = ["ANY", "FILE", "MANIFEST_VERSION", "Found", "Manifest", "PrimitiveEntry", "digest", "find"]

FILE = "corejax_manifest.json"
MANIFEST_VERSION = 1

ANY = "*"  # stands for the general rule in lists of platforms

Platforms = Mapping[str, list[str]]  # rule kind -> platforms with a rule


@dataclass(frozen=True)
class PrimitiveEntry:
    """One primitive.

    Attributes:
        module: the module that defines it.
        multiple_results, effects, linear_in, tags: as in `Primitive`.
        rules: rule kind -> platforms for which the plugin has a rule; `*` is the general rule.
        derivable: rule kind without a general rule of the plugin -> possible derivations in order of preference, each
            as (derivation, plugin or None for the kernel).
        rules_of: other plugins with rules for the primitive that were loaded when `derivable` was computed.
    """

    module: str
    multiple_results: bool = False
    effects: list[str] = field(default_factory=list)
    linear_in: list[int] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    rules: Platforms = field(default_factory=dict)
    derivable: Mapping[str, list[tuple[str, str | None]]] = field(default_factory=dict)
    rules_of: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Manifest:
    """The contributions of one plugin.

    Attributes:
        plugin, distribution, version, api_version: the plugin that the manifest was written from.
        sources: digest of the package's Python files.
        names, namespaces: facade name -> target.
        array_methods, operations: names.
        settings: name -> its default, as `repr` shows it.
        commands: name of a command -> its one-line help.
        backends: name -> target.
        rule_kinds: rule kind -> title, and whether a primitive without such a rule is incomplete.
        derivations: (rule kind, derivation) that the plugin adds.
        derivations_known: (rule kind, derivation, plugin or None) of all derivations when the manifest was written.
        primitives: name -> entry.
        rules: other plugins' primitive -> rule kind -> platforms.
        overrides: the plugin's rules, for any primitive, that replace another rule on purpose (`override=True`).
    """

    plugin: str
    distribution: str | None
    version: str | None
    api_version: int
    sources: str
    names: Mapping[str, str] = field(default_factory=dict)
    namespaces: Mapping[str, str] = field(default_factory=dict)
    array_methods: list[str] = field(default_factory=list)
    operations: list[str] = field(default_factory=list)
    settings: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    backends: Mapping[str, str] = field(default_factory=dict)
    rule_kinds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    derivations: list[tuple[str, str]] = field(default_factory=list)
    derivations_known: list[tuple[str, str, str | None]] = field(default_factory=list)
    primitives: Mapping[str, PrimitiveEntry] = field(default_factory=dict)
    rules: Mapping[str, Platforms] = field(default_factory=dict)
    overrides: Mapping[str, Platforms] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Manifest:
        """Convert parsed JSON to a manifest.

        Raises:
            TypeError, AttributeError: the data is malformed.
        """
        entries = {name: PrimitiveEntry(**entry) for name, entry in data["primitives"].items()}
        manifest = cls(**{**data, "primitives": entries})
        for part in (manifest, *entries.values()):
            for name, value in vars(part).items():
                if not _fits(_hints(type(part))[name])(value):
                    raise TypeError(f"{name!r} is {value!r}")
        return manifest


_hints: Callable[[type], dict[str, Any]] = functools.cache(get_type_hints)


@functools.cache
def _fits(hint: Any) -> Callable[[Any], bool]:
    """Return a function that returns True if a value from JSON fits a type annotation."""
    origin, inner = get_origin(hint), [_fits(argument) for argument in get_args(hint)]
    if origin is list:
        return lambda v: isinstance(v, list) and all(map(inner[0], v))
    if origin is tuple:
        return lambda v: type(v) is list and len(v) == len(inner) and all(f(x) for f, x in zip(inner, v, strict=True))
    if origin is Mapping:
        return lambda v: isinstance(v, dict) and all(map(inner[0], v)) and all(map(inner[1], v.values()))
    if origin is not None:
        return lambda v: any(f(v) for f in inner)
    return lambda v: hint is Any or type(v) is hint


@dataclass(frozen=True)
class Found:
    """The result of the search for a plugin's manifest.

    Attributes:
        manifest: the manifest if it can be used, else None.
        path: path of the file, which need not exist; None for a plugin that is a single module without a directory.
        problem: the reason why the manifest cannot be used, or "".
        editable: whether the distribution is an editable install.
    """

    manifest: Manifest | None
    path: str | None
    problem: str = ""
    editable: bool = False

    @property
    def word(self) -> str:
        """One word for tables: "good", "none", "stale", "malformed" or "unknown"."""
        return "good" if self.manifest is not None else self.problem.partition(":")[0]


def find(record: PluginRecord, api_version: int) -> Found:
    """Find the manifest of a plugin without importing the plugin."""
    directories = list(_directories(record))
    path = next((p for d in directories if os.path.exists(p := os.path.join(d, FILE))), None)
    if path is None:
        default = os.path.join(directories[0], FILE) if directories else None
        return Found(None, default, "none", _is_editable(record))
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        manifest, problem = _read(data, record, api_version)
    except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        manifest, problem = None, f"malformed: {error_text(error)}"
    editable = _is_editable(record)
    if manifest is not None and editable and manifest.sources != digest(os.path.dirname(path)):
        manifest, problem = None, "stale: the package's files changed since it was written"
    return Found(manifest, path, problem, editable)


def _read(data: Any, record: PluginRecord, api_version: int) -> tuple[Manifest | None, str]:
    version = data["manifest_version"]
    if version != MANIFEST_VERSION:
        return None, f"unknown: it has manifest version {version!r}, this corejax reads {MANIFEST_VERSION}"
    if record.name not in data["plugins"]:
        return None, f"none: {FILE} does not list this plugin"
    manifest = Manifest.of(data["plugins"][record.name])
    if manifest.version != record.version or not record.comes_from(manifest.distribution):
        return None, f"stale: it was written from {manifest.distribution} {manifest.version}"
    if manifest.api_version != api_version:
        return None, f"stale: it is for plugin API version {manifest.api_version}, this corejax has {api_version}"
    return manifest, ""


def _directories(record: PluginRecord) -> Iterator[str]:
    """Yield the directories of the package that contains the plugin's module; find_spec of the top imports nothing."""
    top, *inner = record.package.split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return
    for location in (spec and spec.submodule_search_locations) or ():
        directory = os.path.join(location, *inner)
        if os.path.isdir(directory):
            yield directory


def _is_editable(record: PluginRecord) -> bool:
    """Return True if the distribution is installed as a link to its sources (PEP 610)."""
    try:
        text = record.dist.read_text("direct_url.json")
        return bool(json.loads(text)["dir_info"]["editable"]) if text else False
    except Exception:
        return False


def digest(directory: str) -> str:
    """Return a digest of all Python files of a package."""
    import hashlib  # for manifests of editable installs only

    hashed = hashlib.sha256()
    for path in sorted(_sources(directory, "")):
        with open(os.path.join(directory, path), "rb", buffering=0) as file:  # a buffer would only copy whole files
            text = file.read()
            if b"\r" in text:  # a checkout may have either kind of line end
                text = text.replace(b"\r\n", b"\n")
            hashed.update(b"%s\0%s\0" % (path.encode(), text))
    return hashed.hexdigest()[:16]


def _sources(directory: str, prefix: str) -> Iterator[str]:
    for entry in os.scandir(os.path.join(directory, prefix)):
        if entry.name.endswith(".py"):
            yield prefix + entry.name
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(directory, f"{prefix}{entry.name}/")


# -- all manifests together --------------------------------------------------------------------------------------------


def usable(
    records: Iterable[PluginRecord], found_for: Callable[[PluginRecord], Found], reserved: Iterable[str]
) -> dict[str, Manifest] | None:
    """Return the manifests of the plugins that are on, by name; None if a plugin is loaded or must be loaded."""
    manifests: dict[str, Manifest] = {}
    for record in records:
        if record.status == "off":
            continue
        manifest = found_for(record).manifest if record.status == "found" else None
        if manifest is None or (not record.at_home and any("." in name for name in manifest.names)):
            return None  # only loading shows if a dotted name conflicts with a name in another plugin's namespace
        manifests[record.name] = manifest
    return manifests if _fit_together(manifests, reserved) else None


def _fit_together(manifests: Mapping[str, Manifest], reserved: Iterable[str]) -> bool:
    """Return True if no name is taken twice, and no plugin adds rules or derivations that a manifest ignores."""
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
    derivations: set[tuple[str, str, str | None]]
    derivations = {(kind, name, None) for kind, registry in registries.items() for name in registry.derived_by}
    derivations |= {(kind, name, plugin) for plugin, m in manifests.items() for kind, name in m.derivations}
    if any(derivations - {tuple(d) for d in m.derivations_known} for m in manifests.values()):
        return False
    # Derivations may use the rules that other plugins have for a primitive, of the kernel's rule kinds.
    return all(
        set(entry.rules_of)
        == {plugin for plugin, n in manifests.items() if not registries.keys().isdisjoint(n.rules.get(name, ()))}
        for m in manifests.values()
        for name, entry in m.primitives.items()
    )
