"""`threefry2x32`, the default generator: keys of two words, counters hashed under the key.

With the setting `threefry_partitionable` (the default) the bits of an element depend only on the key and on the
element's index. Without it they equal those of JAX before 0.5, which hashes counters in pairs. Each function is defined
once, for NumPy arrays (eager use, any leading axes) and for traced arrays.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import config
from corejax_lax_basic import lax
from corejax_random.generators.hashing import (
    PACKED,
    UINT32,
    counters,
    first_and_second,
    hash_counters,
    hash_packed,
    hash_sequence,
    hash_words,
    lane_constants,
    threefry2x32_p,
    unpacked,
    unpacked_pairs,
)
from corejax_random.generators.table import UINTS, HostFunctions, PRNGImpl, register_generator

_HOST = (np, hash_words)
_TRACED = (jnp, threefry2x32_p.bind)


def seed(value: Any) -> Any:
    """Return the two halves of an integer; for at most 32 bits the high word is 0, and the low word the integer."""
    high = jnp.zeros((), UINT32)
    if value.dtype.itemsize == 8:
        high = lax.convert_element_type(lax.shift_right_logical(value, lax.full_like(value, 32)), UINT32)
    return jnp.stack([high, lax.convert_element_type(value, UINT32)])


def _split(backend: Any, key: Any, shape: tuple[int, ...]) -> Any:
    xp, hashed = backend
    size = math.prod(shape)
    if config.threefry_partitionable:
        words = xp.stack(hashed(*first_and_second(key), *counters(xp, size)), axis=-1)
    else:
        words = hash_sequence(xp, hashed, key, xp.arange(2 * size, dtype=UINT32))
    return words.reshape((*key.shape[:-1], *shape, 2))


def _fold_in(backend: Any, key: Any, data: Any) -> Any:
    xp, hashed = backend
    return xp.stack(hashed(key[..., 0], key[..., 1], xp.zeros((), UINT32), data), axis=-1)


def _random_bits(backend: Any, key: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    xp, hashed = backend
    size = math.prod(shape)
    make = _bits if config.threefry_partitionable else _bits_of_pairs
    return make(xp, hashed, key, bit_width, size).reshape((*key.shape[:-1], *shape))


def _bits(xp: Any, hashed: Any, key: Any, bit_width: int, size: Any) -> Any:
    """Return bits uint[*batch,size], from a separate counter for each element."""
    first, second = hashed(*first_and_second(key), *counters(xp, size))
    return bits_of_words(xp, first, second, bit_width)


def bits_of_words(xp: Any, first: Any, second: Any, bit_width: int) -> Any:
    """Combine the two words of hashes to unsigned integers."""
    if bit_width == 64:
        return _joined(xp, first, second)
    return (first ^ second).astype(UINTS[bit_width])


def _joined(xp: Any, high: Any, low: Any) -> Any:
    """Join two words to 64 bits, also under `config.x64_compat`, which may be set when the program is lowered."""
    if xp is np:
        return (high.astype(UINTS[64]) << np.uint64(32)) | low.astype(UINTS[64])
    high, low = lax.in_dtype(high, UINTS[64]), lax.in_dtype(low, UINTS[64])
    return lax.bitwise_or(lax.shift_left(high, lax.full_like(high, 32)), low)


def _bits_of_pairs(xp: Any, hashed: Any, key: Any, bit_width: int, size: Any) -> Any:
    """Return bits uint[*batch,size], from as many words as the bits need."""
    count = -(-bit_width * size // 32)
    if isinstance(count, int) and count >= 2**32:
        raise NotImplementedError(
            f"{size} numbers of {bit_width} bits need 2**32 counters or more: set threefry_partitionable"
        )
    words = hash_sequence(xp, hashed, key, xp.arange(count, dtype=UINT32))
    dtype = UINTS[bit_width]
    if bit_width == 32:
        return words
    if bit_width == 64:
        return _joined(xp, words[..., :size], words[..., size:])
    shifts = xp.arange(0, 32, bit_width, dtype=UINT32)
    parts = (words[..., None] >> shifts).astype(dtype)
    return parts.reshape((*key.shape[:-1], count * (32 // bit_width)))[..., :size]


split, random_bits, fold_in = (functools.partial(function, _TRACED) for function in (_split, _random_bits, _fold_in))


# -- on the host, with Python integers for few counters of one key -----------------------------------------------------


def _few(key: Any, size: int) -> bool:
    return key.ndim == 1 and 0 < size <= PACKED and config.threefry_partitionable


def _seed_on_host(values: Any) -> Any:
    out = np.zeros((*values.shape, 2), UINT32)
    if values.dtype.itemsize == 8:
        out[..., 0] = values.view(UINTS[64]) >> np.uint64(32)
    out[..., 1] = values.astype(UINT32)
    return out


def split_on_host(key: Any, shape: tuple[int, ...]) -> Any:
    """Split NumPy arrays of key words with any leading axes."""
    size = math.prod(shape)
    if not _few(key, size):
        return _split(_HOST, key, shape)
    first, second = hash_counters(key, size)
    return unpacked_pairs(size, first, second).reshape((*shape, 2))


def few_keys(key: bytes, size: int, dtype: Any) -> Any:
    """Split one key's words, as bytes, into keys of a dtype; return None if they do not fit into lanes."""
    if not (0 < size <= PACKED and config.threefry_partitionable):
        return None
    ones, numbers, _ = lane_constants(size)
    first, second = words_of_key(key)
    return unpacked_pairs(size, *hash_packed(size, first * ones, second * ones, 0, numbers), dtype)


def keys_of_one_key(shape: tuple[int, ...], dtype: Any) -> Callable[[Any], Any]:
    """Return a function that splits one key's words, as bytes, into keys of a dtype."""
    size = math.prod(shape)

    def keys(key: bytes) -> Any:
        result = few_keys(key, size, dtype)
        if result is None:
            result = split_on_host(np.frombuffer(key, UINT32), shape).view(dtype)
        return result.reshape(shape)

    return keys


def random_bits_on_host(key: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    """Generate bits from NumPy arrays of key words with any leading axes."""
    size = math.prod(shape)
    if not _few(key, size):
        return _random_bits(_HOST, key, bit_width, shape)
    first, second = hash_counters(key, size)
    lanes = (first << 32) | second if bit_width == 64 else first ^ second
    return unpacked(size, lanes, UINTS[bit_width]).reshape(shape)


def bits_of_one_key(bit_width: int, shape: tuple[int, ...]) -> Callable[[Any], Any]:
    """Return a function of one key's words, as bytes, that generates bits; constants are precomputed."""
    size, dtype = math.prod(shape), UINTS[bit_width]
    if not 0 < size <= PACKED:
        return lambda key: random_bits_on_host(np.frombuffer(key, UINT32), bit_width, shape)
    ones, numbers, _ = lane_constants(size)
    wide = bit_width == 64

    def bits(key: bytes) -> Any:
        if not config.threefry_partitionable:
            return random_bits_on_host(np.frombuffer(key, UINT32), bit_width, shape)
        first, second = words_of_key(key)
        first, second = hash_packed(size, first * ones, second * ones, 0, numbers)
        return unpacked(size, first << 32 | second if wide else first ^ second, dtype).reshape(shape)

    return bits


words_of_key = struct.Struct("=II").unpack


def _fold_in_on_host(key: Any, data: Any) -> Any:
    if key.ndim > 1 or data.ndim:
        return _fold_in(_HOST, key, data)
    first, second = hash_counters(key, 1, int(data))
    return unpacked_pairs(1, first, second)


THREEFRY = PRNGImpl(
    key_shape=(2,),
    seed=seed,
    split=split,
    random_bits=random_bits,
    fold_in=fold_in,
    name="threefry2x32",
    tag="fry",
    on_host=HostFunctions(split_on_host, random_bits_on_host, _fold_in_on_host, _seed_on_host),
)
register_generator(THREEFRY)
