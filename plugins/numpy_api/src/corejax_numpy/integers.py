"""Functions of integers: shifts, bit counts, greatest common divisor and least common multiple."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, like, promote
from corejax_numpy.elementwise import absolute, where


def _integers(name: str, *xs: Any) -> list[Any]:
    """Return arguments as integers of one dtype and shape; booleans are converted to default integers.

    Raises:
        TypeError: the arguments are not integers.
    """
    arrays = promote(name, *xs)
    dtype = arrays[0].aval.dtype
    if dtypes.is_bool(dtype):
        return [lax.convert_element_type(x, dtypes.default_int_dtype()) for x in arrays]
    if not dtypes.is_integer(dtype):
        raise TypeError(f"{name} takes integers, got {' and '.join(x.aval.str_short() for x in arrays)}")
    return arrays


def left_shift(x: Any, y: Any, /) -> Any:
    """Compute `x << y`; 0 if `y` is negative, or not less than the number of bits."""
    return lax.shift_left(*_integers("left_shift", x, y))


def right_shift(x1: Any, x2: Any, /) -> Any:
    """Compute `x1 >> x2`; for signed integers the sign bit is shifted in."""
    x1, x2 = _integers("right_shift", x1, x2)
    unsigned = dtypes.is_unsigned(x1.aval.dtype)
    return lax.shift_right_logical(x1, x2) if unsigned else lax.shift_right_arithmetic(x1, x2)


def bitwise_count(x: Any, /) -> Any:
    """Count the bits that are set in `abs(x)`; the result has dtype uint8."""
    (x,) = _integers("bitwise_count", x)
    return lax.convert_element_type(lax.population_count(absolute(x)), np.uint8)


def _magnitudes(name: str, x1: Any, x2: Any) -> list[Any]:
    """Return absolute values in one dtype and shape.

    Raises:
        ValueError: the arguments are not integers.
    """
    x1, x2 = promote(name, array_argument(name, x1), array_argument(name, x2, 1))
    if not dtypes.is_integer(x1.aval.dtype):
        raise ValueError(f"{name} takes integers, got {x1.aval.str_short()} and {x2.aval.str_short()}")
    shape = lax.broadcast_shapes(x1.aval.shape, x2.aval.shape)
    return [lax.broadcast_to(absolute(x), shape) for x in (x1, x2)]


def _remain(pair: tuple[Any, Any]) -> Any:
    _, y = pair
    return lax.reduce_or(lax.ne(y, like(y, 0)), tuple(range(y.aval.ndim)))


def _euclid(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    x, y = pair
    done = lax.eq(y, like(y, 0))
    rest = lax.rem(x, where(done, like(y, 1), y))
    return where(done, x, y), where(done, y, rest)


def gcd(x1: Any, x2: Any) -> Any:
    """Compute the greatest common divisor of the absolute values (Euclid's algorithm); 0 if both are 0.

    Raises:
        ValueError: the arguments are not integers.
    """
    divisor = lax.while_loop(_remain, _euclid, tuple(_magnitudes("gcd", x1, x2)))[0]
    return divisor if dtypes.is_unsigned(divisor.dtype) else lax.abs(divisor)  # the least integer has no absolute value


def lcm(x1: Any, x2: Any) -> Any:
    """Compute the least common multiple of the absolute values; 0 if either is 0.

    Raises:
        ValueError: the arguments are not integers.
    """
    x1, x2 = _magnitudes("lcm", x1, x2)
    divisor = gcd(x1, x2)
    zero = lax.eq(divisor, like(divisor, 0))
    return where(zero, divisor, lax.mul(x1, lax.div(x2, where(zero, like(divisor, 1), divisor))))
