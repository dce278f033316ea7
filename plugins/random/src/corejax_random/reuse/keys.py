"""Identification of the keys in arrays, and a record of their uses.

Each operation that creates keys is a `Source`, and each of its keys has a number. An array of keys is represented by an
array of the same shape with the numbers (`Keys`). An operation that slices, joins or reshapes keys is applied to the
array of numbers in the same way, so that each element's key stays known. A `Ledger` records the uses.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend.messages import KeyReuseError

_LARGEST = 2**24  # number of keys of one source up to which each key has a number
_serials = itertools.count(1)
_BITS = 32  # low bits of a key's number, for its index in its source
_PLACE = (1 << _BITS) - 1


class Source:
    """Keys that one operation created.

    Attributes:
        used: for each key 0, or the number of the line that used it.
        lines: the lines of uses; line number 1 is the first.
        pool: if these keys are an unknown selection from other keys, the other keys.
        choices: sources with unknown selections from these keys.
    """

    __slots__ = ("choices", "lines", "pool", "serial", "used")

    def __init__(self, count: int, pool: Keys | None = None) -> None:
        self.serial = next(_serials)
        self.used = np.zeros(count, np.int32)
        self.lines: list[str] = []
        self.pool = pool
        self.choices: list[Source] = []


class Keys(NamedTuple):
    """The keys of an array.

    Attributes:
        ids: array of the keys' numbers.
        sources: sources of all of these keys, by serial number.
        unlocated: numbers of keys that are in the array at unknown positions.
        distinct: whether each element has a number; if not, `ids` is a scalar.
    """

    ids: Any
    sources: dict[int, Source]
    unlocated: tuple[Any, ...] = ()
    distinct: bool = True


def fresh(shape: Sequence[Any], pool: Keys | None = None) -> Keys:
    """Return new keys for an array of some shape."""
    known = all(isinstance(n, int) for n in shape)
    count = int(np.prod(shape, dtype=object)) if known else 1
    distinct = known and count <= _LARGEST
    source = Source(count if distinct else 1, pool)
    ids = (np.int64(source.serial) << _BITS) + np.arange(source.used.size, dtype=np.int64)
    return Keys(ids.reshape(shape if distinct else ()), {source.serial: source}, (), distinct)


def merge_sources(arrays: Sequence[Keys]) -> tuple[dict[int, Source], tuple[Any, ...]]:
    """Return the sources of several arrays of keys, and the keys at unknown positions."""
    sources = {serial: source for keys in arrays for serial, source in keys.sources.items()}
    return sources, tuple(ids for keys in arrays for ids in keys.unlocated)


def any_of(arrays: Sequence[Keys], shape: Sequence[Any]) -> Keys:
    """Return the keys of an array with elements from several arrays, if the selection is unknown."""
    first = arrays[0]
    if all(x.distinct and x.ids.shape == first.ids.shape and (x.ids == first.ids).all() for x in arrays):
        return first
    sources, unlocated = merge_sources(arrays)
    return fresh(shape, Keys(np.concatenate([x.ids.ravel() for x in arrays]), sources, unlocated))


def _numbers(keys: Keys) -> Any:
    """Return the numbers of all keys, each once."""
    return np.unique(np.concatenate([ids.ravel() for ids in (keys.ids, *keys.unlocated)]))


def _by_source(keys: Keys) -> list[tuple[Source, Any]]:
    """Return each source with the indices of its keys."""
    numbers = _numbers(keys)
    serials = numbers >> _BITS
    return [
        (keys.sources[serial], numbers[serials == serial] & _PLACE)
        for serial in np.unique(serials).tolist()
        if serial in keys.sources  # a gather may fill in other numbers
    ]


class Ledger:
    """A record of uses of keys, which can be rolled back."""

    def __init__(self) -> None:
        self.entries: list[tuple[Source, Any, int]] = []

    def use(self, keys: Keys, what: str, place: str) -> None:
        """Record a use of all keys of an array.

        Args:
            keys: the keys.
            what: the operation and the type of the array, for messages.
            place: the user's line.

        Raises:
            KeyReuseError: if one of the keys was used before.
        """
        grouped = _by_source(keys)
        for source, places in grouped:
            earlier = source.used[places]
            if earlier.any():
                raise _reused(source.lines[earlier[earlier > 0][0] - 1], what, place)
            # A use of an unknown selection is a reuse if all keys of its pool were used. A use of all keys of a pool is
            # a reuse if an unknown selection from it was used.
            line = _line_of_uses(source.pool) if source.pool is not None else None
            if line is not None:
                raise _reused(line, what, place)
            for choice in source.choices:
                pool = choice.pool
                if pool is not None and choice.used.any() and np.isin(_numbers(pool), _numbers(keys)).all():
                    raise _reused(choice.lines[-1], what, place)
        for source, places in grouped:
            self._mark(source, places, place)

    def _mark(self, source: Source, places: Any, line: str) -> None:
        if not source.lines or source.lines[-1] != line:
            source.lines.append(line)
        if source.pool is not None and not source.used.any():
            for origin in source.pool.sources.values():
                origin.choices.append(source)
        self._enter(source, places, len(source.lines))

    def _enter(self, source: Source, places: Any, line: int) -> None:
        self.entries.append((source, places, line))
        source.used[places] = line

    def use_like(self, example: Keys, others: Keys) -> None:
        """Mark each slice of `others` along its first axis in the same way as the slice `example`."""
        for i in np.ndindex(example.ids.shape):
            source = example.sources.get(int(example.ids[i]) >> _BITS)
            line = source.used[example.ids[i] & _PLACE] if source is not None else 0
            if source is not None and line:
                for one, places in _by_source(Keys(others.ids[(slice(None), *i)], others.sources)):
                    self._mark(one, places, source.lines[line - 1])

    def roll_back(self, start: int = 0) -> list[tuple[Source, Any, int]]:
        """Remove the entries from an index on, and return them."""
        removed = self.entries[start:]
        del self.entries[start:]
        for source, places, _ in removed:
            source.used[places] = 0
        return removed

    def restore(self, entries: Sequence[tuple[Source, Any, int]]) -> None:
        """Record entries that were rolled back."""
        for entry in entries:
            self._enter(*entry)


def is_used(keys: Keys) -> bool:
    """Return whether any of the keys was used."""
    return any(source.used[places].any() for source, places in _by_source(keys))


def _line_of_uses(keys: Keys) -> str | None:
    """Return a line that used the keys if all of them were used, else None."""
    line = None
    for source, places in _by_source(keys):
        if not source.used[places].all():
            return None
        line = source.lines[-1]
    return line


def _reused(earlier: str, what: str, place: str) -> KeyReuseError:
    return KeyReuseError(
        f"{what}, at {place}: the key was used at {earlier}, but a key may be used only once. Derive new keys from it "
        "with corejax.random.split first, or pass clone(key) if the same numbers are intended"
    )
