"""`PluginManager`: finds the plugins of this process, loads them when they are first needed, and looks names up."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from corejax.arrays.backends import Backend, backends
from corejax.base.restoring import raise_interrupt
from corejax.base.texts import error_text, how_to_install
from corejax.core import array_methods
from corejax.errors import PluginError
from corejax.messages.homes import homes
from corejax.messages.source_info import warn_user
from corejax.plugins import hookspecs
from corejax.plugins._discovery import by_name, installed_entry_points
from corejax.plugins._exports import import_backend, import_registry
from corejax.plugins._loading import Loader, withdraw
from corejax.plugins._records import LATE, PluginRecord, failure
from corejax.settings.config import config
from corejax.settings.selection import VARIABLE, Selection

if TYPE_CHECKING:
    from corejax.core.primitive import Primitive
    from corejax.plugins.manifest import Found, Manifest


class PluginManager:
    """The plugins of this process.

    Args:
        find: returns the records of the installed plugins; imports nothing.
        reserved: the facade's own names, which no plugin may export.

    Attributes:
        records: the plugins that were found, by entry point name.
        names, namespaces, rule_kinds, reserved: exports and declarations of the loaded plugins, as in `Exports`.
        selection: the plugins that `COREJAX_PLUGINS` selects, read at discovery.
        outside: the manager that this one replaces for a block of `isolated_plugins`, or None.
    """

    outside: PluginManager | None = None

    def __init__(
        self, find: Callable[[], Iterable[PluginRecord]] = installed_entry_points, reserved: Collection[str] = ()
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
        self._done: set[str | tuple[str, str]] = set()  # loaded: rule kinds, and (rule kind, primitive)

    # -- discovery and loading ---------------------------------------------------------------------------------

    def discover(self) -> dict[str, PluginRecord]:
        """Find the entry points of installed plugins at the first call; import nothing."""
        if not self._discovered:
            with self._loader.lock:
                if not self._discovered:
                    self.selection = Selection(os.environ.get(VARIABLE))
                    self.records = by_name(self._find(), self.selection)
                    self._discovered = True
                    for problem in self.selection.problems(self.records) if self.outside is None else ():
                        warn_user(f"{problem}.")
        return self.records

    @property
    def loaded(self) -> bool:
        """Whether every plugin that was found is loaded or has failed."""
        return self._loaded

    def load(self, only: Collection[str | None] | None = None) -> None:
        """Load the entry point of every selected plugin: its hooks.

        If a plugin needs an export of another one while it is loaded, the other one is loaded first. The distributions
        `only`, which `homes` lists, suffice unless a third-party plugin is selected, which may contribute anything.

        Raises:
            PluginError: a plugin fails, and `config.strict_plugins` is set.
        """
        if self._loaded:
            return
        with self._loader.lock:
            if config.strict_plugins or any(not r.at_home for r in self.discover().values() if r.status != "off"):
                only = None
            for record in list(self.discover().values()):
                if record.status == "found" and (only is None or record.key in only):
                    self._load(record)
            statuses = {record.status for record in list(self.records.values())}
            complete = "loading" not in statuses
            self._loaded = complete and "found" not in statuses
            array_methods.set_plugins_loaded(complete)
            for record in list(self.records.values()) if complete else ():
                self._refuse_hidden(record)

    def _refuse_hidden(self, record: PluginRecord) -> None:
        """Fail a plugin with exports that cannot be reached. First-party plugins have tests for that instead."""
        if record.status == "loaded" and not record.at_home:
            self._loader.run(record, lambda: self._loader.exports.refuse_hidden(record))

    def _load(self, record: PluginRecord) -> None:
        self._usable = None  # manifests can replace loading only while no plugin is loaded
        self._loader.load(record)
        self._done.clear()

    def register(self, plugin: object, name: str, version: str | None = None) -> PluginRecord:
        """Add a plugin object without an entry point (in tests and notebooks).

        Raises:
            PluginError: a plugin has that name; or this one fails, and `config.strict_plugins` is set.
        """
        self.load()
        with self._loader.lock:
            earlier = self.records.get(name)
            if earlier is not None and (earlier.status != "failed" or earlier.dist is not None):
                raise PluginError(f"a plugin named {name!r} exists: {earlier.title}")
            record = self.records[name] = PluginRecord.of_object(plugin, name, version)
            self._load(record)
            self._refuse_hidden(record)
        return record

    def unregister(self, name: str) -> None:
        """Undo the contributions of a plugin object; modules that were imported stay imported.

        Raises:
            KeyError: no plugin has that name.
        """
        with self._loader.lock:
            withdraw(self.records.pop(name))

    def problems(self, kind: str | None = None) -> list[str]:
        """Return a sentence for each problem so far; if `kind` is given, leave out faults in other rule kinds."""
        problems = [problem for record in list(self.records.values()) for problem in record.problems(kind)]
        off = [record.title for record in self.records.values() if record.status == "off"]
        if kind == "primitives" and off:
            problems.append(f"{self.selection.setting} switches off {', '.join(off)}")
        return [*problems, *(f"plugin {record.title} {LATE}" for record in self.installed_since())]

    def installed_since(self) -> list[PluginRecord]:
        """Return the plugins that were installed after this process discovered plugins."""
        if not self._discovered:
            return []
        known = {(record.name, record.distribution) for record in self.records.values()}
        return [r for r in self._find() if (r.name, r.distribution) not in known and r.name in self.selection]

    def owner_of(self, module: str) -> tuple[str, str | None, str | None] | None:
        """Return name, version and distribution of the plugin that a module belongs to, or None."""
        best: tuple[int, PluginRecord] | None = None
        for record in self.discover().values():
            for root in (record.module, record.package):
                if f"{module}.".startswith(f"{root}.") and (best is None or len(root) > best[0]):
                    best = len(root), record
        return None if best is None else (best[1].name, best[1].version, best[1].distribution)

    # -- texts about missing names -----------------------------------------------------------------------------

    def where(self, record: PluginRecord | None, home: str | None, lacks: str = "") -> str:
        """Describe how to get the distribution `home`; `lacks` completes the text if its plugin is loaded."""
        if record is None:
            late = any(r.comes_from(home) for r in self.installed_since())
            return f"the plugin distribution {f'{home}, which {LATE}' if late else how_to_install(home or '')}"
        if record.status == "off":
            return f"plugin {record.title}, which is switched off by {self.selection.setting} (unset that to use it)"
        if record.fault is not None:
            return f"plugin {record.title}, which failed; to see why: corejax plugins"
        return f"{home}, but the installed plugin {record.title} {lacks}"

    def whose_primitive(self, name: str, distribution: str | None = None) -> str:
        """Describe the plugin that has a missing primitive, which came from `distribution` if that is known."""
        prefix = name.partition(".")[0] if "." in name else None
        home = distribution or homes("primitives").get(name)
        advice = f", corejax-{prefix.replace('_', '-')} perhaps?" if prefix else "?"
        return self._describe_owner("primitives", name, home, prefix) or f"is the plugin that has it installed{advice}"

    def whose_method(self, name: str) -> str:
        """Describe the plugin that has a missing array method, as the end of a sentence; "" if it is not known."""
        home = homes("array_methods").get(name)
        return "" if home is None else f"; {self._describe_owner('array_methods', name, home)}"

    def _describe_owner(self, kind: str, name: str, home: str | None, plugin: str | None = None) -> str | None:
        """Describe the plugin that has a missing object; `plugin` is its likely name if `home` is not known."""
        for record in self.discover().values():
            if record.status not in ("off", "failed"):
                continue
            manifest = self.manifest(record).manifest
            known = manifest is not None and name in getattr(manifest, kind)
            if known or record.comes_from(home) or (home is None and plugin == record.name):
                return f"it is of {self.where(record, home)}"
        return None if home is None else f"it comes with {self.where(None, home)}"

    # -- exported names, read from manifests if these can replace loading --------------------------------------

    def manifest(self, record: PluginRecord) -> Found:
        """Return a plugin's manifest, or the reason why it cannot be used; import nothing."""
        result = self._manifests.get(record.name)
        if result is None:
            from corejax.plugins.manifest import find  # most processes load plugins and read no manifest

            result = self._manifests[record.name] = find(record, hookspecs.API_VERSION)
            if result.manifest is not None:
                record.offers |= {**result.manifest.names, **result.manifest.namespaces}
        return result

    def usable_manifests(self) -> dict[str, Manifest] | None:
        """Return the manifests of all selected plugins by name, or None if they cannot replace loading."""
        if self._usable is None:
            from corejax.plugins.manifest import usable

            self._usable = usable(self.discover().values(), self.manifest, self.reserved)
        return self._usable

    def offered(self) -> dict[str, str]:
        """Return the exported names, name -> plugin. Plugins are loaded only if their manifests do not suffice."""
        manifests = self.usable_manifests()
        if manifests is not None:
            return {name: plugin for plugin, m in manifests.items() for name in (*m.names, *m.namespaces)}
        self.load()
        return {name: record.name for name, (_, record) in (*self.names.items(), *self.namespaces.items())}

    def names_inside(self, namespace: str) -> list[str]:
        """Return the names that plugins export inside a namespace; import nothing."""
        prefix = f"{namespace}."
        names = (name.removeprefix(prefix) for name in self.offered() if name.startswith(prefix))
        return sorted(name for name in names if "." not in name)

    def load_for(self, name: str) -> None:
        """Load the plugins that export a name, or names inside it: one that `homes` lists, all if it does not suffice.

        Plugins with array methods are loaded with it, so that a missing attribute of an array needs no other plugin.
        """
        names = homes("names")
        home = names.get(name) or next((names[inner] for inner in names if inner.startswith(f"{name}.")), None)
        if known := any(record.comes_from(home) for record in self.discover().values() if record.status != "off"):
            self.load({home, *homes("array_methods").values()})
        if not (self._loader.exports.target(name) or self.has_inside(name)) and (
            known or name.partition(".")[0] in {each.partition(".")[0] for each in self.offered()}
        ):
            self.load()

    def has_inside(self, name: str) -> bool:
        """Return True if a loaded plugin exports a name inside `name`, as `experimental.checkify` in `experimental`."""
        home = homes("names").get(name)
        return any(
            n.startswith(f"{name}.") and (home is None or record.comes_from(home))
            for n, (_, record) in (*self.namespaces.items(), *self.names.items())
        )

    def exported(self, name: str) -> Any:
        """Return the object behind `corejax.NAME`, or None if no plugin exports it.

        Raises:
            PluginError: the object cannot be imported.
        """
        if self._loader.exports.target(name) is None:
            self.load_for(name)
        if (entry := self._loader.exports.target(name)) is None:
            return importlib.import_module(f"corejax.{name}") if self.has_inside(name) else None
        target, record = entry
        module, _, attribute = target.partition(":")
        try:
            if not attribute:
                return importlib.import_module(f"corejax.{name}")
            return getattr(importlib.import_module(module), attribute)
        except BaseException as error:
            raise_interrupt(error)
            raise failure(record, name, error) from error

    # -- late registrations ------------------------------------------------------------------------------------

    def exported_to_kernel(self, name: str) -> Any:
        """Return `exported(name)`; in a block of `isolated_plugins`, look at the plugins outside it as well."""
        value = self.exported(name)
        return value if value is not None or self.outside is None else self.outside.exported(name)

    def load_primitives(self) -> bool:
        """Let every plugin register its primitives; return True if something was loaded."""
        done = not self._loaded
        with self._loader.lock:
            for record in self._loaded_records():
                done |= self._loader.run_once(record, "primitives", record.hook.corejax_register_primitives)
        return done

    def load_rule_kinds(self) -> bool:
        """Import the registries of the rule kinds that plugins declared; return True if one was imported.

        If a registry cannot be imported, the other contributions of its plugin stay.
        """
        done = False
        self.load()
        with self._loader.lock:
            for kind, (target, record) in list(self.rule_kinds.items()):
                take = partial(import_registry, kind, target)
                done |= self._loader.run_once(record, ("registry", kind), take, f"{kind} rules")
        return done

    def load_rules(self, kind: str, primitive: Primitive | None = None) -> bool:
        """Let every plugin register its lazily loaded rules of a kind; return True if something was loaded.

        If the rules of a plugin cannot be loaded, its other contributions stay.

        Args:
            kind: name of the registry.
            primitive: the primitive without a rule, or None to load the rules of all. Only its plugin, and the one that
                `homes` lists for the kind, are loaded for it. Plugins with a hook that takes this argument are asked
                only for their own primitives, and may register the rules of one.
        """
        wanted = kind if primitive is None else (kind, primitive.name)
        if kind in self._done or wanted in self._done:
            return False
        done = not self._loaded
        owner = None if primitive is None else self.discover().get(primitive.provenance.plugin or "")
        needed = None if primitive is None else {homes("rule_kinds").get(kind), owner.key if owner else None}
        with self._loader.lock:
            for record in self._loaded_records(needed):
                key: tuple[str, ...] = ("rules", kind)
                only = None
                register = record.hook.corejax_register_rules
                by_primitive = any("primitive" in each.argnames for each in register.get_hookimpls())
                if primitive is not None and key not in record.done and by_primitive:
                    if primitive.provenance.plugin != record.name:
                        continue
                    key, only = (*key, primitive.name), primitive
                action = partial(register, kind=kind, primitive=only)
                done |= self._loader.run_once(record, key, action, f"{kind} rules")
            if all(record.status != "loading" for record in self.records.values()):
                self._done.add(wanted)
        return done

    def import_backend(self, name: str) -> Backend:
        """Import the object that a plugin provides as a backend; if it fails, the plugin's other contributions stay.

        Raises:
            PluginError: the backend cannot be imported, or could not be imported at an earlier call.
        """
        target, record = backends.provided[name]
        imported: list[Backend] = []
        what = f"backend {name!r}"
        with self._loader.lock:
            if what not in record.late_faults:
                self._loader.run(record, lambda: imported.append(import_backend(name, target)), what)
        if not imported:
            fault = record.late_faults[what]
            message = f"backend {name!r} comes from plugin {record.title}, which failed to load it: {error_text(fault)}"
            raise PluginError(message) from fault
        return imported[0]

    def add_cli_commands(self, group: object, name: str = "") -> None:
        """Let every plugin, or the one with the command `name` if `homes` lists it, add commands to a click group."""
        home = homes("commands").get(name)
        with self._loader.lock:
            for record in self._loaded_records(home and {home}):
                self._loader.add_commands(record, group)

    def _loaded_records(self, only: Collection[str | None] | None = None) -> Iterator[PluginRecord]:
        """Load, and yield the loaded plugins; a plugin may fail while the code of another runs, so check it late."""
        self.load(only)
        return (record for record in list(self.records.values()) if record.status == "loaded")
