"""`PluginRecord`: the metadata of one plugin, which needs no import, and the state of loading it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from corejax.base.tables import Owner
from corejax.base.texts import error_text, message_of
from corejax.errors import PluginError
from corejax.messages.homes import HOMES

LATE = "was installed after plugins were loaded: restart Python"


def causes(error: BaseException) -> list[str]:
    """Return an error and its chain of causes, one `Type: first line` each."""
    lines: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        first_line = next(iter(message_of(current).splitlines()), "")
        text = f"{type(current).__name__}: {first_line}".removesuffix(": ")
        if text not in lines:
            lines.append(text)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return lines


@dataclass(eq=False)
class PluginRecord:
    """One entry point of the group `corejax.plugins`.

    Attributes:
        name: the entry point's name.
        value: the object that the entry point names, `module` or `module:attribute`.
        distribution: name of the distribution, if known.
        version: version of the distribution, if known.
        status: "found", "off" (not selected), "loading", "loaded" or "failed".
        fault: the error if the plugin failed.
        unmet: a sentence for each required version of corejax or a plugin that is not installed, if it failed.
        late_faults: "vmap rules", "backend 'acme'" -> the error when these were loaded late. The plugin's earlier
            contributions stay.
        offers: facade names and namespaces that the plugin exports; kept if it fails.
        plugin: the loaded object.
        hook: the hooks of a loaded plugin, to be called as `record.hook.corejax_register_rules(kind=kind)`.
        done: keys of the late registrations that have run ("primitives", `("rules", kind)`); each runs once.
        contributions: the owners of the plugin's table entries, one for each call of its code.
    """

    name: str
    value: str
    distribution: str | None = None
    version: str | None = None
    status: str = "found"
    fault: BaseException | None = None
    unmet: list[str] = field(default_factory=list)
    late_faults: dict[str, BaseException] = field(default_factory=dict)
    offers: dict[str, str] = field(default_factory=dict)
    entry_point: Any = field(default=None, repr=False)
    plugin: Any = field(default=None, repr=False)
    hook: Any = field(default=None, repr=False)
    done: set[Any] = field(default_factory=set, repr=False)
    contributions: list[Owner] = field(default_factory=list, repr=False)

    @classmethod
    def of_entry_point(cls, entry: Any) -> PluginRecord:
        """Make the record of an entry point."""
        return cls(entry.name, entry.value, *_name_and_version(entry), entry_point=entry)

    @classmethod
    def of_object(cls, plugin: object, name: str, version: str | None) -> PluginRecord:
        """Make the record of a plugin object without an entry point."""
        owner = plugin if isinstance(plugin, ModuleType | type) else type(plugin)
        module = owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
        return cls(name, module, name, version, plugin=plugin)

    @property
    def module(self) -> str:
        """The module with the hooks."""
        return self.value.partition(":")[0].strip()

    @property
    def package(self) -> str:
        """The package that contains the module and the plugin's other code."""
        return self.module.rpartition(".")[0] or self.module

    @property
    def title(self) -> str:
        """`'NAME' (DISTRIBUTION VERSION)`."""
        return f"{self.name!r} ({self.distribution or self.package} {self.version or 'of unknown version'})"

    def comes_from(self, distribution: str | None) -> bool:
        """Return True if the plugin belongs to `distribution`; spellings of one name are equal, as in pip."""
        return distribution is not None and canonical(self.distribution or "") == canonical(distribution)

    @property
    def at_home(self) -> bool:
        """Whether the plugin is first-party: `corejax.messages.homes` lists its distribution."""
        return canonical(self.distribution or "") in HOMES

    def loads_rules_by_primitive(self) -> bool:
        """Return True if the plugin's hook for late rules takes the argument `primitive`."""
        return any("primitive" in impl.argnames for impl in self.hook.corejax_register_rules.get_hookimpls())

    def problems(self, kind: str | None = None) -> list[str]:
        """Return a sentence for each fault; if `kind` is given, only late faults in rules of that kind count."""
        problems = []
        if self.fault is not None:
            problems.append(f"plugin {self.title} failed: {'; '.join([causes(self.fault)[0], *self.unmet])}")
        for what, fault in self.late_faults.items():
            if kind is None or what == f"{kind} rules":
                problems.append(f"plugin {self.title} failed to load its {what}: {causes(fault)[0]}")
        return problems


def named(records: Mapping[str, PluginRecord], name: str) -> list[PluginRecord]:
    """Return the plugin named `name`, or else the plugins of the distribution of that name."""
    return [records[name]] if name in records else [r for r in records.values() if r.comes_from(name)]


def _name_and_version(entry: Any) -> tuple[str | None, str | None]:
    """Return name and version of an entry point's distribution, or None twice if its metadata cannot be read.

    Only the headers are searched: parsing all metadata as a message would take longer than finding every plugin.
    """
    try:
        text = entry.dist.read_text("METADATA") or entry.dist.read_text("PKG-INFO") or ""  # PKG-INFO in a checkout
        headers = text.partition("\n\n")[0]
        fields = dict(re.findall(r"^(Name|Version): *(\S+)", headers, re.MULTILINE))
        return fields.get("Name") or entry.dist.name, fields.get("Version") or entry.dist.version
    except Exception:
        return None, None


def canonical(distribution: str) -> str:
    """Normalise a distribution's name, as package indexes do (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def failure(record: PluginRecord, name: str, fault: BaseException) -> PluginError:
    """Return the error for a name of a plugin that failed, with the fault as its cause."""
    error = PluginError(
        f"corejax.{name} comes from plugin {record.title}, which failed: "
        + "; ".join([error_text(fault), *record.unmet])
    )
    error.__cause__ = fault
    return error
