"""What plugins have put into the kernel's tables, kept so that it can be taken out again.

A plugin that fails contributes nothing: neither what it had registered before it raised, nor what it had
registered earlier. Other plugins' entries, made meanwhile, stay.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from corejax import array_methods
from corejax.backends import backends
from corejax.config import config
from corejax.interpreters.rematerialization import recompute_rules
from corejax.ir.dce import dce_rules
from corejax.ir.values import param_types
from corejax.journal import Change, Journal, Table, same
from corejax.primitive import primitives
from corejax.rules import RuleRegistry, registries
from corejax.structural import structural


class PlainStore:
    """A table without a journal: small, and copied whole.

    Args:
        name: what is in it.
        read: gives the entries.
        put: sets one entry, or removes it where the entry is None.
    """

    def __init__(self, name: str, read: Callable[[], Mapping[Any, Any]], put: Callable[[Any, Any], None]) -> None:
        self.name = name
        self.read = read
        self.put = put

    def entry(self, key: Any) -> Any:
        """What is there now, or None."""
        return self.read().get(key)


def table_store(name: str, table: dict[Any, Any]) -> PlainStore:
    """A plain dict as a store."""

    def put(key: Any, entry: Any) -> None:
        if entry is None:
            table.pop(key, None)
        else:
            table[key] = entry

    return PlainStore(name, lambda: table, put)


def _derivations(registry: RuleRegistry) -> PlainStore:
    def put(key: int, entry: Any) -> None:
        registry.derivations[:] = [d for d in registry.derivations if id(d) != key]
        if entry is not None:
            registry.derivations.append(entry)

    return PlainStore(f"derivations:{registry.kind}", lambda: {id(d): d for d in registry.derivations}, put)


class Snapshot:
    """The entries of every store at one moment, as far as they change afterwards.

    Args:
        extra: plain tables besides the kernel's own.
        thread: identifier of the thread whose writing counts; None: every thread's.
    """

    def __init__(self, extra: tuple[PlainStore, ...] = (), thread: int | None = None) -> None:
        plain = (*(_derivations(registry) for registry in registries.values()), *extra)
        self._plain = {store.name: (store, dict(store.read())) for store in plain}
        self._journal = Journal(thread)

    def changes(self) -> list[Change]:
        """What differs now."""
        found = self._journal.changes()
        for store, before in self._plain.values():
            now = store.read()
            if before.keys() == now.keys() and all(same(before[key], now[key]) for key in now):
                continue
            for key in {**before, **now}:
                if not same(before.get(key), now.get(key)):
                    found.append(Change(store, key, before.get(key), now.get(key)))
        return found

    def absorb(self, changes: list[Change]) -> None:
        """Take entries as they are now for part of this snapshot: they are somebody else's."""
        self._journal.absorb(change for change in changes if isinstance(change.store, Table))
        for change in changes:
            if change.store.name in self._plain:
                _, before = self._plain[change.store.name]
                now = change.store.entry(change.key)
                if now is None:
                    before.pop(change.key, None)
                else:
                    before[change.key] = now

    def close(self) -> None:
        """Take no more notice of what changes."""
        self._journal.close()


def undo(changes: list[Change]) -> None:
    """Take changes back, the last one first; entries that somebody replaced since then stay."""
    for change in reversed(changes):
        if same(change.store.entry(change.key), change.new):
            change.store.put(change.key, change.old)


# What plugins' hooks give, and not what their modules register while they are imported.
_OF_HOOKS = {"names", "namespaces", "rule kinds", "settings", "operations", "array methods", "backends"}


def is_of_whole_module(change: Change) -> bool:
    """Whether a module registered it that has been imported to its end, so that it will not be registered again."""
    if change.store.name in _OF_HOOKS:
        return False
    made = getattr(change.new, "make", change.new)  # a derivation is where its function is
    module = getattr(getattr(made, "provenance", None), "module", None) or getattr(made, "__module__", None)
    found = sys.modules.get(module) if isinstance(module, str) else None
    return found is not None and not getattr(found.__spec__, "_initializing", False)


def entries() -> dict[str, dict[Any, Any]]:
    """Everything that is in the kernel's tables, to compare."""
    return {store.name: dict(found) for store, found in _all_entries()}


def _all_entries() -> Iterator[tuple[Any, dict[Any, Any]]]:
    registered = list(registries.values())
    tables: list[Any] = [primitives, registries, dce_rules, recompute_rules, param_types]
    tables += [array_methods.provenance, structural.owners, backends.provided]
    for table in (*tables, config._parsers, *(registry._rules for registry in registered)):
        yield table, {key: table.entry(key) for key in table}
    for registry in registered:
        store = _derivations(registry)
        yield store, dict(store.read())
