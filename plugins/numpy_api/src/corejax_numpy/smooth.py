"""Smooth functions with formulas that are not smooth, implemented so that derivatives of every order are correct."""

from __future__ import annotations

import math
from typing import Any

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, like, no_out_or_where, promote, promote_dtypes
from corejax_numpy.elementwise import degrees, imag, real
from corejax_numpy.elementwise import where as choose


def _log_of_sum(name: str, x1: Any, x2: Any, exp: Any, unit: float) -> Any:
    """Compute the larger operand plus `log(1 + exp(-distance))`; `unit` is the logarithm of the base.

    The kinks of the maximum and of the distance lie at the same place and cancel.
    """
    x1, x2 = promote(name, x1, x2, inexact=True)
    difference = lax.sub(x1, x2)
    parts = [lax.real(x) if dtypes.is_complex(x.aval.dtype) else x for x in (x1, x2)]
    first = lax.ge(*parts)
    undefined = lax.ne(difference, difference)  # NaN, or infinities of one sign
    distance = choose(first, lax.neg(difference), difference)
    small = lax.log1p(exp(choose(undefined, like(difference, 0), distance)))
    if unit != 1:
        small = lax.div(small, like(small, unit))
    out = choose(undefined, lax.add(x1, x2), lax.add(choose(first, x1, x2), small))
    return _wrapped(out, math.pi / unit) if dtypes.is_complex(out.dtype) else out


def _wrapped(x: Any, limit: float) -> Any:
    """Wrap the imaginary parts of complex numbers to the interval from `-limit` to `limit`."""
    part = lax.imag(x)
    turn = like(part, 2 * limit)
    rest = lax.rem(lax.add(part, like(part, limit)), turn)
    rest = choose(lax.lt(rest, like(rest, 0)), lax.add(rest, turn), rest)
    return lax.complex(lax.real(x), lax.sub(rest, like(rest, limit)))


def logaddexp(x1: Any, x2: Any, /, *, out: Any = None, where: Any = None) -> Any:
    """Compute `log(exp(x1) + exp(x2))`, without overflow."""
    no_out_or_where("logaddexp", out, where)
    return _log_of_sum("logaddexp", x1, x2, lax.exp, 1.0)


def logaddexp2(x1: Any, x2: Any, /, *, out: Any = None, where: Any = None) -> Any:
    """Compute `log2(2**x1 + 2**x2)`, without overflow."""
    no_out_or_where("logaddexp2", out, where)
    return _log_of_sum("logaddexp2", x1, x2, lax.exp2, math.log(2))


def hypot(x1: Any, x2: Any, /) -> Any:
    """Compute `sqrt(x1**2 + x2**2)`, without overflow; infinite if either is infinite, even if the other is NaN.

    Raises:
        ValueError: an argument is complex.
    """
    x1, x2 = promote("hypot", x1, x2, inexact=True)
    if dtypes.is_complex(x1.aval.dtype):
        raise ValueError(f"hypot takes real numbers, got {x1.aval.str_short()}; take the absolute values first")
    x1, x2 = lax.broadcast_operands(lax.abs(x1), lax.abs(x2))
    infinity, one = like(x1, math.inf), like(x1, 1)
    # An infinite operand is the result, even if the other operand is NaN; if both are zero, the result is the larger.
    end = choose(lax.eq(x1, infinity), x1, choose(lax.eq(x2, infinity), x2, lax.max(x1, x2)))
    at_end = lax.bitwise_or(lax.eq(end, infinity), lax.eq(end, like(end, 0)))
    x1, x2 = choose(at_end, one, x1), choose(at_end, one, x2)
    # Derivatives treat the scale as a constant: the maximum has a kink where the operands are equal.
    scale = lax.stop_gradient(lax.max(x1, x2))
    squares = lax.add(lax.square(lax.div(x1, scale)), lax.square(lax.div(x2, scale)))
    return choose(at_end, end, lax.mul(scale, lax.sqrt(squares)))


def sinc(x: Any, /) -> Any:
    """Compute `sin(pi * x) / (pi * x)`, and 1 at 0; a Taylor series near 0, so that no derivative cancels."""
    (x,) = promote_dtypes("sinc", x, inexact=True)
    y = lax.mul(x, like(x, math.pi))
    size = lax.abs(y)
    near = lax.lt(size, like(size, 1 / 16))
    square = lax.square(choose(near, y, like(y, 0)))
    series = like(y, 1 / math.factorial(9))
    for n in (7, 5, 3, 1):  # to order 8 in y: the next term is less than 3e-20
        series = lax.add(lax.mul(series, square), like(y, (-1) ** (n // 2) / math.factorial(n)))
    far = choose(near, like(y, 1), y)
    return choose(near, series, lax.div(lax.sin(far), far))


def i0(x: Any) -> Any:
    """Compute the modified Bessel function of the first kind, of order 0.

    Raises:
        ValueError: `x` is complex.
    """
    (x,) = promote_dtypes("i0", x, inexact=True)
    if dtypes.is_complex(x.dtype):
        raise ValueError(f"i0 takes real numbers, got {x.aval.str_short()}")
    size = lax.mul(x, lax.sign(x))  # the derivative at 0 is 0, as in the derivative of `i0e(x) = exp(-size) * i0(x)`
    first = lax.min(size, lax.full_like(size, 0.98 * math.log(float(dtypes.finfo(size.dtype).max))))
    # The exponential is applied in two steps, because it overflows before the product does.
    return lax.mul(lax.mul(lax.exp(first), lax.bessel_i0e(x)), lax.exp(lax.sub(size, first)))


def angle(z: Any, deg: bool = False) -> Any:
    """Return the argument of complex numbers, in radians, or in degrees if `deg`; 0 or pi for real numbers."""
    z = array_argument("angle", z)
    if not dtypes.is_inexact(z.dtype):
        z = lax.convert_element_type(z, dtypes.default_float_dtype())
    out = lax.atan2(imag(z), real(z))
    return degrees(out) if deg else out
