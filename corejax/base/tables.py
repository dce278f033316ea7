"""Tables that plugins contribute to: each entry has an owner and a provenance, and none is replaced in silence.

A `Table` is a dict: reading it costs what reading a dict costs. Beside each value in force it keeps the entries that
were given for the key, so that an override can be taken back, in whichever order the two came, and so that what an
`Owner` (a plugin's code while it runs) has written can be dropped whole.
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
    """Owns what this thread writes to tables during a `with` block, such as a plugin while its code runs.

    Blocks nest: the innermost one owns what is written. Threads have owners of their own.

    Attributes:
        name: the plugin's name.
        dropped: whether the entries were removed again.
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
        """Let the outer block own what is written from now on."""
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
    """Have a function called when the entries of the running owner are dropped, if there is one."""
    if _thread.owner is not None:
        _thread.owner._undo.append(undo)


@dataclasses.dataclass(eq=False, slots=True)
class Entry:
    """A value that was given for a key.

    Attributes:
        value: the value.
        provenance: the module, file and line that contributed it.
        override: whether it replaces another entry, whichever of the two comes first.
        owner: the plugin whose code was running, or None.
        serial: the order of entries; the latest override is in force.
    """

    value: Any
    provenance: Provenance
    override: bool = False
    owner: Owner | None = None
    serial: int = 0


Entries = tuple[Entry, ...]  # of one key: overrides, the latest first, then the one that they replace
Refusal = Callable[[Any, Entry, Entry], str]


K = TypeVar("K")
V = TypeVar("V")


class Table(dict[K, V], Generic[K, V]):
    """A dict of what plugins contribute.

    `table[key] = value` is `register(key, value)`; `del table[key]` takes back everything that was given for the key.

    Args:
        name: what an entry is, for messages ("array method").
        initial: the kernel's own entries.
        changed: called with a key, and with its value in force or None, after it has changed.
        refusal: gives the message for a second entry of `(key, earlier, given)`.
        of_hooks: whether entries are what plugins' hooks give, and not what their modules register while they are
            imported.
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
        self._entries: dict[Any, Entries] = {key: (Entry(value, where),) for key, value in self.items()}
        _tables.append(weakref.ref(self, _tables.remove))

    # -- writing -------------------------------------------------------------------------------------------------------

    def register(self, key: Any, value: Any, *, override: bool = False, provenance: Provenance | None = None) -> None:
        """Add an entry. The same definition run again (a reloaded module, a notebook's cell) replaces the earlier one.

        Args:
            key: the key.
            value: the value.
            override: replace the entry that is there, or one that comes later, on purpose.
            provenance: where the value is from; by default where it was written, if it is a function, else the caller.

        Raises:
            DuplicateRegistrationError: the key has an entry; names both provenances.
        """
        given = Entry(value, provenance or Provenance.of(value), override, _thread.owner, next(_serial))
        with _lock:
            there = self._entries.get(key, ())
            now = _with(there, given)
            if now is not None:
                self._write(key, there, now)
        if now is None:
            raise DuplicateRegistrationError(self._refusal(key, there[-1], given))
        try:
            self.follow(key)
        except BaseException:  # what follows the table refuses it
            self._put(key, there)
            self.follow(key)
            raise

    def remove(self, key: Any) -> None:
        """Remove the entry in force; the entry that it had replaced, if any, is in force again.

        Raises:
            KeyError: the key has no entry.
        """
        with _lock:
            there = self._entries[key]
            self._write(key, there, there[1:])
        self.follow(key)

    def follow(self, key: Any) -> None:
        """Put the first entry of a key in force, and tell what follows the table."""
        there = self._entries.get(key)
        if there is None:
            super().pop(key, None)
        else:
            super().__setitem__(key, there[0].value)
        if self._changed is not None:
            self._changed(key, there[0].value if there is not None else None)

    def _write(self, key: Any, there: Entries, now: Entries) -> None:
        owner = _thread.owner
        if owner is not None and there:
            owner._undo += (partial(self._put_back, key, entry) for entry in there if entry not in now)
        self._put(key, now)

    def _put(self, key: Any, now: Entries) -> None:
        if now:
            self._entries[key] = now
        else:
            self._entries.pop(key, None)

    def _put_back(self, key: Any, entry: Entry) -> None:
        """Undo a removal; if another entry has taken its place meanwhile, when that entry is dropped."""
        if entry.owner is not None and entry.owner.dropped:
            return
        with _lock:
            there = self._entries.get(key, ())
            taken = next((other for other in there if _in_place_of(entry, other)), None)
            if taken is None:
                self._put(key, _ordered((*there, entry)))
            elif taken.owner is not None:
                taken.owner._undo.append(partial(self._put_back, key, entry))
        self.follow(key)

    def _refused(self, key: Any, earlier: Entry, given: Entry) -> str:
        return f"{self.name} {key!r} is provided by {earlier.provenance}; {given.provenance} provides a second one"

    # -- reading besides what a dict gives -----------------------------------------------------------------------------

    def entries(self, key: Any) -> Entries:
        """Return all entries of a key, the one in force first."""
        return self._entries.get(key, ())

    def provenance(self, key: Any) -> Provenance:
        """Return the provenance of the entry in force.

        Raises:
            KeyError: the key has no entry.
        """
        return self._entries[key][0].provenance

    # -- a dict's own ways of writing ----------------------------------------------------------------------------------

    def __setitem__(self, key: Any, value: Any) -> None:
        self.register(key, value)

    def __delitem__(self, key: Any) -> None:
        with _lock:
            self._write(key, self._entries[key], ())
        self.follow(key)

    clear = MutableMapping.clear

    def pop(self, key: Any, *default: Any) -> Any:
        """As `dict.pop`."""
        if default and key not in self:
            return default[0]
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[Any, Any]:
        """As `dict.popitem`."""
        key = next(reversed(self), None)
        if key is None:
            raise KeyError(f"no {self.name}")
        return key, self.pop(key)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """As `dict.setdefault`."""
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *others: Any, **named: Any) -> None:
        """As `dict.update`."""
        for key, value in dict(*others, **named).items():
            self[key] = value

    def __ior__(self, other: Any) -> Table:  # type: ignore[misc]
        self.update(other)
        return self


def _with(there: Entries, given: Entry) -> Entries | None:
    """Add an entry in its place; return None for a duplicate that is no override."""
    earlier = next((entry for entry in there if _in_place_of(given, entry)), None)
    if earlier is None:
        return _ordered((*there, given))
    if not given.provenance.redefines(earlier.provenance):
        return None
    again = dataclasses.replace(given, serial=earlier.serial)
    return tuple(again if entry is earlier else entry for entry in there)


def _in_place_of(given: Entry, other: Entry) -> bool:
    """Return whether one entry replaces the other: neither is an override, or both are the same definition."""
    if not given.override and not other.override:
        return True
    return given.override and other.override and given.provenance.redefines(other.provenance)


def _ordered(entries: Entries) -> Entries:
    return tuple(sorted(entries, key=lambda entry: (not entry.override, -entry.serial)))


# -- all tables together -----------------------------------------------------------------------------------------------


def all_tables() -> Iterator[Table]:
    """Yield every table."""
    yield from (table for found in list(_tables) if (table := found()) is not None)


def drop(*owners: Owner, keep: Callable[[Table, Entry], bool] = lambda table, entry: False) -> None:
    """Remove the entries of owners from every table, except those to `keep`, and put back what the owners removed."""
    for owner in owners:
        owner.dropped = True
    for table in all_tables():
        for key, there in list(table._entries.items()):
            gone = {entry for entry in there if entry.owner in owners and not keep(table, entry)}
            if gone:
                with _lock:
                    table._put(key, tuple(entry for entry in table.entries(key) if entry not in gone))
                table.follow(key)
    for owner in reversed(owners):
        while owner._undo:
            owner._undo.pop()()


Snapshot = list[tuple[Table[Any, Any], dict[Any, Entries]]]


def snapshot(*tables: Table[Any, Any]) -> Snapshot:
    """Return the entries of some tables, by default of all, for `restore`."""
    return [(table, dict(table._entries)) for table in tables or all_tables()]


def restore(before: Snapshot) -> None:
    """Put tables back as they were when `snapshot` was called."""
    for table, entries in before:
        for key in {**entries, **table._entries}:
            if entries.get(key) != table._entries.get(key):
                with _lock:
                    table._put(key, entries.get(key, ()))
                table.follow(key)
