"""`PluginManager`: finds the plugins of this process, has them loaded at first need, and answers for all of them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from corejax.base.restoring import raise_interrupt
from corejax.base.texts import error_text, how_to_install
from corejax.core import array_methods
from corejax.core.backends import Backend, backends
from corejax.errors import PluginError
from corejax.messages.homes import homes
from corejax.plugins import hookspecs
from corejax.plugins._discovery import by_name, installed_entry_points
from corejax.plugins._exports import import_backend, import_registry
from corejax.plugins._loading import Loader, withdraw
from corejax.plugins._records import LATE, PluginRecord, failure
from corejax.settings.selection import VARIABLE, Selection

if TYPE_CHECKING:
    from corejax.core.primitive import Primitive
    from corejax.plugins.manifest import Found, Manifest


class PluginManager:
    """The plugins of this process.

    Args:
        find: gives the records of what is installed; imports nothing.
        reserved: the facade's own names, which no plugin may export.

    Attributes:
        records: what was found, by entry point name.
        names, namespaces, rule_kinds, reserved: what the loaded ones export and declare, as in `Exports`.
        selection: what `COREJAX_PLUGINS` selects, read at discovery.
        outside: of a manager for a while (`isolated_plugins`), the one whose place it takes.
    """

    outside: PluginManager | None = None

    def __init__(
        self,
        find: Callable[[], Iterable[PluginRecord]] = installed_entry_points,
        reserved: Collection[str] = (),
    ) -> None:
        self.records: dict[str, PluginRecord] = {}
        self.selection = Selection(None)
        self._find = find
        self._loader = Loader(reserved)
        exports = self._loader.exports
        self.names, self.namespaces = exports.names, exports.namespaces
        self.rule_kinds, self.reserved = exports.rule_kinds, exports.reserved
        self._manifests: dict[str, Found] = {}
        self._usable: dict[str, Manifest] | None = None
        self._discovered = False
        self._loaded = False
        self._done: set[str | tuple[str, str]] = set()  # kinds of rules, and primitives of one

    # -- found and loaded --------------------------------------------------------------------------------------

    def discover(self) -> dict[str, PluginRecord]:
        """Find entry points; nothing is imported."""
        if not self._discovered:
            with self._loader.lock:
                if not self._discovered:
                    self.selection = Selection(os.environ.get(VARIABLE))
                    self.records = by_name(self._find(), self.selection)
                    self._discovered = True
        return self.records

    @property
    def loaded(self) -> bool:
        """Whether all that were found are loaded, or have failed."""
        return self._loaded

    def load(self) -> None:
        """Load every selected plugin's entry point: its hooks, not yet its primitives.

        A plugin that, while it is loaded, asks for something of another one has that one loaded first.

        Raises:
            PluginError: strict plugins are set and one fails.
        """
        if self._loaded:
            return
        with self._loader.lock:
            for record in list(self.discover().values()):
                if record.status == "found":
                    self._load(record)
            self._loaded = all(record.status != "loading" for record in list(self.records.values()))
            array_methods.set_plugins_loaded(self._loaded)
            for record in list(self.records.values()) if self._loaded else ():
                self._refuse_hidden(record)

    def _refuse_hidden(self, record: PluginRecord) -> None:
        """Fail a plugin that exports what nothing can reach; those of this repository are tested for that."""
        if record.status == "loaded" and not record.at_home:
            self._loader.run(record, lambda: self._loader.exports.refuse_hidden(record))

    def _load(self, record: PluginRecord) -> None:
        self._usable = None  # from now on the tables tell more
        self._loader.load(record)
        self._done.clear()

    def register(self, plugin: Any, name: str, version: str | None = None) -> PluginRecord:
        """Add a plugin object without an entry point (in tests and notebooks).

        Raises:
            PluginError: there is a plugin of that name; or strict plugins are set and it fails.
        """
        self.load()
        with self._loader.lock:
            earlier = self.records.get(name)
            if earlier is not None and (earlier.status != "failed" or earlier.entry_point is not None):
                raise PluginError(f"a plugin named {name!r} exists: {earlier.title}")
            record = self.records[name] = PluginRecord.of_object(plugin, name, version)
            self._load(record)
            self._refuse_hidden(record)
        return record

    def unregister(self, name: str) -> None:
        """Take back what a plugin object contributed; modules that were imported stay imported.

        Raises:
            KeyError: there is no plugin of that name.
        """
        with self._loader.lock:
            withdraw(self.records.pop(name))

    def faults(self) -> list[PluginRecord]:
        """Plugins that failed."""
        return [record for record in self.records.values() if record.status == "failed"]

    def problems(self, kind: str | None = None) -> list[str]:
        """Everything that went wrong so far, one sentence each; of rule kinds, only `kind` if given."""
        found = [problem for record in list(self.records.values()) for problem in record.problems(kind)]
        off = [record.title for record in self.records.values() if record.status == "off"]
        if kind == "primitives" and off:
            found.append(f"{self.selection.setting} switches off {', '.join(off)}")
        return [*found, *(f"plugin {record.title} {LATE}" for record in self.installed_since())]

    def installed_since(self) -> list[PluginRecord]:
        """Plugins that are installed now and were not when this process looked for plugins."""
        if not self._discovered:
            return []
        known = {(record.name, record.distribution) for record in self.records.values()}
        return [r for r in self._find() if (r.name, r.distribution) not in known and r.name in self.selection]

    def owner_of(self, module: str) -> tuple[str, str | None, str | None] | None:
        """Name, version and distribution of the plugin that a module belongs to."""
        best: tuple[int, PluginRecord] | None = None
        for record in self.discover().values():
            for root in (record.module, record.package):
                inside = module == root or module.startswith(root + ".")
                if inside and (best is None or len(root) > best[0]):
                    best = len(root), record
        return None if best is None else (best[1].name, best[1].version, best[1].distribution)

    # -- what is not here --------------------------------------------------------------------------------------

    def where(self, record: PluginRecord | None, home: str | None, lacks: str = "") -> str:
        """Return where the distribution `home` is, or how to install it; `lacks` says what its plugin does not do."""
        if record is None:
            late = any(r.comes_from(home) for r in self.installed_since())
            return f"the plugin distribution {f'{home}, which {LATE}' if late else how_to_install(home or '')}"
        if record.status == "off":
            return f"plugin {record.title}, which is switched off by {self.selection.setting}"
        if record.fault is not None:
            return f"plugin {record.title}, which failed; to see why: corejax plugins"
        return f"{home}, but the installed plugin {record.title} {lacks}"

    def whose_primitive(self, name: str, distribution: str | None = None) -> str:
        """Return where a primitive is that is not here, in half a sentence; it was from `distribution`, if known."""
        prefix = name.partition(".")[0] if "." in name else None
        home = distribution or homes("primitives").get(name)
        missing = "is the plugin that has it installed"
        advice = f", corejax-{prefix.replace('_', '-')} perhaps?" if prefix else "?"
        return self._whose("primitives", name, home, prefix) or missing + advice

    def whose_method(self, name: str) -> str:
        """Return where an array method is that is not here, as the end of a sentence; "" if that is not known."""
        home = homes("array_methods").get(name)
        return "" if home is None else f"; {self._whose('array_methods', name, home)}"

    def _whose(self, kind: str, name: str, home: str | None, plugin: str | None = None) -> str | None:
        """Return which plugin has something that is not here; `plugin` is its name, if `home` is not known."""
        for record in self.discover().values():
            if record.status not in ("off", "failed"):
                continue
            manifest = self.manifest(record).manifest
            known = manifest is not None and name in getattr(manifest, kind)
            if known or record.comes_from(home) or (home is None and plugin == record.name):
                return f"it is of {self.where(record, home)}"
        return None if home is None else f"it comes with {self.where(None, home)}"

    # -- what they offer, told by manifests where these will do ------------------------------------------------

    def manifest(self, record: PluginRecord) -> Found:
        """A plugin's manifest, or why there is none to use; nothing of it is imported."""
        found = self._manifests.get(record.name)
        if found is None:
            from corejax.plugins.manifest import find  # most processes load plugins, and read none

            found = self._manifests[record.name] = find(record, hookspecs.API_VERSION)
            if found.manifest is not None:
                record.offers |= {**found.manifest.names, **found.manifest.namespaces}
        return found

    def usable_manifests(self) -> dict[str, Manifest] | None:
        """Manifests of all selected plugins, by name, where none is loaded yet and they tell all that loading would."""
        if self._usable is None:
            from corejax.plugins.manifest import usable

            self._usable = usable(self.discover().values(), self.manifest, self.reserved)
        return self._usable

    def offered(self) -> dict[str, str]:
        """What plugins export: name -> plugin. From manifests where they will do; else plugins are loaded."""
        manifests = self.usable_manifests()
        if manifests is not None:
            return {name: plugin for plugin, m in manifests.items() for name in (*m.names, *m.namespaces)}
        self.load()
        return {name: record.name for name, (_, record) in (*self.names.items(), *self.namespaces.items())}

    def names_inside(self, namespace: str) -> list[str]:
        """Return the names that plugins export inside a namespace; nothing is imported."""
        prefix = f"{namespace}."
        names = (name.removeprefix(prefix) for name in self.offered() if name.startswith(prefix))
        return sorted(name for name in names if "." not in name)

    def may_export(self, name: str) -> bool:
        """Whether some plugin exports a name or a namespace around it, as far as can be told without loading."""
        home = homes("names").get(name)
        if home is not None and any(r.status != "off" and r.comes_from(home) for r in self.discover().values()):
            return True  # no manifest has to be read
        if self.usable_manifests() is None:
            return True
        return name.partition(".")[0] in {n.partition(".")[0] for n in self.offered()}

    def has_inside(self, name: str) -> bool:
        """Whether a loaded plugin exports something inside a name that no plugin exports (`experimental.checkify`)."""
        home = homes("names").get(name)
        return any(
            n.startswith(f"{name}.") and (home is None or record.comes_from(home))
            for n, (_, record) in (*self.namespaces.items(), *self.names.items())
        )

    def exported(self, name: str) -> Any:
        """The object behind `corejax.NAME`, or None if no plugin exports it.

        Raises:
            PluginError: the plugin that exports it fails when the object is imported.
        """
        if not self.may_export(name):
            return None
        self.load()
        found = self._loader.exports.target(name)
        if found is None:
            return importlib.import_module(f"corejax.{name}") if self.has_inside(name) else None
        target, record = found
        module, _, attribute = target.partition(":")
        try:
            if not attribute:
                return importlib.import_module(f"corejax.{name}")
            return getattr(importlib.import_module(module), attribute)
        except BaseException as error:
            raise_interrupt(error)
            raise failure(record, name, error) from error

    # -- what they register late -------------------------------------------------------------------------------

    def exported_to_kernel(self, name: str) -> Any:
        """As `exported`; if this manager is of a block of `isolated_plugins`, also from the plugins outside of it."""
        found = self.exported(name)
        return found if found is not None or self.outside is None else self.outside.exported(name)

    def load_primitives(self) -> bool:
        """Have every plugin register its primitives; True when something was loaded."""
        done = not self._loaded
        with self._loader.lock:
            for record in self._loaded_records():
                done |= self._loader.run_once(record, "primitives", record.hook.corejax_register_primitives)
        return done

    def load_rule_kinds(self) -> bool:
        """Import the registries of the rule kinds that plugins declared; True when one was imported.

        A plugin whose registry cannot be imported keeps what it contributed before.
        """
        done = False
        self.load()
        with self._loader.lock:
            for kind, (target, record) in list(self.rule_kinds.items()):
                take = partial(import_registry, kind, target)
                done |= self._loader.run_once(record, ("registry", kind), take, f"{kind} rules")
        return done

    def load_rules(self, kind: str, primitive: Primitive | None = None) -> bool:
        """Have every plugin register its lazily loaded rules of a kind; True when something was loaded.

        A plugin whose rules of the kind cannot be loaded keeps what it contributed before.

        Args:
            kind: name of the registry.
            primitive: the primitive whose rule is missing, if it is one's. Plugins that tell their own primitives apart
                then register no more than they want to for it.
        """
        wanted = kind if primitive is None else (kind, primitive.name)
        if kind in self._done or wanted in self._done:
            return False
        done = not self._loaded
        with self._loader.lock:
            for record in self._loaded_records():
                what: tuple[str, ...] = ("rules", kind)
                asked = None
                if primitive is not None and what not in record.done and record.tells_primitives_apart():
                    if primitive.provenance.plugin != record.name:
                        continue
                    what, asked = (*what, primitive.name), primitive
                register = partial(record.hook.corejax_register_rules, kind=kind, primitive=asked)
                done |= self._loader.run_once(record, what, register, f"{kind} rules")
            if self._loaded:
                self._done.add(wanted)
        return done

    def import_backend(self, name: str) -> Backend:
        """Import the object that a plugin provides as a backend; if it fails, the plugin keeps its contributions.

        Raises:
            PluginError: it cannot be imported, now or at the first time.
        """
        target, record = backends.provided[name]
        found: list[Backend] = []
        what = f"backend {name!r}"
        with self._loader.lock:
            if what not in record.late_faults:
                self._loader.run(record, lambda: found.append(import_backend(name, target)), what)
        if not found:
            fault = record.late_faults[what]
            raise PluginError(
                f"backend {name!r} comes from plugin {record.title}, which failed to load it: {error_text(fault)}"
            ) from fault
        return found[0]

    def add_cli_commands(self, group: Any) -> None:
        """Have every plugin add its commands to a click group."""
        with self._loader.lock:
            for record in self._loaded_records():
                self._loader.add_commands(record, group)

    def _loaded_records(self) -> Iterator[PluginRecord]:
        """Yield the plugins that are loaded when their turn comes: one may fail while the code of another runs."""
        self.load()
        return (record for record in list(self.records.values()) if record.status == "loaded")
