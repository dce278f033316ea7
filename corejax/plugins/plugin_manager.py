"""Discovery and lazy loading of plugins, one by one: a plugin that fails contributes nothing and is recorded."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Any

import pluggy

from corejax import array_methods, source_info, tables, tracebacks
from corejax.backends import Backend, backends
from corejax.config import config
from corejax.deprecations import arguments_of, earlier_hooks
from corejax.errors import DuplicateRegistrationError, PluginError
from corejax.plugins import hooks, hookspecs, offers
from corejax.plugins.contributions import is_of_another, is_of_whole_module
from corejax.plugins.examples import Example
from corejax.plugins.locking import LoadLock
from corejax.plugins.manifest import Found, Manifest, find
from corejax.plugins.missing import failure
from corejax.plugins.records import PluginRecord, Selection, readable
from corejax.plugins.requirements import unmet
from corejax.plugins.rule_kinds import check_rule_kinds, import_registry
from corejax.provenance import Provenance
from corejax.restoring import run_within
from corejax.structural import structural
from corejax.tables import Owner, Table
from corejax.texts import error_text

GROUP = "corejax.plugins"

OnFault = Callable[[PluginRecord, BaseException], None]


def installed_entry_points() -> Iterator[PluginRecord]:
    """Entry points of the group in installed distributions; the first of a name on the path counts once.

    Of two plugins that offer the same, the later one is refused. So that this does not hang on the order in which
    a file system lists directories: first the distributions that names of the facade belong to (`KNOWN_HOMES`),
    then the others by name.
    """
    from importlib.metadata import entry_points

    try:
        records = [PluginRecord.of_entry_point(entry) for entry in entry_points(group=GROUP)]
    except Exception:  # one distribution's metadata is enough
        records = list(readable(GROUP))
    return iter(sorted(records, key=lambda record: (not record.at_home, record.name)))


class PluginManager:
    """The plugins of this process.

    Args:
        find: gives the records of what is installed; imports nothing.
        reserved: the facade's own names, which no plugin may export.

    Attributes:
        records: what was found, by entry point name.
        names: facade name -> (target, record).
        namespaces: facade namespace -> (module, record).
        rule_kinds: rule kind that a plugin adds -> (`module:registry`, record).
        selection: what `COREJAX_PLUGINS` selects, read at discovery.
    """

    def __init__(
        self,
        find: Callable[[], Iterable[PluginRecord]] = installed_entry_points,
        reserved: Collection[str] = (),
    ) -> None:
        self.records: dict[str, PluginRecord] = {}
        self.names: Table[str, tuple[str, PluginRecord]] = Table("name", of_hooks=True)
        self.namespaces: Table[str, tuple[str, PluginRecord]] = Table("namespace", of_hooks=True)
        self.rule_kinds: Table[str, tuple[str, PluginRecord]] = Table("declared rule kind", of_hooks=True)
        self.reserved = frozenset(reserved)
        self.selection = Selection(None)
        self._find = find
        self._pluggy = pluggy.PluginManager("corejax")
        self._pluggy.add_hookspecs(hookspecs)
        self._lock = LoadLock()
        self._manifests: dict[str, Found] = {}
        self._usable: dict[str, Manifest] | None = None
        self._usable_known = False
        self._discovered = False
        self._loaded = False
        self._primitives_done: set[str] = set()
        self._rules_done: set[tuple[str, str]] = set()
        self._kinds_done: set[str] = set()
        self._registries_done: set[tuple[str, str]] = set()

    # -- discovery and loading -----------------------------------------------------------------------------

    def discover(self) -> dict[str, PluginRecord]:
        """Find entry points; nothing is imported."""
        if not self._discovered:
            with self._lock:
                if not self._discovered:
                    self.selection = Selection.from_environment()
                    for record in self._find():
                        self._add(record)
                    self._discovered = True
        return self.records

    def _add(self, record: PluginRecord) -> None:
        if record.name not in self.selection:
            record.status = "off"
        earlier = self.records.get(record.name)
        if earlier is None:
            self.records[record.name] = record
            return
        if earlier.value == record.value and earlier.distribution == record.distribution:
            return  # the same distribution, seen twice on the path
        if record.status != "off":
            record.status = "failed"
            record.fault = PluginError(
                f"two distributions have a plugin named {record.name!r}: {earlier.title} and {record.title}; "
                "uninstall one"
            )
        self.records[f"{record.name} ({record.distribution})"] = record

    def manifest(self, record: PluginRecord) -> Found:
        """A plugin's manifest, or why there is none to use; nothing of it is imported."""
        found = self._manifests.get(record.name)
        if found is None:
            found = self._manifests[record.name] = find(record, hookspecs.API_VERSION)
            if found.manifest is not None:
                record.offers |= {**found.manifest.names, **found.manifest.namespaces}
        return found

    def manifests(self) -> dict[str, Manifest] | None:
        """Manifests of all selected plugins, by name, where none is loaded yet and they tell all that loading would."""
        if not self._usable_known:
            self._usable = offers.usable(self.discover().values(), self.manifest, self.reserved)
            self._usable_known = True
        return self._usable

    def offered(self) -> dict[str, str]:
        """What plugins export: name -> plugin. From manifests where they will do; else plugins are loaded."""
        manifests = self.manifests()
        if manifests is not None:
            return {name: plugin for plugin, m in manifests.items() for name in (*m.names, *m.namespaces)}
        self.load()
        return {name: record.name for name, (_, record) in (*self.names.items(), *self.namespaces.items())}

    def may_export(self, name: str) -> bool:
        """Whether some plugin exports a name or a namespace around it, as far as can be told without loading."""
        manifests = self.manifests()
        if manifests is None:
            return True
        parts = name.split(".")
        around = [".".join(parts[:i]) for i in range(1, len(parts) + 1)]
        return any(n in m.names or n in m.namespaces for m in manifests.values() for n in around)

    def load(self) -> None:
        """Load every selected plugin's entry point: its hooks, not yet its primitives.

        A plugin that, while it is loaded, asks for something of another one has that one loaded first.

        Raises:
            PluginError: strict plugins are set and one fails.
        """
        if self._loaded:
            return
        with self._lock:
            for record in list(self.discover().values()):
                if record.status == "found":
                    self._activate(record)
            self._loaded = all(record.status != "loading" for record in list(self.records.values()))

    def register(self, plugin: Any, name: str, version: str | None = None) -> PluginRecord:
        """Add a plugin object without an entry point (in tests and notebooks).

        Raises:
            PluginError: there is a plugin of that name; or strict plugins are set and it fails.
        """
        self.load()
        with self._lock:
            earlier = self.records.get(name)
            if earlier is not None and (earlier.status != "failed" or earlier.entry_point is not None):
                raise PluginError(f"a plugin named {name!r} exists: {earlier.title}")
            record = self.records[name] = PluginRecord.of_object(plugin, name, version)
            self._activate(record)
        return record

    def unregister(self, name: str) -> None:
        """Take back what a plugin object contributed; modules that were imported stay imported.

        Raises:
            KeyError: there is no plugin of that name.
        """
        with self._lock:
            self._withdraw(self.records.pop(name))

    def _activate(self, record: PluginRecord) -> None:
        def load() -> None:
            if self._pluggy.has_plugin(record.name):  # an interrupt came after it was registered
                self._pluggy.unregister(name=record.name)
            if record.plugin is None:
                record.plugin = record.entry_point.load()
            hooks.check_version(record.plugin)
            hooks.check_hooks(record.plugin, self._pluggy)
            try:
                self._pluggy.register(record.plugin, record.name)
            except pluggy.PluginValidationError:
                hooks.check_arguments(record.plugin, self._pluggy)  # says it better, if that is what is wrong
                raise
            for caller in self._pluggy.get_hookcallers(record.plugin) or ():
                [record.hooks[caller.name]] = (i for i in caller.get_hookimpls() if i.plugin is record.plugin)
            _declare_internal(record)
            self._collect(record)

        record.status = "loading"
        self._usable, self._usable_known = None, True  # from now on the tables tell more
        try:
            if self._guarded(record, load):
                record.status = "loaded"
                self._kinds_done.clear()
        finally:
            if record.status == "loading":  # interrupted
                self._begin_again(*record.contributions)
                record.hooks, record.status = {}, "found"

    def _collect(self, record: PluginRecord) -> None:
        """Take the plugin's exports, settings and structural operations."""
        by = Provenance(record.module)
        for table, hook in (
            (self.names, "corejax_export_names"),
            (self.namespaces, "corejax_export_namespaces"),
        ):
            exports = hooks.check_exports(hook, self.call(record, hook))
            record.offers |= exports
            for name, target in exports.items():
                self._check_free(name, record)
                table.register(name, (target, record), provenance=by)
        for kind, target in check_rule_kinds(self.call(record, "corejax_declare_rule_kinds")).items():
            if kind in self.rule_kinds:
                owner = self.rule_kinds[kind][1].title
                raise DuplicateRegistrationError(
                    f"rule kind {kind!r} is declared by plugin {owner}; plugin {record.title} declares a second one"
                )
            self.rule_kinds.register(kind, (target, record), provenance=by)
        for name, (default, parser) in (self.call(record, "corejax_declare_settings") or {}).items():
            config.add_setting(name, default, parser, by=by)
        for name, operation in (self.call(record, "corejax_provide_operations") or {}).items():
            structural.provide(name, operation, by=by)
        for name, method in (self.call(record, "corejax_provide_array_methods") or {}).items():
            array_methods.provide(name, method, by=by)
        for name, target in hooks.check_backends(self.call(record, "corejax_provide_backends")).items():
            backends.provide(name, target, record, by=by)

    def _check_free(self, name: str, record: PluginRecord) -> None:
        found = self.names.get(name) or self.namespaces.get(name)
        if found is None and name.partition(".")[0] not in self.reserved:
            return
        owner = f"plugin {found[1].title}" if found else "the kernel"
        raise DuplicateRegistrationError(
            f"corejax.{name} is exported by {owner}; plugin {record.title} exports a second one"
        )

    def call(self, record: PluginRecord, hook: str, **arguments: Any) -> Any:
        """What one plugin's implementation of a hook gives, None where it has none."""
        found = self._hook(record, hook, **arguments)
        return None if found is None else found()

    def _hook(self, record: PluginRecord, hook: str, **arguments: Any) -> Callable[[], Any] | None:
        """One plugin's implementation of a hook, with the arguments that it takes."""
        impl = next((record.hooks[name] for name in (hook, *earlier_hooks(hook)) if name in record.hooks), None)
        if impl is None:
            return None
        for old, entry in arguments_of(hook).items():
            arguments.setdefault(old, arguments.get(entry.use))
        return partial(impl.function, *(arguments[name] for name in impl.argnames))

    # -- faults --------------------------------------------------------------------------------------------

    def _guarded(self, record: PluginRecord, action: Callable[[], Any], on_fault: OnFault | None = None) -> bool:
        """Run a plugin's code; when it fails, what it has registered is taken back and the fault is kept.

        Args:
            record: the plugin.
            action: what to run; the lock is held.
            on_fault: what to do then; by default the plugin counts as failed.

        Returns:
            Whether it succeeded.
        """
        owner = Owner(record.name)
        record.contributions.append(owner)
        try:
            run_within([owner], action)
        except KeyboardInterrupt:
            self._begin_again(owner)
            raise
        except BaseException as error:
            self._drop(record, owner)
            (on_fault or self._fail)(record, error)
            if config.strict_plugins:
                raise PluginError(f"plugin {record.title} failed to load: {error_text(error)}") from error
            return False
        return True

    def _once(
        self, done: set[Any], key: Any, record: PluginRecord, action: Callable[[], Any], on_fault: OnFault | None = None
    ) -> None:
        """Run a plugin's code, the only time unless it is interrupted."""
        finished = False
        try:
            done.add(key)  # at once, for the code may ask for itself
            self._guarded(record, action, on_fault)
            finished = True
        except Exception:
            finished = True  # strict plugins: a fault is raised once
            raise
        finally:
            if not finished:
                done.discard(key)

    @staticmethod
    def _begin_again(*owners: Owner) -> None:
        """After an interrupt: what the plugin's hooks gave is taken back, and so is what half a module registered.

        What whole modules registered stays: Python keeps them, and will not run them again.
        """
        tables.drop(*owners, keep=is_of_whole_module)

    @staticmethod
    def _drop(record: PluginRecord, *owners: Owner) -> None:
        """Take back what the plugin contributed, but not what modules of other plugins did that it imported."""
        tables.drop(*owners, keep=partial(is_of_another, record.name))

    def _fail(self, record: PluginRecord, error: BaseException) -> None:
        self._withdraw(record)
        record.status = "failed"
        record.fault, record.unmet = error, unmet(record.entry_point)

    def _withdraw(self, record: PluginRecord) -> None:
        self._drop(record, *record.contributions)
        record.contributions.clear()
        record.hooks = {}
        self._primitives_done.discard(record.name)
        self._rules_done = {done for done in self._rules_done if done[0] != record.name}
        self._registries_done = {done for done in self._registries_done if done[0] != record.name}
        if self._pluggy.has_plugin(record.name):
            self._pluggy.unregister(name=record.name)

    def faults(self) -> list[PluginRecord]:
        """Plugins that failed."""
        return [record for record in self.records.values() if record.status == "failed"]

    def problems(self, kind: str | None = None) -> list[str]:
        """Everything that went wrong so far, one sentence each; of rule kinds, only `kind` if given."""
        return [problem for record in list(self.records.values()) for problem in record.problems(kind)]

    # -- what is needed ------------------------------------------------------------------------------------

    def load_primitives(self) -> bool:
        """Have every plugin register its primitives; True when something was loaded."""
        done = not self._loaded
        self.load()
        with self._lock:
            for record in list(self.records.values()):
                if record.status == "loaded" and record.name not in self._primitives_done:
                    hook = self._hook(record, "corejax_register_primitives")
                    if hook is not None:
                        self._once(self._primitives_done, record.name, record, hook)
                        done = True
        return done

    def load_rule_kinds(self) -> bool:
        """Import the registries of the rule kinds that plugins add; True when something was loaded.

        A plugin whose registry cannot be imported keeps what it contributed before.
        """
        self.load()
        done = False
        with self._lock:
            for kind, (target, record) in list(self.rule_kinds.items()):
                if (record.name, kind) not in self._registries_done:
                    take = partial(import_registry, kind, target)
                    self._once(self._registries_done, (record.name, kind), record, take, _rule_fault(kind))
                    done = True
        return done

    def load_rules(self, kind: str) -> bool:
        """Have every plugin register its lazily loaded rules of a kind; True when something was loaded.

        A plugin whose rules of the kind cannot be loaded keeps what it contributed before.
        """
        if kind in self._kinds_done:
            return False
        done = not self._loaded
        self.load()
        with self._lock:
            for record in list(self.records.values()):
                if record.status == "loaded" and (record.name, kind) not in self._rules_done:
                    hook = self._hook(record, "corejax_register_rules", kind=kind)
                    if hook is not None:
                        self._once(self._rules_done, (record.name, kind), record, hook, _rule_fault(kind))
                        done = True
            if self._loaded:
                self._kinds_done.add(kind)
        return done

    def import_backend(self, name: str) -> Backend:
        """The object that a plugin provides as a backend; a plugin that fails keeps what it contributed before.

        Raises:
            PluginError: it cannot be imported, now or at the first time.
        """
        target, record = backends.provided[name]
        found: list[Backend] = []
        with self._lock:
            if name not in record.backend_faults:

                def take() -> None:
                    found.append(imported_backend(name, target))

                def on_fault(record: PluginRecord, error: BaseException) -> None:
                    record.backend_faults[name] = error

                self._guarded(record, take, on_fault=on_fault)
        if not found:
            fault = record.backend_faults[name]
            raise PluginError(
                f"backend {name!r} comes from plugin {record.title}, which failed to load it: {error_text(fault)}"
            ) from fault
        return found[0]

    def add_cli_commands(self, group: Any) -> None:
        """Have every plugin add its commands to a click group."""
        self.load()
        with self._lock:
            for record in list(self.records.values()):
                hook = self._hook(record, "corejax_add_cli_commands", group=group)
                if record.status == "loaded" and hook:
                    self._guarded(record, partial(_add_commands, group.commands, hook))

    def examples(self, primitive: str) -> list[Example]:
        """What the plugins give as applications of a primitive.

        Raises:
            PluginError: a plugin fails to give them.
        """
        self.load()
        found: list[Example] = []
        for record in list(self.records.values()):
            if record.status == "loaded":
                try:
                    found += self.call(record, "corejax_provide_examples", primitive=primitive) or ()
                except KeyboardInterrupt:
                    raise
                except BaseException as error:
                    raise PluginError(
                        f"plugin {record.title} fails to give examples of {primitive!r}: {error_text(error)}"
                    ) from error
        return found

    def checks(self) -> dict[str, tuple[Any, str]]:
        """Checks that plugins provide: name -> the object, and whose it is.

        Raises:
            PluginError: a plugin fails to give them, or two give one of the same name.
        """
        self.load()
        found: dict[str, tuple[Any, str]] = {}
        for record in [r for r in list(self.records.values()) if r.status == "loaded"]:
            try:
                for name, target in (self.call(record, "corejax_provide_checks") or {}).items():
                    module, _, attribute = target.partition(":")
                    if name in found:
                        raise PluginError(f"plugin {found[name][1]} has a check {name!r} too")
                    found[name] = getattr(importlib.import_module(module), attribute), record.name
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                raise PluginError(f"plugin {record.title} fails to give checks: {error_text(error)}") from error
        return found

    def exported(self, name: str) -> Any:
        """The object behind `corejax.NAME`, or None if no plugin exports it.

        Raises:
            PluginError: the plugin that exports it fails when the object is imported.
        """
        if not self.may_export(name):
            return None
        self.load()
        target, record = self.names.get(name) or self.namespaces.get(name) or (None, None)
        if target is None or record is None:
            return None
        module, _, attribute = target.partition(":")
        try:
            if not attribute:
                return importlib.import_module(f"corejax.{name}")
            return getattr(importlib.import_module(module), attribute)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise failure(record, name, error) from error

    def owner_of(self, module: str) -> tuple[str, str | None, str | None] | None:
        """Name, version and distribution of the plugin that a module belongs to."""
        best: tuple[int, PluginRecord] | None = None
        for record in self.discover().values():
            for root in (record.module, record.package):
                inside = module == root or module.startswith(root + ".")
                if inside and (best is None or len(root) > best[0]):
                    best = len(root), record
        return None if best is None else (best[1].name, best[1].version, best[1].distribution)


def _add_commands(commands: dict[str, Any], hook: Callable[[], Any]) -> None:
    """Run a plugin's hook that adds commands; what it adds is gone when the plugin fails, now or later."""
    before, added = set(commands), set[str]()
    tables.when_dropped(lambda: [commands.pop(name, None) for name in added])
    try:
        hook()
    finally:
        added |= commands.keys() - before


def _rule_fault(kind: str) -> OnFault:
    """Record a fault in the rules of one kind; what the plugin contributed before stays."""

    def on_fault(record: PluginRecord, error: BaseException) -> None:
        record.rule_faults[kind] = error

    return on_fault


def imported_backend(name: str, target: str) -> Backend:
    """The backend at a place.

    Raises:
        PluginError: there is none.
    """
    module, _, attribute = target.partition(":")
    found = getattr(importlib.import_module(module), attribute, None)
    if not isinstance(found, Backend):
        given = "there is nothing of that name" if found is None else f"it is {found!r}"
        raise PluginError(
            f"backend {name!r} is provided as {target}, which has to be a corejax.extend.Backend; {given}"
        )
    return found


def _declare_internal(record: PluginRecord) -> None:
    """Have frames in the plugin's package count as library code, not as the user's lines.

    Tracebacks show those of plugins that are not first-party: their rules are somebody's code.
    """
    package = sys.modules.get(record.package) if record.entry_point is not None else None
    for directory in getattr(package, "__path__", ()):
        source_info.register_internal(os.fspath(directory))
        if record.at_home:
            tracebacks.leave_out(os.fspath(directory))
