"""Threefry of many keys on the host, some hashes of each at once: for loops in which every element has its own key.

A key is a pair of words for each element, and so is a hash. Of few elements a word is an integer with a lane for each,
of more an array; what is done with them reads the same.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax_random.generators.hashing import UINT32, hash_arrays, hash_packed, lane_constants, unpacked, unpacked_pairs
from corejax_random.generators.table import UINTS

Pair = tuple[Any, Any]
FEW = 128  # elements whose hashes integers hold


class Lanes:
    """Pairs of integers, for `size` elements."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.width = 64 * size
        self.mask = lane_constants(size)[2]
        self.counters: dict[tuple[int, ...], int] = {}

    def of(self, words: Any) -> Pair:
        """The pairs of keys `u32[size,2]`."""
        both = int.from_bytes(words.astype("<u4", copy=False).tobytes(), "little")
        return both & self.mask, both >> 32 & self.mask

    def words(self, pair: Pair) -> Any:
        """Undoes `of`."""
        return unpacked_pairs(self.size, *pair).reshape(self.size, 2)

    def hashed(self, counters: tuple[int, ...], *keys: Pair) -> list[Pair]:
        """The hash of each counter under the key in its place."""
        count = self.counters.get(counters)
        if count is None:
            ones = lane_constants(self.size)[0]
            count = self.counters[counters] = sum(n * ones << self.width * i for i, n in enumerate(counters))
        return self._hashed(keys, count)

    def of_counters(self, *keys: tuple[int, int]) -> list[Pair]:
        """The hashes of 0, 1, ..., a counter for each element, under each of some keys."""
        ones, numbers, _ = lane_constants(self.size)
        count = sum(numbers << self.width * i for i in range(len(keys)))
        return self._hashed([(x * ones, y * ones) for x, y in keys], count)

    def _hashed(self, keys: Sequence[Pair], count: int) -> list[Pair]:
        width, first, second = self.width, 0, 0
        for x, y in reversed(keys):
            first, second = first << width | x, second << width | y
        first, second = hash_packed(self.size * len(keys), first, second, 0, count)
        found = []
        for _ in keys:
            found.append((first & self.mask, second & self.mask))
            first, second = first >> width, second >> width
        return found

    def bits(self, pair: Pair, bit_width: int) -> Any:
        """Random bits, `uint[size]`, of the hash of counter 0."""
        first, second = pair
        return unpacked(self.size, first << 32 | second if bit_width == 64 else first ^ second, UINTS[bit_width])


class Arrays:
    """As `Lanes`, with arrays."""

    def __init__(self, size: int) -> None:
        self.size = size

    def of(self, words: Any) -> Pair:
        return words[:, 0], words[:, 1]

    def words(self, pair: Pair) -> Any:
        return np.stack(pair, axis=-1)

    def hashed(self, counters: tuple[int, ...], *keys: Pair) -> list[Pair]:
        first, second = (np.concatenate(words) for words in zip(*keys, strict=True))
        count = np.repeat(np.array(counters, UINT32), self.size)
        first, second = hash_arrays(first, second, np.zeros_like(count), count)
        return list(zip(np.split(first, len(keys)), np.split(second, len(keys)), strict=True))

    def bits(self, pair: Pair, bit_width: int) -> Any:
        first, second = pair
        dtype = UINTS[bit_width]
        if bit_width < 64:
            return (first ^ second).astype(dtype)
        return first.astype(dtype) << np.uint64(32) | second.astype(dtype)


@functools.lru_cache(maxsize=128)
def lanes_of(size: int) -> Lanes | Arrays:
    """What pairs of so many elements are kept in."""
    return Lanes(size) if size <= FEW else Arrays(size)
