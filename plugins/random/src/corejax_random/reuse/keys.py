"""Which keys an array has, and which of them have been used: a number for each key, moved as the keys are.

What makes keys is a `Source`. An array of keys is an array of the same shape of their numbers (`Keys`), to which an
operation that moves elements is applied as to any array. So it is known of each element which key it is, whatever was
sliced, joined or reshaped before, and a `Ledger` notes which ones have been used.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend.messages import KeyReuseError

_LARGEST = 2**24  # keys of one source that are told apart
_serials = itertools.count(1)
_BITS = 32  # of a key's number, for its place in its source
_PLACE = (1 << _BITS) - 1


class Source:
    """Keys that one operation made.

    Attributes:
        used: for each key 0, or where it was used, as a number.
        lines: the places that these numbers stand for, from 1 on.
        of: the keys that these are chosen from, where it is not known which ones are.
        choices: sources that are chosen from these keys.
    """

    __slots__ = ("choices", "lines", "of", "serial", "used")

    def __init__(self, count: int, of: Keys | None = None) -> None:
        self.serial = next(_serials)
        self.used = np.zeros(count, np.int32)
        self.lines: list[str] = []
        self.of = of
        self.choices: list[Source] = []


class Keys(NamedTuple):
    """The keys of an array.

    Attributes:
        ids: an array of their numbers.
        sources: of all of these keys, by serial number.
        also: numbers of keys that are somewhere in the array, it is not known where.
        apart: whether its elements are told apart; if not, `ids` is a scalar.
    """

    ids: Any
    sources: dict[int, Source]
    also: tuple[Any, ...] = ()
    apart: bool = True


def fresh(shape: Sequence[Any], of: Keys | None = None) -> Keys:
    """New keys in an array of some shape."""
    known = all(isinstance(n, int) for n in shape)
    count = int(np.prod(shape, dtype=object)) if known else 1
    apart = known and count <= _LARGEST
    source = Source(count if apart else 1, of)
    ids = (np.int64(source.serial) << _BITS) + np.arange(source.used.size, dtype=np.int64)
    return Keys(ids.reshape(shape if apart else ()), {source.serial: source}, (), apart)


def together(arrays: Sequence[Keys]) -> tuple[dict[int, Source], tuple[Any, ...]]:
    """The sources of some arrays of keys, and what else is in any of them."""
    sources = {serial: source for keys in arrays for serial, source in keys.sources.items()}
    return sources, tuple(ids for keys in arrays for ids in keys.also)


def any_of(arrays: Sequence[Keys], shape: Sequence[Any]) -> Keys:
    """An array of which each element is one of those of some arrays, it is not known which."""
    first = arrays[0]
    if all(x.apart and x.ids.shape == first.ids.shape and (x.ids == first.ids).all() for x in arrays):
        return first
    sources, also = together(arrays)
    return fresh(shape, Keys(np.concatenate([x.ids.ravel() for x in arrays]), sources, also))


def _numbers(keys: Keys) -> Any:
    """The numbers of all keys, once each."""
    return np.unique(np.concatenate([ids.ravel() for ids in (keys.ids, *keys.also)]))


def _by_source(keys: Keys) -> list[tuple[Source, Any]]:
    """For each source the places of its keys."""
    numbers = _numbers(keys)
    serials = numbers >> _BITS
    return [
        (keys.sources[serial], numbers[serials == serial] & _PLACE)
        for serial in np.unique(serials).tolist()
        if serial in keys.sources  # not what a gather fills in
    ]


class Ledger:
    """What has been used since it was begun, which can be taken back."""

    def __init__(self) -> None:
        self.entries: list[tuple[Source, Any, int]] = []

    def use(self, keys: Keys, what: str, place: str) -> None:
        """Note a use of all keys of an array.

        Args:
            keys: the keys.
            what: uses them, for messages, with the type of the array.
            place: where.

        Raises:
            KeyReuseError: one of them has been used.
        """
        found = _by_source(keys)
        for source, places in found:
            earlier = source.used[places]
            if earlier.any():
                raise _reused(source.lines[earlier[earlier > 0][0] - 1], what, place)
            line = _all_used(source.of) if source.of is not None else None
            if line is not None:
                raise _reused(line, what, place)
            for choice in source.choices:
                if choice.used.any() and np.isin(_numbers(choice.of), _numbers(keys)).all():  # type: ignore[arg-type]
                    raise _reused(choice.lines[-1], what, place)
        for source, places in found:
            self._mark(source, places, place)

    def _mark(self, source: Source, places: Any, line: str) -> None:
        if not source.lines or source.lines[-1] != line:
            source.lines.append(line)
        if source.of is not None and not source.used.any():
            for whole in source.of.sources.values():
                whole.choices.append(source)
        self._enter(source, places, len(source.lines))

    def _enter(self, source: Source, places: Any, line: int) -> None:
        self.entries.append((source, places, line))
        source.used[places] = line

    def use_as(self, example: Keys, others: Keys) -> None:
        """Mark elements along a new leading axis as the same elements of one slice are marked."""
        for i in np.ndindex(example.ids.shape):
            source = example.sources.get(int(example.ids[i]) >> _BITS)
            line = source.used[example.ids[i] & _PLACE] if source is not None else 0
            if source is not None and line:
                for one, places in _by_source(Keys(others.ids[(slice(None), *i)], others.sources)):
                    self._mark(one, places, source.lines[line - 1])

    def take_back(self, start: int = 0) -> list[tuple[Source, Any, int]]:
        """Forget what was noted from an entry on; gives that."""
        gone = self.entries[start:]
        del self.entries[start:]
        for source, places, _ in gone:
            source.used[places] = 0
        return gone

    def enter_again(self, entries: Sequence[tuple[Source, Any, int]]) -> None:
        """What was taken back."""
        for entry in entries:
            self._enter(*entry)


def is_used(keys: Keys) -> bool:
    """Whether any of some keys has been used."""
    return any(source.used[places].any() for source, places in _by_source(keys))


def _all_used(keys: Keys) -> str | None:
    """Where all of some keys were used, as far as that is one place; None if some were not."""
    line = None
    for source, places in _by_source(keys):
        if not source.used[places].all():
            return None
        line = source.lines[-1]
    return line


def _reused(earlier: str, what: str, place: str) -> KeyReuseError:
    return KeyReuseError(
        f"{what}, at {place}: the key was used at {earlier}, and a key is used once. Make new ones of it with "
        "corejax.random.split before, or say clone(key) if the same numbers are meant"
    )
