"""Running plugins' code, one plugin at a time: what one that raises has registered is taken back.

All that is undone is undone here; other modules of this room never look at journals and snapshots.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any

from corejax import source_info, tracebacks
from corejax.config import config
from corejax.errors import PluginError
from corejax.journal import Change
from corejax.plugins._exports import Exports
from corejax.plugins._hooks import hooks_of
from corejax.plugins._load_lock import LoadLock
from corejax.plugins._records import PluginRecord
from corejax.plugins.contributions import PlainStore, Snapshot, is_of_whole_module, table_store, undo
from corejax.texts import error_text

OnFault = Callable[[PluginRecord, BaseException], None]


class Loader:
    """Loads plugins and calls their hooks.

    Args:
        reserved: the facade's own names, which no plugin may export.

    Attributes:
        lock: held while a plugin's code runs.
        exports: what loaded plugins export and declare.
        open: of the plugin calls that are running, what they change; outermost first.
    """

    def __init__(self, reserved: Collection[str]) -> None:
        self.lock = LoadLock()
        self.exports = Exports(reserved)
        self.open: list[Snapshot] = []

    def load(self, record: PluginRecord) -> None:
        """Import a plugin and take what its hooks give at once; the lock is held."""

        def action() -> None:
            if record.plugin is None:
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
                given, record.contributions, record.hook = record.contributions, [], None
                _begin_again(record, given)
                record.status = "found"

    def run(
        self, record: PluginRecord, action: Callable[[], Any], *extra: PlainStore, on_fault: OnFault | None = None
    ) -> bool:
        """Run a plugin's code; when it fails, what it has registered is taken back and the fault is kept.

        Args:
            record: the plugin.
            action: what to run; the lock is held.
            extra: tables that the action fills, besides the kernel's.
            on_fault: what to do then; by default the plugin counts as failed.

        Returns:
            Whether it succeeded.

        Raises:
            PluginError: it failed, and strict plugins are set.
        """
        snapshot = Snapshot(extra, threading.get_ident())
        touched = list(record.contributions)
        try:
            try:
                self.open.append(snapshot)
                return self._attempt(record, action, snapshot, on_fault or fail)
            finally:
                self._close(snapshot, record, touched)
        finally:  # again, for an interrupt may have come in between
            self._close(snapshot, record, touched)

    def _attempt(self, record: PluginRecord, action: Callable[[], Any], snapshot: Snapshot, on_fault: OnFault) -> bool:
        try:
            action()
            record.contributions += snapshot.changes()
        except KeyboardInterrupt:
            _begin_again(record, snapshot.changes())
            raise
        except BaseException as error:
            undo(snapshot.changes())
            on_fault(record, error)
            if config.strict_plugins:
                raise PluginError(f"plugin {record.title} failed to load: {error_text(error)}") from error
            return False
        return True

    def _close(self, snapshot: Snapshot, record: PluginRecord, touched: Sequence[Change]) -> None:
        """The plugin's code has run: what it contributed is nothing that the calls around it have to answer for."""
        if snapshot in self.open:
            self.open.remove(snapshot)
        snapshot.close()
        for outer in self.open:
            outer.absorb([*touched, *record.contributions])

    def run_once(
        self, record: PluginRecord, what: Any, action: Callable[[], Any], on_fault: OnFault | None = None
    ) -> bool:
        """Run a plugin's code, the only time unless it is interrupted; `what` is its key in `record.done`.

        Returns:
            Whether it ran: False where it has run before.
        """
        if what in record.done:
            return False
        finished = False
        try:
            record.done.add(what)  # at once, for the code may ask for itself
            self.run(record, action, on_fault=on_fault)
            finished = True
        except Exception:
            finished = True  # strict plugins: a fault is raised once
            raise
        finally:
            if not finished:
                record.done.discard(what)
        return True

    def add_commands(self, record: PluginRecord, group: Any) -> None:
        """Have a plugin add its commands to a click group; the lock is held."""
        commands = table_store("commands", group.commands)
        self.run(record, lambda: record.hook.corejax_add_cli_commands(group=group), commands)


def _begin_again(record: PluginRecord, changes: Sequence[Change]) -> None:
    """After an interrupt: what the plugin's hooks gave is taken back, and so is what half a module registered.

    What whole modules registered stays: Python keeps them, and will not run them again.
    """
    kept = [change for change in changes if is_of_whole_module(change)]
    undo([change for change in changes if not is_of_whole_module(change)])
    record.contributions += kept


def fail(record: PluginRecord, error: BaseException) -> None:
    """A plugin failed: it contributes nothing, and keeps the fault."""
    from corejax.plugins._requirements import unmet  # needed for a fault only

    withdraw(record)
    record.status = "failed"
    record.fault, record.unmet = error, unmet(record.entry_point)


def fail_rules(kind: str) -> OnFault:
    """A plugin's rules of one kind failed: the fault is kept, and what the plugin contributed before stays."""

    def on_fault(record: PluginRecord, error: BaseException) -> None:
        record.rule_faults[kind] = error

    return on_fault


def withdraw(record: PluginRecord) -> None:
    """Take back what a plugin contributed; modules that were imported stay imported."""
    undo(record.contributions)
    record.contributions = []
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
            tracebacks.leave_out(os.fspath(directory))
