"""Floats of 16 and fewer bits, in which NumPy converts each element and rounds after each step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import dtypes
from corejax_lax_basic._speed import NARROWED_BYTES, WIDENED, WIDENED_HALVES, has_vectors

# Done in float32 for what takes several steps.
NARROW_FLOATS = frozenset(d for d in dtypes.LONG_NAMES.values() if dtypes.is_float(d) and d.itemsize < 4)

_BFLOAT16, _FLOAT16 = np.dtype(dtypes.bfloat16), np.dtype(np.float16)
_ABOVE_HALVES = 65536.0
_NEVER = 1 << 62  # elements


def widened(x: Any) -> Any:
    """An array of narrow floats in float32; one of another dtype converted as NumPy does it."""
    dtype = x.dtype
    repeated = [stride == 0 and size > 1 for stride, size in zip(x.strides, x.shape, strict=True)]
    if True in repeated and x.size >= WIDENED:  # each element that is repeated once
        ones = x[tuple([slice(0, 1) if of_one else slice(None) for of_one in repeated])]
        return np.broadcast_to(widened(ones), x.shape)
    if dtype.itemsize == 1 and dtype in NARROW_FLOATS and x.size >= WIDENED:
        return _in_float32(dtype).take(x.view(np.uint8), mode="wrap")
    if dtype is _FLOAT16 and x.size >= WIDENED_HALVES:
        return _widened_halves(x)
    return x.astype(np.float32)


@functools.cache
def _in_float32(dtype: np.dtype[Any]) -> Any:
    """All numbers of a dtype of 8 and fewer bits, by their bits."""
    return np.arange(1 << dtypes.finfo(dtype).bits, dtype=np.uint8).view(dtype).astype(np.float32)


def _widened_halves(x: Any) -> Any:
    """Bits of float16 moved to where float32 has them, and the exponent mended by a product, which is exact."""
    bits = x.view(np.int16).astype(np.int32)  # copies of the sign stand before it, and are masked
    np.left_shift(bits, 13, bits)
    np.bitwise_and(bits, np.int32(-0x70002000), bits)
    out = bits.view(np.float32)
    np.multiply(out, np.float32(2.0**112), out)
    finite = out.max() < _ABOVE_HALVES and out.min() > -_ABOVE_HALVES
    return out if finite else x.astype(np.float32)


def narrowed(x: Any, dtype: np.dtype[Any]) -> Any:
    """An array of float32, or another one, rounded to a dtype as NumPy does it."""
    if dtype.itemsize == 1 and x.size >= NARROWED_BYTES and dtype in NARROW_FLOATS:
        if x.dtype in NARROW_FLOATS:
            return _by_bits(x.dtype, dtype).take(x.view(f"u{x.dtype.itemsize}"), mode="wrap").view(dtype)
        if x.dtype == np.float32:
            return _narrowed_to_bytes(x, dtype)
    if dtype is _FLOAT16 and x.dtype == np.float32 and x.size >= 2 * WIDENED_HALVES:
        return _narrowed_to_halves(x)
    return x.astype(dtype)


def _narrowed_to_bytes(x: Any, dtype: np.dtype[Any]) -> Any:
    """By the first 16 bits, those of a bfloat16, the last of which is set where one that is cut off is.

    That makes no number a tie, nor moves it over one: the dtype has fewer digits by two at least.
    """
    bits = x.view(np.uint32)
    rest = np.bitwise_and(bits, np.uint32(0xFFFF))
    np.add(rest, np.uint32(0xFFFF), rest)
    np.bitwise_or(rest, bits, rest)
    np.right_shift(rest, 16, rest)
    return _by_bits(_BFLOAT16, dtype).take(rest.astype(np.uint16), mode="wrap").view(dtype)


@functools.cache
def _by_bits(dtype: np.dtype[Any], narrower: np.dtype[Any]) -> Any:
    """The bits in one dtype of all numbers of another one, by theirs."""
    numbers = np.arange(1 << dtypes.finfo(dtype).bits, dtype=f"u{dtype.itemsize}").view(dtype)
    return numbers.astype(np.float32).astype(narrower).view(np.uint8)


def _narrowed_to_halves(x: Any) -> Any:
    """Rounded by adding a power of two whose last digits are float16's; the last bits of that sum are the fraction.

    Fraction, exponent and sign are joined by sums, of which 16 bits count. Numbers below the least normal one are
    counted in its last digits, and what is rounded up beyond the largest gets the bits of infinity.
    """
    size = np.abs(x)
    if not size.max() < _ABOVE_HALVES:
        return x.astype(np.float16)
    power = np.maximum(size, np.float32(2.0**-14))
    bits, exponent = size.view(np.int32), power.view(np.int32)
    np.bitwise_and(exponent, np.int32(0x7F800000), exponent)
    np.multiply(power, np.float32(8192 + 2), power)  # 2: the difference of biases, where the fraction's bits are
    np.add(size, power, size)
    np.add(bits, np.right_shift(exponent, 13, exponent), bits)
    sign = np.right_shift(x.view(np.int32), 16, exponent)
    np.add(bits, np.bitwise_and(sign, np.int32(0x8000), sign), bits)
    return bits.astype(np.uint16).view(np.float16)


def through_float32(f: Callable[..., Any]) -> Callable[..., Any]:
    """An impl rule that computes floats of 16 and fewer bits in float32 and rounds once, at the end."""

    @functools.wraps(f)
    def impl(*arrays: Any, **params: Any) -> Any:
        dtype = arrays[0].dtype
        if dtype not in NARROW_FLOATS:
            return f(*arrays, **params)
        return narrowed(np.asarray(f(*map(widened, arrays), **params)), dtype)

    return impl


def many_through_float32(f: Any, ufunc: np.ufunc | None = None) -> Any:
    """An impl rule that is a ufunc (see `prepared.is_ufunc`), and computes many narrow floats in float32.

    NumPy computes and rounds them one by one, in several times as long. Other rules are given back, but those that do
    the same by the step, as `ufunc` does it.
    """
    ufunc = ufunc or (f if type(f) is np.ufunc else getattr(f, "ufunc", None))
    if ufunc is None or ufunc in _OF_BITS:
        return f
    prepare = getattr(f, "prepared", None)
    least = dict.fromkeys(NARROW_FLOATS, WIDENED)
    least[_FLOAT16] = _NEVER if has_vectors(ufunc, "float16") else WIDENED_HALVES

    @functools.wraps(f)
    def impl(*arrays: Any, **params: Any) -> Any:
        dtype = arrays[0].dtype
        if dtype not in least or max([x.size for x in arrays]) < least[dtype]:
            return f(*arrays, **params)
        out = f(*map(widened, arrays), **params)
        return narrowed(out, dtype) if out.dtype == np.float32 else out  # comparisons give booleans

    def prepared(avals: Any, **params: Any) -> Any:
        if max([x.size for x in avals]) >= least.get(avals[0].dtype, _NEVER):
            return None
        return ufunc if prepare is None else prepare(avals, **params)

    impl.prepared = prepared  # type: ignore[attr-defined]
    return impl


_OF_BITS = frozenset({np.absolute, np.negative})  # which NumPy does as quickly
