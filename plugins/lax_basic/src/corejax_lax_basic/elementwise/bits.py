"""Bits of integers: shifts, counts, and the upper half of products.

        shift_left : (i[*s], i[*s]) -> i[*s]        population_count : i[*s] -> i[*s]

Operands have one integer dtype and shape, or are scalars beside arrays; the result is weakly typed if all of them are.
Derivatives are zero. Each function raises TypeError if dtypes or shapes disagree, or if the dtype is no integer.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from corejax.extend import Primitive, defzero, dtypes
from corejax_lax_basic._base.prepared import is_ufunc
from corejax_lax_basic._base.type_rules import INTEGER
from corejax_lax_basic.elementwise._family import binary, bind_joined, unary

__all__: list[str] = []  # rows bring their own names

# Names that derivatives use before their rows define them, declared for type checkers.
mulhi_p: Primitive


@functools.cache
def _width(dtype: np.dtype[Any]) -> int:
    return int(dtypes.iinfo(dtype).bits)


def _unsigned(x: Any) -> Any:
    """View the bits as unsigned integers of a NumPy dtype."""
    bits = _width(x.dtype)
    if bits < 8:  # each number takes a byte and uses its lowest bits
        return x.view(np.uint8) & np.uint8(2**bits - 1)
    return x.view(f"u{x.dtype.itemsize}")


def _signed(x: Any) -> Any:
    """View the bits as two's complement integers of a NumPy dtype."""
    bits = _width(x.dtype)
    if bits < 8:
        return (x.view(np.int8) << (8 - bits)) >> (8 - bits)
    return x.view(f"i{x.dtype.itemsize}")


def _of_bits(x: Any, dtype: np.dtype[Any]) -> Any:
    return x.astype(dtype) if _width(dtype) < 8 else x.view(dtype)


# -- shifts --------------------------------------------------------------------------------------------------------


def _shift_left(x: Any, y: Any) -> Any:
    bits, count = _unsigned(x), _unsigned(y)
    return _of_bits(np.where(count < _width(x.dtype), bits << count, 0).astype(bits.dtype), x.dtype)


@is_ufunc(np.right_shift, "u")
def _shift_right_logical(x: Any, y: Any) -> Any:
    return _of_bits(_unsigned(x) >> _unsigned(y), x.dtype)


def _shift_right_arithmetic(x: Any, y: Any) -> Any:
    count = np.minimum(_unsigned(y), _width(x.dtype) - 1)
    return _of_bits(_signed(x) >> count.astype(_signed(y).dtype), x.dtype)


_shift = (
    "Compute `{}`, with the second operand as the number of bits; integer, the same dtype out (StableHLO `{}`).\n\n{}"
)

shift_left, shift_left_p = binary(
    "shift_left", _shift_left, INTEGER, "shift_left",
    defzero,
    _shift.format("x << y", "shift_left", "The result is 0 if `y` is negative or at least the number of bits."),
)  # fmt: skip

shift_right_logical, shift_right_logical_p = binary(
    "shift_right_logical", _shift_right_logical, INTEGER, "shift_right_logical",
    defzero,
    _shift.format(
        "x >> y", "shift_right_logical",
        "Zeros come in from the left; the result is 0 if `y` is negative or at least the number of bits.",
    ),
)  # fmt: skip

shift_right_arithmetic, shift_right_arithmetic_p = binary(
    "shift_right_arithmetic", _shift_right_arithmetic, INTEGER, "shift_right_arithmetic",
    defzero,
    _shift.format(
        "x >> y", "shift_right_arithmetic",
        "The sign bit comes in from the left; it fills the result if `y` is negative or at least the number of bits.",
    ),
)  # fmt: skip

# -- counts --------------------------------------------------------------------------------------------------------


def _population_count(x: Any) -> Any:
    return np.bitwise_count(_unsigned(x)).astype(x.dtype)


def _clz(x: Any) -> Any:
    bits = _unsigned(x)
    high: Any = (bits >> bits.dtype.type(32)).astype(np.uint32) if bits.dtype.itemsize == 8 else 0
    length = np.frexp(bits.astype(np.uint32).astype(np.float64))[1]  # number of bits up to the highest one
    if bits.dtype.itemsize == 8:
        length = np.where(high, 32 + np.frexp(high.astype(np.float64))[1], length)
    return (_width(x.dtype) - length).astype(x.dtype)


population_count, population_count_p = unary(
    "population_count", _population_count, INTEGER, None,
    defzero,
    "Count the bits that are set, in the dtype of `x`; integer (StableHLO `popcnt`).",
)  # fmt: skip

clz, clz_p = unary(
    "clz", _clz, INTEGER, "count_leading_zeros",
    defzero,
    "Count the zeros before the highest set bit, in the dtype of `x`; integer (StableHLO `count_leading_zeros`).",
)  # fmt: skip

# -- mulhi ---------------------------------------------------------------------------------------------------------


def _mulhi(x: Any, y: Any) -> Any:
    unsigned, bits = dtypes.is_unsigned(x.dtype), _width(x.dtype)
    if bits < 64:
        wide = np.uint64 if unsigned else np.int64
        return ((x.astype(wide) * y.astype(wide)) >> wide(bits)).astype(x.dtype)
    high = _mulhi_uint64(_unsigned(x), _unsigned(y))
    if unsigned:
        return high
    # As two's complement, a negative factor is too large by 2**64.
    return high.view(np.int64) - np.where(x < 0, y, 0) - np.where(y < 0, x, 0)


def _mulhi_uint64(x: Any, y: Any) -> Any:
    """Multiply by halves of the factors (Knuth, The Art of Computer Programming, 4.3.1)."""
    half, mask = np.uint64(32), np.uint64(2**32 - 1)
    x_high, x_low, y_high, y_low = x >> half, x & mask, y >> half, y & mask
    middle = x_high * y_low + ((x_low * y_low) >> half)
    other = x_low * y_high + (middle & mask)
    return x_high * y_high + (middle >> half) + (other >> half)


mulhi, mulhi_p = binary(
    "mulhi", _mulhi, INTEGER, None,
    defzero,
    "Return the upper half of the bits of `x * y`; integer, the same dtype out.",
    lambda x, y, /: bind_joined(mulhi_p, x, y),
)  # fmt: skip
