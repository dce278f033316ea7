"""`PluginRecord`: what is known of one plugin without importing it, and what became of it."""

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
    """The error and what it came from, one `Type: first line` each."""
    found: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        first_line = next(iter(message_of(current).splitlines()), "")
        text = f"{type(current).__name__}: {first_line}".removesuffix(": ")
        if text not in found:
            found.append(text)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return found


@dataclass(eq=False)
class PluginRecord:
    """One entry point of the group `corejax.plugins`.

    Attributes:
        name: the entry point's name.
        value: the object that it names, `module` or `module:attribute`.
        distribution: name of the distribution, if known.
        version: its version, if known.
        status: "found", "off" (not selected), "loading", "loaded" or "failed".
        fault: why it failed.
        unmet: versions that it requires of corejax and its plugins and that are not installed, if it failed.
        late_faults: "vmap rules", "backend 'acme'" -> why these could not be loaded when they were needed; what the
            plugin contributed before stays.
        offers: facade names and namespaces that it declared, kept when it fails.
        plugin: the loaded object.
        hook: calls the hooks of a plugin that is loaded: `record.hook.corejax_register_rules(kind=kind)`.
        done: what it has registered of what is asked for once.
        contributions: the owners of what it has written into tables, one for each call of its code.
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
        """A record from distribution metadata."""
        return cls(entry.name, entry.value, *_name_and_version(entry), entry_point=entry)

    @classmethod
    def of_object(cls, plugin: Any, name: str, version: str | None) -> PluginRecord:
        """A record of a plugin object that no entry point names."""
        owner = plugin if isinstance(plugin, ModuleType | type) else type(plugin)
        module = owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
        return cls(name, module, name, version, plugin=plugin)

    @property
    def module(self) -> str:
        """The module with the hooks."""
        return self.value.partition(":")[0].strip()

    @property
    def package(self) -> str:
        """The package around it: where the plugin's own code is."""
        return self.module.rpartition(".")[0] or self.module

    @property
    def title(self) -> str:
        """`'NAME' (DISTRIBUTION VERSION)`."""
        return f"{self.name!r} ({self.distribution or self.package} {self.version or 'of unknown version'})"

    def comes_from(self, distribution: str | None) -> bool:
        """Whether it is of that distribution, however its name is spelt."""
        return distribution is not None and canonical(self.distribution or "") == canonical(distribution)

    @property
    def at_home(self) -> bool:
        """Whether names of the facade are known to belong to its distribution."""
        return canonical(self.distribution or "") in HOMES

    def tells_primitives_apart(self) -> bool:
        """Whether the plugin's hook for late rules takes the primitive whose rule is missing."""
        return any("primitive" in impl.argnames for impl in self.hook.corejax_register_rules.get_hookimpls())

    def problems(self, kind: str | None = None) -> list[str]:
        """Return what went wrong, one sentence each; of the late faults only those in rules of `kind`, if given."""
        found = []
        if self.fault is not None:
            found.append(f"plugin {self.title} failed: {'; '.join([causes(self.fault)[0], *self.unmet])}")
        for what, fault in self.late_faults.items():
            if kind is None or what == f"{kind} rules":
                found.append(f"plugin {self.title} failed to load its {what}: {causes(fault)[0]}")
        return found


def named(records: Mapping[str, PluginRecord], name: str) -> list[PluginRecord]:
    """The plugin of a name, else those of the distribution of that name, however it is spelt."""
    return [records[name]] if name in records else [r for r in records.values() if r.comes_from(name)]


def _name_and_version(entry: Any) -> tuple[str | None, str | None]:
    """Of an entry point's distribution; metadata that cannot be read is no reason to fail.

    From the first lines: to parse all of it as a message takes longer than to find every plugin.
    """
    try:
        text = entry.dist.read_text("METADATA") or entry.dist.read_text("PKG-INFO") or ""  # of a checkout
        headers = text.partition("\n\n")[0]
        found = dict(re.findall(r"^(Name|Version): *(\S+)", headers, re.MULTILINE))
        return found.get("Name") or entry.dist.name, found.get("Version") or entry.dist.version
    except Exception:
        return None, None


def canonical(distribution: str) -> str:
    """A distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def failure(record: PluginRecord, name: str, fault: BaseException) -> PluginError:
    """Return the error for a name of a plugin that failed; the fault is its cause."""
    error = PluginError(
        f"corejax.{name} comes from plugin {record.title}, which failed: "
        + "; ".join([error_text(fault), *record.unmet])
    )
    error.__cause__ = fault
    return error
