"""What is known of a plugin without importing it, and what became of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from corejax.plugins.homes import HOMES
from corejax.tables import Owner
from corejax.texts import message_of

VARIABLE = "COREJAX_PLUGINS"


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
        rule_faults: rule kind -> why the plugin's lazily loaded rules of that kind could not be loaded;
            what it contributed before stays.
        backend_faults: name of a backend -> why it could not be imported; the same holds.
        offers: facade names and namespaces that it declared, kept when it fails.
        plugin: the loaded object.
        hooks: hook name -> its implementation, of a plugin that is loaded.
        contributions: the owners of what it has written into tables, one for each call of its code.
    """

    name: str
    value: str
    distribution: str | None = None
    version: str | None = None
    status: str = "found"
    fault: BaseException | None = None
    unmet: list[str] = field(default_factory=list)
    rule_faults: dict[str, BaseException] = field(default_factory=dict)
    backend_faults: dict[str, BaseException] = field(default_factory=dict)
    offers: dict[str, str] = field(default_factory=dict)
    entry_point: Any = field(default=None, repr=False)
    plugin: Any = field(default=None, repr=False)
    hooks: dict[str, Any] = field(default_factory=dict, repr=False)
    contributions: list[Owner] = field(default_factory=list, repr=False)

    @classmethod
    def of_entry_point(cls, entry: Any) -> PluginRecord:
        """A record from distribution metadata; metadata that cannot be read is no reason to fail."""
        try:
            distribution, version = entry.dist.name, entry.dist.version
        except Exception:
            distribution = version = None
        return cls(entry.name, entry.value, distribution, version, entry_point=entry)

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
        return distribution is not None and _canonical(self.distribution or "") == _canonical(distribution)

    @property
    def at_home(self) -> bool:
        """Whether names of the facade are known to belong to its distribution."""
        return _canonical(self.distribution or "") in HOMES

    def problems(self, kind: str | None = None) -> list[str]:
        """What went wrong, one sentence each.

        Args:
            kind: of the faults in lazily loaded rules, only those of this rule kind.
        """
        found = []
        if self.fault is not None:
            found.append(f"plugin {self.title} failed: {'; '.join([causes(self.fault)[0], *self.unmet])}")
        for each, fault in self.rule_faults.items():
            if kind in (None, each):
                found.append(f"plugin {self.title} failed to load its {each} rules: {causes(fault)[0]}")
        for name, fault in self.backend_faults.items() if kind is None else ():
            found.append(f"plugin {self.title} failed to load its backend {name!r}: {causes(fault)[0]}")
        return found


def readable(group: str) -> Iterator[PluginRecord]:
    """Records of what is installed, one distribution after the other; one that cannot be read counts as failed."""
    from importlib.metadata import distributions

    seen = set()
    for dist in distributions():
        directory = str(getattr(dist, "_path", ""))
        name = os.path.basename(directory).partition("-")[0]
        try:
            name = dist.name
            if _canonical(name) not in seen:
                yield from map(PluginRecord.of_entry_point, dist.entry_points.select(group=group))
            seen.add(_canonical(name))
        except Exception as error:
            if _mentions(os.path.join(directory, "entry_points.txt"), group):
                yield PluginRecord(name, "", name, status="failed", fault=error)


def _mentions(path: str, word: str) -> bool:
    try:
        with open(path, "rb") as file:
            return word.encode() in file.read()
    except OSError:
        return False


def named(records: Mapping[str, PluginRecord], name: str) -> list[PluginRecord]:
    """The plugin of a name, else those of the distribution of that name, however it is spelt."""
    return [records[name]] if name in records else [r for r in records.values() if r.comes_from(name)]


def _canonical(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


class Selection:
    """Which plugins are on: the text of `COREJAX_PLUGINS`.

    `a,b` selects these; `-c` all but that one; an empty text none; unset, all.
    """

    def __init__(self, text: str | None) -> None:
        words = None if text is None else [w.strip() for w in text.split(",") if w.strip()]
        chosen = {w for w in words or () if not w.startswith("-")}
        self.text = text
        self.excluded = {w[1:] for w in words or () if w.startswith("-")}
        self.only = None if words is None or (words and not chosen) else chosen

    @classmethod
    def from_environment(cls) -> Selection:
        """As `COREJAX_PLUGINS` says."""
        return cls(os.environ.get(VARIABLE))

    def __contains__(self, name: str) -> bool:
        return name not in self.excluded and (self.only is None or name in self.only)

    def problems(self, names: Iterable[str], variable: str = VARIABLE) -> list[str]:
        """Names in it that no plugin has, one sentence each; `variable` is where it was given."""
        import difflib  # needed for an error only

        known = list(names)
        found = []
        for word in sorted((self.excluded | (self.only or set())).difference(known)):
            close = difflib.get_close_matches(word, known, 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            found.append(f"{variable}={self.text} names {word!r}, which is no installed plugin{hint}")
        return found
