"""Running plugins' code, one plugin at a time: what one that raises has registered is taken back.

What it writes into tables has an owner of its own for each call (`corejax.base.tables`), and is dropped with that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from corejax.base import tables
from corejax.base.restoring import raise_interrupt, run_within
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
        exports: what loaded plugins export and declare.
    """

    def __init__(self, reserved: Collection[str]) -> None:
        self.lock = LoadLock()
        self.exports = Exports(reserved)

    def load(self, record: PluginRecord) -> None:
        """Import a plugin and take what its hooks give at once; the lock is held."""

        def action() -> None:
            if record.plugin is None and record.entry_point is not None:
                record.plugin = record.entry_point.load()
            record.hook = hooks_of(record.plugin, record.name)
            _declare_internal(record)
            self.exports.take(record)

        record.status = "loading"
        try:
            if self.run(record, action):
                record.status = "loaded"
        finally:
            if record.status == "loading":  # interrupted
                _begin_again(*record.contributions)
                record.hook, record.status = None, "found"

    def run(self, record: PluginRecord, action: Callable[[], Any], late: str = "") -> bool:
        """Run a plugin's code with the lock held, and return whether it succeeded.

        If it fails, what it has registered is taken back, and the fault is kept. The plugin fails with it, unless
        `late` says what was loaded late: then what the plugin contributed before stays.

        Raises:
            PluginError: it failed, and strict plugins are set.
        """
        owner = Owner(record.name)
        record.contributions.append(owner)
        try:
            run_within([owner], action)
        except BaseException as error:
            try:
                raise_interrupt(error)
            except KeyboardInterrupt:
                _begin_again(owner)
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

    def run_once(self, record: PluginRecord, what: Any, action: Callable[[], Any], late: str = "") -> bool:
        """Run a plugin's code unless it has run before (`what` is its key in `record.done`); return whether it ran."""
        if what in record.done:
            return False
        try:
            record.done.add(what)  # at once, for the code may ask for itself
            self.run(record, action, late)
        except BaseException as error:
            if not isinstance(error, Exception):  # an interrupt; strict plugins raise a fault once
                record.done.discard(what)
            raise
        return True

    def add_commands(self, record: PluginRecord, group: Any) -> None:
        """Have a plugin add its commands to a click group; the lock is held."""
        commands = group.commands
        before, added = set(commands), set[str]()

        def add() -> None:
            tables.when_dropped(lambda: [commands.pop(name, None) for name in added])
            try:
                record.hook.corejax_add_cli_commands(group=group)
            finally:
                added.update(commands.keys() - before)

        self.run(record, add)


def _begin_again(*owners: Owner) -> None:
    """After an interrupt: what the plugin's hooks gave is taken back, and so is what half a module registered.

    What whole modules registered stays: Python keeps them, and will not run them again.
    """
    tables.drop(*owners, keep=_is_of_whole_module)


def _drop(record: PluginRecord, *owners: Owner) -> None:
    """Take back what the plugin contributed, but not what modules of other plugins did that it was first to import."""
    tables.drop(*owners, keep=partial(_is_of_another, record.name))


def _is_of_whole_module(table: Table[Any, Any], entry: Entry) -> bool:
    """Whether a module registered it that has been imported to its end, so that it will not be registered again."""
    found = None if table.of_hooks else sys.modules.get(entry.provenance.module)
    return found is not None and not getattr(found.__spec__, "_initializing", False)


def _is_of_another(plugin: str, table: Table[Any, Any], entry: Entry) -> bool:
    return _is_of_whole_module(table, entry) and entry.provenance.plugin not in (None, plugin)


def _fail(record: PluginRecord, error: BaseException) -> None:
    """A plugin failed: it contributes nothing, and keeps the fault."""
    from corejax.plugins._requirements import unmet  # needed for a fault only

    withdraw(record)
    record.status = "failed"
    record.fault, record.unmet = error, unmet(record.entry_point)


def withdraw(record: PluginRecord) -> None:
    """Take back what a plugin contributed; modules that were imported stay imported."""
    _drop(record, *record.contributions)
    record.contributions.clear()
    record.hook = None
    record.done = set()


def _declare_internal(record: PluginRecord) -> None:
    """Have frames in the plugin's package count as library code, not as the user's lines.

    Tracebacks show those of plugins that are not first-party: their rules are somebody's code.
    """
    package = sys.modules.get(record.package) if record.entry_point is not None else None
    for directory in getattr(package, "__path__", ()):
        source_info.register_internal(os.fspath(directory))
        if record.at_home:
            leave_out(os.fspath(directory))
