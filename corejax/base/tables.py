"""Tables that plugins contribute to: each entry has an owner and a provenance, and none is replaced silently.

A `Table` is a dict, so it is read as fast as one. Beside the value in force it keeps all entries of a key. Therefore an
override can be undone, in whichever order the two entries came, and all entries of an `Owner` (the code of a plugin
while it runs) can be dropped together.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import partial
from typing import Any, Generic, TypeVar

from corejax.base.provenance import Provenance
from corejax.base.restoring import Restoring
from corejax.errors import DuplicateRegistrationError

__corejax_registers_for_caller__ = True


class Owner(Restoring):
    """The owner of the entries that this thread writes to tables in a `with` block, such as a plugin's code.

    Blocks nest; the innermost one owns new entries. Each thread has its own owners.

    Attributes:
        name: the plugin's name.
        dropped: whether the entries were removed.
    """

    __slots__ = ("_outer", "_undo", "dropped", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.dropped = False
        self._outer: Owner | None = None
        self._undo: list[Callable[[], object]] = []

    def __enter__(self) -> Owner:
        self._outer = _thread.owner
        _thread.owner = self
        return self

    def restore(self) -> None:
        """Make the outer block the owner again."""
        if _thread.owner is self:
            _thread.owner = self._outer

    def __repr__(self) -> str:
        return f"<owner {self.name}>"


class _Thread(threading.local):
    owner: Owner | None = None


_thread = _Thread()
_lock = threading.Lock()
_serial = itertools.count()
_tables: list[weakref.ref[Table[Any, Any]]] = []


def when_dropped(undo: Callable[[], object]) -> None:
    """Register a function to call when the entries of the current owner, if there is one, are dropped."""
    if _thread.owner is not None:
        _thread.owner._undo.append(undo)


@dataclasses.dataclass(eq=False, slots=True)
class Entry:
    """A value that was registered for a key.

    Attributes:
        value: the value.
        provenance: the module, file and line that contributed it.
        override: whether the entry replaces another one, whichever of the two comes first.
        owner: the plugin that wrote the entry, or None.
        serial: number in the order of registration; the latest override is in force.
    """

    value: Any
    provenance: Provenance
    override: bool = False
    owner: Owner | None = None
    serial: int = 0


Entries = tuple[Entry, ...]  # the entries of one key: overrides, the latest first, then the entry that they replace
Refusal = Callable[[Any, Entry, Entry], str]


K = TypeVar("K")
V = TypeVar("V")


class Table(dict[K, V], Generic[K, V]):
    """A dict of contributions of plugins.

    `table[key] = value` is `register(key, value)`; `del table[key]` removes all entries of the key.

    Args:
        name: noun for an entry, for messages ("array method").
        initial: the kernel's own entries.
        changed: called with a key and its value in force, or None, after a change.
        refusal: `(key, earlier, duplicate) -> message` for a duplicate registration.
        of_hooks: whether entries come from plugins' hooks, and not from modules that register while they are imported.
    """

    def __init__(
        self,
        name: str,
        initial: Mapping[K, V] | None = None,
        *,
        changed: Callable[[Any, Any], None] | None = None,
        refusal: Refusal | None = None,
        of_hooks: bool = False,
    ) -> None:
        super().__init__(initial or {})
        self.name = name
        self.of_hooks = of_hooks
        self._changed = changed
        self._refusal = refusal or self._refused
        where = Provenance.of_frame(sys._getframe(1))
        self._entries: dict[K, Entries] = {key: (Entry(value, where),) for key, value in self.items()}
        _tables.append(weakref.ref(self, _tables.remove))

    # -- writing -------------------------------------------------------------------------------------------------------

    def register(self, key: K, value: V, *, override: bool = False, provenance: Provenance | None = None) -> None:
        """Add an entry. The same definition run again (a reloaded module, a notebook's cell) replaces the earlier one.

        Args:
            key: the key.
            value: the value.
            override: replace another entry on purpose, an existing one or one that comes later.
            provenance: place of the definition; by default that of the value if it is a function, else the caller.

        Raises:
            DuplicateRegistrationError: the key has an entry; the message names both provenances.
        """
        entry = Entry(value, provenance or Provenance.of(value), override, _thread.owner, next(_serial))
        after = None
        try:
            with _lock:
                before = self._entries.get(key, ())
                after = _with(before, entry)
                if after is not None:
                    self._write(key, before, after)
            if after is not None:
                self.follow(key)
        except BaseException:  # `changed` refuses the entry, or an interrupt
            if after is not None:
                self._put(key, before)
                self.follow(key)
            raise
        if after is None:
            raise DuplicateRegistrationError(self._refusal(key, before[-1], entry))

    def remove(self, key: K) -> None:
        """Remove the entry in force; the entry that it replaced, if any, is in force again.

        Raises:
            KeyError: the key has no entry.
        """
        with _lock:
            before = self._entries[key]
            self._write(key, before, before[1:])
        self.follow(key)

    def follow(self, key: K) -> None:
        """Put the first entry of a key in force, and call `changed`."""
        entries = self._entries.get(key)
        if entries is None:
            super().pop(key, None)
        else:
            super().__setitem__(key, entries[0].value)
        if self._changed is not None:
            self._changed(key, entries[0].value if entries is not None else None)

    def _write(self, key: K, before: Entries, after: Entries) -> None:
        owner = _thread.owner
        if owner is not None and before:
            owner._undo += (partial(self._put_back, key, entry) for entry in before if entry not in after)
        self._put(key, after)

    def _put(self, key: K, entries: Entries) -> None:
        if entries:
            self._entries[key] = entries
        else:
            self._entries.pop(key, None)

    def _put_back(self, key: K, entry: Entry) -> None:
        """Undo a removal. If another entry has replaced it meanwhile, undo the removal when that entry is dropped."""
        if entry.owner is not None and entry.owner.dropped:
            return
        with _lock:
            entries = self._entries.get(key, ())
            replacement = next((other for other in entries if _in_place_of(entry, other)), None)
            if replacement is None:
                self._put(key, _ordered((*entries, entry)))
            elif replacement.owner is not None:
                replacement.owner._undo.append(partial(self._put_back, key, entry))
        self.follow(key)

    def _refused(self, key: K, earlier: Entry, duplicate: Entry) -> str:
        return f"{self.name} {key!r} is provided by {earlier.provenance}; {duplicate.provenance} provides a second one"

    # -- reading, beyond the methods of a dict -------------------------------------------------------------------------

    def entries(self, key: K) -> Entries:
        """Return all entries of a key, the one in force first."""
        return self._entries.get(key, ())

    def provenance(self, key: K) -> Provenance:
        """Return the provenance of the entry in force.

        Raises:
            KeyError: the key has no entry.
        """
        return self._entries[key][0].provenance

    # -- the writing methods of a dict ---------------------------------------------------------------------------------

    def __setitem__(self, key: K, value: V) -> None:
        self.register(key, value)

    def __delitem__(self, key: K) -> None:
        with _lock:
            self._write(key, self._entries[key], ())
        self.follow(key)

    clear = MutableMapping.clear

    def pop(self, key: K, *default: Any) -> Any:
        """Remove a key and return its value, as `dict.pop` does."""
        if default and key not in self:
            return default[0]
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[K, V]:
        """Remove the last key and return it with its value, as `dict.popitem` does."""
        key = next(reversed(self), None)
        if key is None:
            raise KeyError(f"no {self.name}")
        return key, self.pop(key)

    def setdefault(self, key: K, default: Any = None) -> Any:
        """Return a value, which is registered if the key is missing, as `dict.setdefault` does."""
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *others: Any, **named: Any) -> None:
        """Register all items of a mapping, as `dict.update` does."""
        for key, value in dict(*others, **named).items():
            self[key] = value

    def __ior__(self, other: object) -> Table[K, V]:  # type: ignore[misc, override]  # as `dict.__ior__` for tables
        self.update(other)
        return self


def _with(entries: Entries, new: Entry) -> Entries | None:
    """Add an entry at its place in the order; return None for a duplicate without `override`."""
    if not entries:
        return (new,)
    earlier = next((entry for entry in entries if _in_place_of(new, entry)), None)
    if earlier is None:
        return _ordered((*entries, new))
    if not new.provenance.redefines(earlier.provenance):
        return None
    again = dataclasses.replace(new, serial=earlier.serial)
    return tuple(again if entry is earlier else entry for entry in entries)


def _in_place_of(new: Entry, other: Entry) -> bool:
    """Return True if both entries have one place: neither is an override, or both are the same definition."""
    if not new.override and not other.override:
        return True
    return new.override and other.override and new.provenance.redefines(other.provenance)


def _ordered(entries: Entries) -> Entries:
    return tuple(sorted(entries, key=lambda entry: (not entry.override, -entry.serial)))


# -- all tables together -----------------------------------------------------------------------------------------------


def all_tables() -> Iterator[Table[Any, Any]]:
    """Yield every table."""
    yield from (table for reference in list(_tables) if (table := reference()) is not None)


def drop(*owners: Owner, keep: Callable[[Table[Any, Any], Entry], bool] = lambda table, entry: False) -> None:
    """Remove the entries of owners from every table, except those to `keep`, and restore entries that they removed."""
    for owner in owners:
        owner.dropped = True
    for table in all_tables():
        for key, entries in list(table._entries.items()):
            dropped = {entry for entry in entries if entry.owner in owners and not keep(table, entry)}
            if dropped:
                with _lock:
                    table._put(key, tuple(entry for entry in table.entries(key) if entry not in dropped))
                table.follow(key)
    for owner in reversed(owners):
        while owner._undo:
            owner._undo.pop()()


Snapshot = list[tuple[Table[Any, Any], dict[Any, Entries]]]


def snapshot(*tables: Table[Any, Any]) -> Snapshot:
    """Return a copy of the entries of tables, by default of all, for `restore`."""
    return [(table, dict(table._entries)) for table in tables or all_tables()]


def restore(before: Snapshot) -> None:
    """Restore the entries of tables that `snapshot` copied."""
    for table, entries in before:
        for key in {**entries, **table._entries}:
            if entries.get(key) != table._entries.get(key):
                with _lock:
                    table._put(key, entries.get(key, ()))
                table.follow(key)
