"""Order on the host: elements as unsigned integers in the same order, and permutations that sort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import dtypes
from corejax_lax_basic._base.small_ints import SMALL_INT_BYTES
from corejax_lax_basic._speed import LONG_TOP_K, SMALL_SORT

Host = np.ndarray[Any, Any]

_FLOATS = frozenset(map(np.dtype, (np.float16, np.float32, np.float64)))
_INTEGERS = frozenset(map(np.dtype, "?bBhHiIlLqQ"))


def numpy_own(x: Host) -> Host:
    """Convert elements to a dtype that NumPy sorts; narrower floats and integers are widened, which keeps the order."""
    dtype = x.dtype
    if dtype in _FLOATS or dtype in _INTEGERS or dtypes.is_complex(dtype):
        return x
    if dtypes.is_float(dtype):
        return x.astype(np.float32)
    return x.astype(SMALL_INT_BYTES[dtype])


def ordinals(x: Host, zeros_equal: bool) -> Host:
    """Return unsigned integers in the order of the elements, which are not complex.

    Args:
        x: boolean, integer or floating-point array.
        zeros_equal: whether both zeros are equal, and all NaNs are equal and last. If not, -NaN comes first, -0.0
            before 0.0, and NaN last (the total order of IEEE 754, StableHLO's TOTALORDER).
    """
    if not x.ndim:
        single: Host = ordinals(x[None], zeros_equal)[0]
        return single
    name = x.dtype.name
    x = numpy_own(x)
    if name.endswith("fnuz") and not zeros_equal:  # the format has one NaN, whose sign means nothing
        x = np.where(np.isnan(x), np.abs(x), x)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    bits: Host = x.view(unsigned)
    if x.dtype.kind in "bu":
        return bits
    sign = unsigned.type(1 << (8 * unsigned.itemsize - 1))
    if x.dtype.kind == "i":
        out: Host = bits ^ sign
        return out
    if zeros_equal:
        x = x + x.dtype.type(0)  # turns -0.0 into 0.0
        bits = x.view(unsigned)
    signed = np.dtype(f"i{x.dtype.itemsize}")
    # Invert all bits of negative numbers, and the sign bit of the others.
    mask = (x.view(signed) >> signed.type(8 * signed.itemsize - 1)).view(unsigned) | sign
    out = np.bitwise_xor(bits, mask, out=mask)
    if zeros_equal and (nan := x != x).any():
        out[nan] = np.iinfo(unsigned).max
    return out


def numbered(keys: Host) -> Host:
    """Pack keys of at most 32 bits and positions along the last axis into one integer: one fast sort orders both."""
    out = keys.astype(np.uint64)
    out <<= np.uint64(32)
    out |= np.arange(keys.shape[-1], dtype=np.uint64)
    return out


def places(packed: Host) -> Host:
    """Return the positions from integers that `numbered` packed."""
    return (packed & np.uint64(0xFFFFFFFF)).astype(np.intp)


def sorting_order(keys: Sequence[Host], axis: int, stable: bool) -> Host:
    """Return the permutation along an axis that sorts by the first key, equal elements by the second key, and so on.

    Zeros of both signs are equal, and so are NaNs, which come last; complex numbers are ordered by real parts first.
    """
    if len(keys) > 1:
        return np.lexsort([numpy_own(k) for k in reversed(keys)], axis=axis)
    (key,) = keys
    if key.size < SMALL_SORT or key.dtype.itemsize != 4 or key.shape[axis] >= 1 << 32:  # NumPy's sort is fast enough
        return np.argsort(numpy_own(key), axis=axis, kind="stable" if stable or key.dtype.kind == "c" else None)
    packed = numbered(ordinals(np.moveaxis(key, axis, -1), True))
    packed.sort(axis=-1)
    return np.moveaxis(places(packed), -1, axis)


def sorts_stably(dtype: np.dtype[Any], size: int) -> bool:
    """Return whether a small array is sorted by NumPy's stable sort without conversion."""
    return size < SMALL_SORT and (dtype in _FLOATS or dtype in _INTEGERS)


def sorted_alone(x: Host, axis: int) -> Host:
    """Return `x` sorted along an axis; zeros of both signs keep their order, NaNs come last."""
    own = numpy_own(x)
    kind, bits = own.dtype.kind, 8 * own.dtype.itemsize
    stable = (
        own.size < SMALL_SORT or kind == "c" or (kind != "f" and bits <= 16)
    )  # stable sorts of 16 bits are radix sorts
    if not stable and kind == "f":  # NumPy's fast sort does not keep signs of zeros
        signs = np.signbit(own[own == 0])
        stable = bool(signs.any()) and not signs.all()
    out = np.sort(own, axis=axis, kind="stable" if stable else None)
    return out if out.dtype == x.dtype else out.astype(x.dtype)


def greatest(x: Host, k: int) -> Host:
    """Return positions of the `k` greatest elements along the last axis, in descending total order; ties in order."""
    keys = ~ordinals(x, False)
    size = keys.shape[-1]
    if size >= LONG_TOP_K and 0 < k < size // 4:
        rows = [_least_of_row(row, k) for row in keys.reshape(-1, size)]
        return np.array(rows, np.intp).reshape(*keys.shape[:-1], k)
    if keys.dtype.itemsize > 4:
        return np.argsort(keys, axis=-1, kind="stable")[..., :k]
    packed = numbered(keys)
    packed.sort(axis=-1)
    return places(packed)[..., :k]


def _least_of_row(keys: Host, k: int) -> Host:
    """Return positions of the `k` least elements of a long vector, in order, by a partition."""
    candidates = np.flatnonzero(keys <= np.partition(keys, k - 1)[k - 1])
    return candidates[np.argsort(keys[candidates], kind="stable")[:k]]
