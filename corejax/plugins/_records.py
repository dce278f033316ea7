"""`PluginRecord`: the metadata of one plugin, which needs no import, and the state of loading it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
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
        dist: the distribution, with a method `read_text(name)`; None for a plugin without an entry point.
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
    dist: Any = field(default=None, repr=False)
    plugin: Any = field(default=None, repr=False)
    hook: Any = field(default=None, repr=False)
    done: set[Any] = field(default_factory=set, repr=False)
    contributions: list[Owner] = field(default_factory=list, repr=False)

    @classmethod
    def of_object(cls, plugin: object, name: str, version: str | None) -> PluginRecord:
        """Make the record of a plugin object without an entry point."""
        owner = plugin if isinstance(plugin, ModuleType | type) else type(plugin)
        module = owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
        return cls(name, module, name, version, plugin=plugin)

    def __post_init__(self) -> None:
        self.key = canonical(self.distribution or "")  # to compare with other spellings

    def load(self) -> Any:
        """Import the object that the entry point names."""
        module, _, attributes = self.value.partition("[")[0].partition(":")  # extras may follow in brackets
        return reduce(getattr, filter(None, attributes.strip().split(".")), import_module(module.strip()))

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
        return distribution is not None and self.key == canonical(distribution)

    @property
    def at_home(self) -> bool:
        """Whether the plugin is first-party: `corejax.messages.homes` lists its distribution."""
        return self.key in HOMES

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


def headers(dist: Any, names: str) -> list[tuple[str, str]]:
    """Return name and value of headers in a distribution's metadata, none if they cannot be read."""
    try:
        text = dist.read_text("METADATA") or dist.read_text("PKG-INFO") or ""  # PKG-INFO in a checkout
    except Exception:
        return []
    return re.findall(rf"^({names}): *(.*\S)", text.partition("\n\n")[0], re.MULTILINE)


def name_and_version(dist: Any) -> tuple[str | None, str | None]:
    """Return name and version of a distribution, each None if the metadata lack it."""
    found = dict(headers(dist, "Name|Version"))
    return found.get("Name"), found.get("Version")


def canonical(distribution: str) -> str:
    """Normalise a distribution's name, as package indexes do (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def failure(record: PluginRecord, name: str, fault: BaseException) -> PluginError:
    """Return the error for a name of a plugin that failed, with the fault as its cause."""
    problem = "; ".join([error_text(fault), *record.unmet])
    error = PluginError(f"corejax.{name} comes from plugin {record.title}, which failed: {problem}")
    error.__cause__ = fault
    return error
