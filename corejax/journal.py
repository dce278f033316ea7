"""Tables that remember, while somebody listens, what was written into them: so that it can be taken out again.

A plugin that fails contributes nothing. Copying every table before each call of a plugin would cost all entries
of all plugins each time; a journal costs what the call writes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class Store(Protocol):
    """What entries are put back into; None stands for no entry."""

    name: str

    def entry(self, key: Any) -> Any:
        """What is there now."""

    def put(self, key: Any, entry: Any) -> None:
        """Set one entry, or remove it where the entry is None."""


@dataclass(frozen=True)
class Change:
    """One entry of a store, before and after; None where there was none."""

    store: Store
    key: Any
    old: Any
    new: Any


class Journal:
    """The entries that tables had when it was opened, of those that were written since.

    Args:
        thread: identifier of the only thread whose writing counts; None: every thread's.
    """

    def __init__(self, thread: int | None = None) -> None:
        self.thread = thread
        self._before: dict[tuple[int, Any], tuple[Store, Any, Any]] = {}
        _open.append(self)

    def note(self, store: Store, key: Any) -> None:
        """An entry is about to be written."""
        if self.thread is None or self.thread == threading.get_ident():
            place = (id(store), key)
            if place not in self._before:
                self._before[place] = (store, key, store.entry(key))

    def changes(self) -> list[Change]:
        """What differs now, in the order of first writing."""
        found = (Change(store, key, old, store.entry(key)) for store, key, old in self._before.values())
        return [change for change in found if not same(change.old, change.new)]

    def absorb(self, changes: Iterable[Change]) -> None:
        """Take entries as they are now for those of the beginning: they are somebody else's."""
        for change in changes:
            place = (id(change.store), change.key)
            self._before[place] = (change.store, change.key, change.store.entry(change.key))

    def close(self) -> None:
        """Listen no longer."""
        _open[:] = [journal for journal in _open if journal is not self]


_open: list[Journal] = []


def same(a: Any, b: Any) -> bool:
    """Whether two entries are the same objects."""
    if type(a) is tuple and type(b) is tuple:
        return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))
    return a is b


class Table(dict[Any, Any]):
    """A dict that plugins contribute to; reading it costs what reading a dict costs.

    Args:
        name: what is in it.
        entries: what is there from the beginning.
        read: gives the entry of a key, where there is more to it than the dict's value.
        put: puts an entry in force or, given None, removes it, where that is more than setting the dict's item.
    """

    def __init__(
        self,
        name: str,
        entries: Mapping[Any, Any] | None = None,
        *,
        read: Callable[[Any], Any] | None = None,
        put: Callable[[Any, Any], None] | None = None,
    ) -> None:
        super().__init__(entries or {})
        self.name = name
        self._read = read
        self._put = put

    def entry(self, key: Any) -> Any:
        """What is there now, or None."""
        return self.get(key) if self._read is None else self._read(key)

    def put(self, key: Any, entry: Any) -> None:
        """Set one entry, or remove it where the entry is None."""
        if self._put is not None:
            self._put(key, entry)
        elif entry is None:
            self.pop(key, None)
        else:
            self[key] = entry

    def touch(self, key: Any) -> None:
        """Say that an entry is about to change."""
        for journal in _open:
            journal.note(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if _open:
            self.touch(key)
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        if _open:
            self.touch(key)
        super().__delitem__(key)

    def pop(self, key: Any, *default: Any) -> Any:
        """As `dict.pop`."""
        if _open:
            self.touch(key)
        return super().pop(key, *default)

    def popitem(self) -> tuple[Any, Any]:
        """As `dict.popitem`."""
        key = next(reversed(self), None)
        if key is None:
            raise KeyError(f"no {self.name}")
        return key, self.pop(key)

    def clear(self) -> None:
        """As `dict.clear`."""
        if _open:
            for key in self:
                self.touch(key)
        super().clear()

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
