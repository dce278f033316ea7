"""Threefry with many keys on the host, for loops in which every element has its own key.

The keys of few elements are packed into two integers, one lane each, and stay packed while they are hashed (`Lanes`).
The keys of more elements are arrays of words (`Words`). Both classes have the same methods.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import config
from corejax_random.generators.hashing import (
    UINT32,
    hash_arrays,
    hash_packed,
    lane_constants,
    unpacked,
    unpacked_pairs,
)
from corejax_random.generators.table import UINTS
from corejax_random.generators.threefry import bits_of_words, random_bits_on_host, split_on_host

Keys = Any  # a pair of integers, or of arrays
Pair = tuple[int, int]
FEW = 128  # number of elements up to which integers are used


class Lanes:
    """Keys of `size` elements in two integers."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.width = 64 * size
        self.mask = lane_constants(size)[2]
        self.counters: dict[tuple[int, ...], int] = {}

    def of(self, words: Any) -> Pair:
        """Pack keys `u32[size,2]` into a pair of integers."""
        both = int.from_bytes(words.astype("<u4", copy=False).tobytes(), "little")
        return both & self.mask, both >> 32 & self.mask

    def words(self, pair: Pair) -> Any:
        """Unpack a pair of integers to keys `u32[size,2]`."""
        return unpacked_pairs(self.size, *pair).reshape(self.size, 2)

    def split(self, count: int, numbers: tuple[int, ...], *keys: Pair) -> list[Pair]:
        """Split each key into `count` keys, and return the one with the index in `numbers`."""
        return self._hashed(keys, self._counters(numbers))

    def bits(self, bit_width: int, *keys: Pair) -> list[Any]:
        """Return random bits of each key, `uint[size]`."""
        hashes = self._hashed(keys, 0)
        return [self._unpacked(bit_width, pair) for pair in hashes]

    def bits_of_counters(self, bit_width: int, *keys: Pair) -> list[Any]:
        """Return random bits of single keys, `uint[size]`, with a counter for each element."""
        ones, numbers, _ = lane_constants(self.size)
        count = sum(numbers << self.width * i for i in range(len(keys)))
        hashes = self._hashed([(x * ones, y * ones) for x, y in keys], count)
        return [self._unpacked(bit_width, pair) for pair in hashes]

    def _counters(self, numbers: tuple[int, ...]) -> int:
        packed = self.counters.get(numbers)
        if packed is None:
            ones = lane_constants(self.size)[0]
            packed = self.counters[numbers] = sum(n * ones << self.width * i for i, n in enumerate(numbers))
        return packed

    def _unpacked(self, bit_width: int, pair: Pair) -> Any:
        first, second = pair
        return unpacked(self.size, first << 32 | second if bit_width == 64 else first ^ second, UINTS[bit_width])

    def _hashed(self, keys: Sequence[Pair], count: int) -> list[Pair]:
        width, first, second = self.width, 0, 0
        for x, y in reversed(keys):
            first, second = first << width | x, second << width | y
        first, second = hash_packed(self.size * len(keys), first, second, 0, count)
        hashes = []
        for _ in keys:
            hashes.append((first & self.mask, second & self.mask))
            first, second = first >> width, second >> width
        return hashes


class Words:
    """Keys of any number of elements as pairs of arrays `u32[n]`; one call hashes all of its keys at once."""

    def of(self, words: Any) -> Any:
        """Split keys `u32[n,2]` into a pair of arrays."""
        return words[:, 0], words[:, 1]

    def words(self, pair: Any) -> Any:
        """Join a pair of arrays to keys `u32[n,2]`."""
        return np.stack(pair, axis=-1)

    def split(self, count: int, numbers: tuple[int, ...], *keys: Any) -> list[Any]:
        """Split each key into `count` keys, and return the one with the index in `numbers`."""
        if not config.threefry_partitionable:
            parts = (split_on_host(self.words(key), (count,))[:, i] for key, i in zip(keys, numbers, strict=True))
            return [self.of(part) for part in parts]
        first, second = self._hashed(np.array(numbers, UINT32)[:, None], keys)
        return [*zip(first, second, strict=True)]

    def bits(self, bit_width: int, *keys: Any) -> list[Any]:
        """Return random bits of each key, `uint[n]`."""
        if not config.threefry_partitionable:
            return [random_bits_on_host(self.words(key), bit_width, ()) for key in keys]
        first, second = self._hashed(_ZERO, keys)
        return [*bits_of_words(np, first, second, bit_width)]

    def _hashed(self, count: Any, keys: Sequence[Any]) -> list[Any]:
        """Return both words of the hashes, each `u32[m,n]` for m keys."""
        first, second = keys[0]
        if any(key is not keys[0] for key in keys):
            first, second = (np.concatenate(words).reshape(len(keys), -1) for words in zip(*keys, strict=True))
        return hash_arrays(first, second, _ZERO, count)


_ZERO = np.zeros((1, 1), UINT32)
_WORDS = Words()
_lanes = functools.lru_cache(maxsize=FEW)(Lanes)


def keys_of(size: int) -> Lanes | Words:
    """Return the representation of the keys of `size` elements."""
    return _lanes(size) if size <= FEW and config.threefry_partitionable else _WORDS
