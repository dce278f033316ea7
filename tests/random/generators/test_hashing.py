"""Threefry's hash on the host: of Python's integers and of arrays, of one key and of many."""

import numpy as np
import pytest

from corejax_random.generators import hashing
from corejax_random.generators.lanes import Lanes, Words
from corejax_random.generators.threefry import random_bits, random_bits_on_host

WORDS = np.random.default_rng(0).integers(0, 1 << 32, (4, 2, 3), np.uint32)
SHAPES = [((), ()), ((1,), (3,)), ((3,), (3,)), ((2, 1), (3,)), ((2, 3), (2, 3)), ((2, 3), ())]


@pytest.mark.parametrize(("keys", "counters"), SHAPES)
def test_arrays_and_integers_agree(keys, counters):
    first, second = (np.resize(words, keys) for words in WORDS[:2])
    high, low = (np.resize(words, counters) for words in WORDS[2:])
    by_integers = hashing.hash_words(first, second, high, low)
    by_arrays = hashing.hash_arrays(first, second, high, low)
    for x, y in zip(by_integers, by_arrays, strict=True):
        np.testing.assert_array_equal(x, y, strict=True)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("size", [1, hashing.PACKED, hashing.PACKED + 1])
def test_bits_are_those_of_the_operations(size, width):
    for key in WORDS[0, :, :2]:
        np.testing.assert_array_equal(random_bits_on_host(key, width, (size,)), random_bits(key, width, (size,)))


@pytest.mark.parametrize("width", [8, 32, 64])
def test_keys_of_many_elements_are_kept_in_integers_or_arrays(width):
    keys = np.random.default_rng(1).integers(0, 1 << 32, (5, 2), np.uint32)
    found = []
    for kept in (Lanes(5), Words()):
        key = kept.of(keys)
        first, second = kept.split(3, (2, 0), key, key)
        [third] = kept.split(2, (1,), second)
        found.append([kept.words(k) for k in (first, second, third)] + kept.bits(width, third, first, key))
    for x, y in zip(*found, strict=True):
        np.testing.assert_array_equal(x, y, strict=True)
