"""Run the code of plugins, one plugin at a time, and undo the registrations of a plugin that raises.

Every entry that a call of a plugin's code writes into a table is marked with the call's own `Owner`; undoing the call
drops these entries.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from corejax.base import tables
from corejax.base.restoring import raise_interrupt, run_within
from corejax.base.stubs import import_with_slots
from corejax.base.tables import Entry, Owner, Table
from corejax.base.texts import error_text
from corejax.errors import PluginError
from corejax.messages import source_info
from corejax.messages.tracebacks import leave_out
from corejax.plugins._exports import Exports
from corejax.plugins._hooks import hooks_of
from corejax.plugins._load_lock import LoadLock
from corejax.plugins._records import PluginRecord
from corejax.settings.config import config


class Loader:
    """Loads plugins and calls their hooks; no plugin may export `reserved` names.

    Attributes:
        lock: held while a plugin's code runs.
        exports: the exports and declarations of loaded plugins.
    """

    def __init__(self, reserved: Collection[str]) -> None:
        self.lock = LoadLock()
        self.exports = Exports(reserved)

    def load(self, record: PluginRecord) -> None:
        """Import a plugin and register the results of its hooks. The caller holds the lock."""

        def action() -> None:
            if record.plugin is None and record.dist is not None:
                record.plugin = record.load()
            record.hook = hooks_of(record.plugin, record.name)
            _declare_internal(record)
            self.exports.take(record)

        if not record.at_home:
            import_with_slots("corejax.core.primitive", "Primitive")  # may fail, and import kernel modules directly
        record.status = "loading"
        try:
            if self.run(record, action):
                record.status = "loaded"
        finally:
            if record.status == "loading":  # interrupted
                _undo_interrupted(*record.contributions)
                record.hook, record.status = None, "found"

    def run(self, record: PluginRecord, action: Callable[[], object], late: str = "") -> bool:
        """Run a plugin's code with the lock held, and return True if it succeeded.

        If it fails, its registrations are undone and the fault is recorded. The whole plugin then fails, unless `late`
        names what was loaded late ("vmap rules").

        Raises:
            PluginError: the code failed, and `config.strict_plugins` is set.
        """
        owner = Owner(record.name)
        record.contributions.append(owner)
        try:
            run_within([owner], action)
        except BaseException as error:
            try:
                raise_interrupt(error)
            except KeyboardInterrupt:
                _undo_interrupted(owner)
                raise
            _drop(record, owner)
            if late:
                record.late_faults[late] = error
            else:
                _fail(record, error)
            if config.strict_plugins:
                raise PluginError(f"plugin {record.title} failed to load: {error_text(error)}") from error
            return False
        return True

    def run_once(self, record: PluginRecord, what: object, action: Callable[[], object], late: str = "") -> bool:
        """Run a plugin's code unless its key `what` is in `record.done`; return True if it ran."""
        if what in record.done:
            return False
        try:
            record.done.add(what)  # before the call, because the code may request itself again
            self.run(record, action, late)
        except BaseException as error:
            if not isinstance(error, Exception):  # an interrupt: run the code again at the next request
                record.done.discard(what)
            raise
        return True

    def add_commands(self, record: PluginRecord, group: Any) -> None:
        """Let a plugin add its commands to a click group. The caller holds the lock."""
        commands = group.commands
        before, added = set(commands), set[str]()

        def add() -> None:
            tables.when_dropped(lambda: [commands.pop(name, None) for name in added])
            try:
                record.hook.corejax_add_cli_commands(group=group)
            finally:
                added.update(commands.keys() - before)

        self.run(record, add)


def _undo_interrupted(*owners: Owner) -> None:
    """Undo the results of hooks and the registrations of half-imported modules, after an interrupt.

    The registrations of completely imported modules stay: Python will not run those modules again.
    """
    tables.drop(*owners, keep=_is_of_complete_module)


def _drop(record: PluginRecord, *owners: Owner) -> None:
    """Drop the plugin's contributions, but keep those of other plugins' modules that it was the first to import."""
    tables.drop(*owners, keep=partial(_is_of_other_plugin, record.name))


def _is_of_complete_module(table: Table[Any, Any], entry: Entry) -> bool:
    """Return True if a completely imported module made the entry; the module will not register it again."""
    module = None if table.of_hooks else sys.modules.get(entry.provenance.module)
    return module is not None and not getattr(module.__spec__, "_initializing", False)


def _is_of_other_plugin(plugin: str, table: Table[Any, Any], entry: Entry) -> bool:
    return _is_of_complete_module(table, entry) and entry.provenance.plugin not in (None, plugin)


def _fail(record: PluginRecord, error: BaseException) -> None:
    """Withdraw a plugin that failed, and record the fault."""
    from corejax.plugins._requirements import unmet_requirements  # needed for a fault only

    withdraw(record)
    record.status = "failed"
    record.fault, record.unmet = error, unmet_requirements(record.dist)


def withdraw(record: PluginRecord) -> None:
    """Undo a plugin's contributions; modules that were imported stay imported."""
    _drop(record, *record.contributions)
    record.contributions.clear()
    record.hook = None
    record.done = set()


def _declare_internal(record: PluginRecord) -> None:
    """Declare the plugin's package as library code; tracebacks leave out frames of first-party plugins only."""
    package = sys.modules.get(record.package) if record.dist is not None else None
    for directory in getattr(package, "__path__", ()):
        source_info.register_internal(os.fspath(directory))
        if record.at_home:
            leave_out(os.fspath(directory))
