"""The primitive `threefry2x32`: Threefry-2x32 with 20 rounds, a keyed hash of 64-bit counters.

    threefry2x32 : (u32[*k], u32[*k], u32[*s], u32[*s]) -> (u32[*t], u32[*t])

Operands are the two words of the key and the two words of the counter; they broadcast. Source: Salmon, Moraes, Dror and
Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011), section 4.2, which calls it Threefry-2x32-20.

On the host, NumPy's overhead per call dominates small hashes: 20 rounds take about 100 calls. So up to PACKED words are
packed into one Python integer, 64 bits each, and one big-integer operation processes all of them (`hash_packed`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from sys import byteorder
from typing import Any

import numpy as np

from corejax.extend import (
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    defbroadcasting,
    dtypes,
    impl_rules,
    jvp_rules,
    nondifferentiable,
)
from corejax_lax_basic import lax

PARITY = 0x1BD11BDA
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
UINT32 = np.dtype(np.uint32)
MASK = 0xFFFFFFFF
_LANES = np.dtype("<u8")
PACKED = 160  # number of words up to which Python integers are faster than arrays

threefry2x32_p = Primitive(
    "threefry2x32",
    multiple_results=True,
    doc="Hash counters under a key by Threefry-2x32 (20 rounds): u32, u32, u32, u32 -> u32, u32; operands broadcast.",
)
defbroadcasting(threefry2x32_p)
jvp_rules.register(threefry2x32_p, nondifferentiable("its operands and results are integers"))


@abstract_eval_rules.register(threefry2x32_p)
def threefry2x32_type(*avals: ShapedArray) -> tuple[ShapedArray, ShapedArray]:
    """Broadcast the shapes of the operands."""
    if len(avals) != 4 or any(a.dtype != UINT32 for a in avals):
        got = ", ".join(a.str_short() for a in avals)
        raise TypeError(f"threefry2x32 takes four arrays of uint32, two of the key and two of the counter, got {got}")
    try:
        shape = lax.broadcast_shapes(*(a.shape for a in avals))
    except ValueError:
        got = ", ".join(str(a.shape) for a in avals)
        raise TypeError(f"threefry2x32: shapes {got} do not broadcast together") from None
    return (ShapedArray(shape, dtypes.dtype(UINT32)),) * 2


@impl_rules.register(threefry2x32_p)
def hash_words(k1: Any, k2: Any, x1: Any, x2: Any) -> list[Any]:
    """Return the two words of the hash, for NumPy arrays."""
    both = np.broadcast(k1, k2, x1, x2)
    size, shape = both.size, both.shape
    if not 0 < size <= PACKED:
        return hash_arrays(k1, k2, x1, x2)
    hashes = hash_packed(size, *(_packed(x, shape) for x in (k1, k2, x1, x2)))
    return [unpacked(size, lanes, UINT32).reshape(shape) for lanes in hashes]


# The amounts of shifts are arrays: NumPy is half as fast with its scalars, and slower with scalars from integers.
_TURNS = [[(np.array(r, UINT32), np.array(32 - r, UINT32)) for r in four] for four in ROTATIONS]
_NUMBERS = [np.array(i, UINT32) for i in range(1, 6)]


def hash_arrays(k1: Any, k2: Any, x1: Any, x2: Any) -> list[Any]:
    """Hash NumPy arrays in place, with one temporary array; words broadcast."""
    shape = np.broadcast(k1, k2, x1, x2).shape
    x, y, spare = (np.empty(shape, UINT32) for _ in range(3))
    (first, second), *injections = _key_injections(k1, k2)
    add, xor, either, left, right = np.add, np.bitwise_xor, np.bitwise_or, np.left_shift, np.right_shift
    add(x1, first, x)
    add(x2, second, y)
    for i, (first, second) in enumerate(injections):
        for up, down in _TURNS[i % 2]:
            add(x, y, x)
            left(y, up, spare)
            right(y, down, y)
            either(y, spare, y)
            xor(y, x, y)
        add(x, first, x)
        add(y, second, y)
    return [x, y]


def _key_injections(k1: Any, k2: Any) -> list[tuple[Any, Any]]:
    """Return the words to add before the rounds and after each four rounds; scalar arrays if there is one key."""
    if k1.size == k2.size == 1:
        one, two = k1.item(), k2.item()
        words = (one, two, one ^ two ^ PARITY)
        added = np.array([n & MASK for i in range(6) for n in (words[i % 3], words[(i + 1) % 3] + i)], UINT32)
        return [(added[i, ...], added[i + 1, ...]) for i in range(0, 12, 2)]
    keys = (k1, k2, k1 ^ k2 ^ UINT32.type(PARITY))
    return [(k1, k2), *((keys[i % 3], keys[(i + 1) % 3] + n) for i, n in enumerate(_NUMBERS, 1))]


# -- few words: packed into one Python integer, in lanes of 64 bits so that carries do not reach the next lane -------


@functools.lru_cache(maxsize=64)
def lane_constants(size: int) -> tuple[int, int, int]:
    """Return integers with 1 in each lane, with the lane's index in each lane, and with the mask in each lane."""
    ones = sum(1 << (64 * i) for i in range(size))
    return ones, sum(i << (64 * i) for i in range(size)), MASK * ones


def hash_counters(key: Any, size: int, first: int = 0) -> tuple[int, int]:
    """Hash the counters `first`, `first + 1`, ... below 2**32 under one key u32[2]; the hashes are in lanes."""
    ones, numbers, _ = lane_constants(size)
    k1, k2 = key.tolist()
    return hash_packed(size, k1 * ones, k2 * ones, 0, numbers + first * ones)


def hash_packed(size: int, k1: int, k2: int, x: int, y: int) -> tuple[int, int]:
    """Hash words in lanes."""
    ones, _, mask = lane_constants(size)
    k3 = k1 ^ k2 ^ PARITY * ones
    x, y = _even_rounds(x + k1, (y + k2) & mask, mask)
    x, y = _odd_rounds(x + k2, (y + k3 + ones) & mask, mask)
    x, y = _even_rounds(x + k3, (y + k1 + 2 * ones) & mask, mask)
    x, y = _odd_rounds(x + k1, (y + k2 + 3 * ones) & mask, mask)
    x, y = _even_rounds(x + k2, (y + k3 + 4 * ones) & mask, mask)
    return (x + k3) & mask, (y + k1 + 5 * ones) & mask


# The rounds are unrolled, as a loop would take as long as its body. Bits above 32 in `x` stay below 64, so they are
# masked only at the end.


def _even_rounds(x: int, y: int, mask: int) -> tuple[int, int]:
    x += y
    y = ((y << 13 | y >> 19) ^ x) & mask
    x += y
    y = ((y << 15 | y >> 17) ^ x) & mask
    x += y
    y = ((y << 26 | y >> 6) ^ x) & mask
    x += y
    return x, ((y << 6 | y >> 26) ^ x) & mask


def _odd_rounds(x: int, y: int, mask: int) -> tuple[int, int]:
    x += y
    y = ((y << 17 | y >> 15) ^ x) & mask
    x += y
    y = ((y << 29 | y >> 3) ^ x) & mask
    x += y
    y = ((y << 16 | y >> 16) ^ x) & mask
    x += y
    return x, ((y << 24 | y >> 8) ^ x) & mask


def _packed(words: Any, shape: tuple[int, ...]) -> int:
    """Broadcast words to a shape and pack them into lanes."""
    lanes = np.empty(shape, _LANES)
    lanes[...] = words
    return int.from_bytes(lanes.tobytes(), "little")


def unpacked(size: int, lanes: int, dtype: Any) -> Any:
    """Unpack lanes to a new array, truncated to a dtype."""
    return np.frombuffer(lanes.to_bytes(8 * size, "little"), _LANES).astype(dtype)


def unpacked_pairs(size: int, first: int, second: int, dtype: Any = UINT32) -> Any:
    """Interleave the lanes of two integers as words, `u32[2*size]`, or as keys of two words, `dtype[size]`."""
    both = np.frombuffer((first | (second << 32)).to_bytes(8 * size, "little"), dtype)
    return both if byteorder == "little" else both.view(UINT32).byteswap().view(dtype)


# -- words of keys and counters, as NumPy arrays or traced arrays ----------------------------------------------------


def first_and_second(words: Any) -> tuple[Any, Any]:
    """Split key words u32[*batch,2] into the first and the second, each u32[*batch,1]."""
    return words[..., :1], words[..., 1:]


def counters(xp: Any, size: Any) -> tuple[Any, Any]:
    """Return high and low words of the counters 0, 1, ...; `xp` is the array namespace."""
    if not isinstance(size, int) or size <= 2**32:
        return xp.zeros((1,), UINT32), xp.arange(size, dtype=UINT32)
    both = xp.arange(size, dtype=np.uint64)
    return (both >> np.uint64(32)).astype(UINT32), both.astype(UINT32)


def hash_sequence(xp: Any, hashed: Callable[..., Any], key: Any, count: Any) -> Any:
    """Hash counts u32[n] to words u32[*batch,n]; the first half are high words, the second half low words."""
    size = count.shape[0]
    if size % 2:
        count = xp.concatenate([count, xp.zeros((1,), UINT32)])
    half = count.shape[0] // 2
    words = xp.concatenate(hashed(*first_and_second(key), count[:half], count[half:]), axis=-1)
    return words[..., :size]
