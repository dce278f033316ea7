"""Operators that need several primitives, or primitives that few programs start with: remainders, powers, shifts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from corejax.extend import Array, Primitive, as_array, dtypes, host_value, remembered
from corejax.extend.messages import api_boundary
from corejax_lax_basic._base.promotion import result_type
from corejax_lax_basic._base.rows import named
from corejax_lax_basic._base.scalars import PYTHON_SCALARS
from corejax_lax_basic._promotion import as_operand, broadcast_operands, promote_operands, yielding_scalar
from corejax_lax_basic.arrays._operator import Binary, constant, operator
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.elementwise.arithmetic import add_p, div_p, mul_p, rem_p, sub_p
from corejax_lax_basic.elementwise.bits import shift_left_p, shift_right_arithmetic_p, shift_right_logical_p
from corejax_lax_basic.elementwise.comparison import eq_p, gt_p, lt_p, ne_p
from corejax_lax_basic.elementwise.logical import and_p, or_p
from corejax_lax_basic.elementwise.powers import integer_pow_p, pow_p
from corejax_lax_basic.elementwise.select import select_n_p
from corejax_lax_basic.elementwise.unary import abs_p, floor_p, is_finite_p

_bool = np.dtype(np.bool_)


def _numbers(x: Any, y: Any, symbol: str) -> list[Any]:
    """Promote the operands of a division with remainder to real numbers; booleans count as integers."""
    if (aval := getattr(x, "aval", None)) is getattr(y, "aval", x) and aval.dtype.kind not in "bc":
        return [x, y]
    dtype = result_type(x, y)
    if dtypes.is_complex(dtype):
        raise TypeError(f"operator {symbol} is not defined for complex numbers; these operands are {dtype.name}")
    return promote_operands(*_as_integers(x, y), name=symbol) if dtype == _bool else promote_operands(x, y, name=symbol)


def _as_integers(*booleans: Any) -> list[Any]:
    """Convert booleans to the default integer dtype, strongly typed, since no operand is weakly typed."""
    return [convert_element_type(x, dtypes.default_int_dtype()) for x in booleans]


def _needs_correction(remainder: Any, divisor: Any) -> Any:
    """Return where truncated and floored division of integers differ: the signs differ, and the remainder is not 0."""
    zero = constant(remainder, 0)
    differs = ne_p.bind(lt_p.bind(remainder, zero), lt_p.bind(divisor, zero))
    return and_p.bind(differs, ne_p.bind(remainder, zero))


def remainder(x: Any, y: Any) -> Any:
    """Compute `x % y`, with the sign of `y`; for integers the remainder by 0 is 0.

    Raises:
        TypeError: the operands are complex.
    """
    x, y = _numbers(x, y, "%")
    if dtypes.is_inexact(x.aval.dtype):
        rest, _, sign = _positive_remainder(x, y)
        return mul_p.bind(rest, sign)
    rest = rem_p.bind(x, y)
    if not (type(y) is Array and not y.aval.shape and host_value(y)):
        rest = select_n_p.bind(eq_p.bind(y, constant(y, 0)), rest, constant(rest, 0))  # XLA's remainder is x
    if dtypes.is_unsigned(rest.aval.dtype):
        return rest
    return select_n_p.bind(_needs_correction(rest, y), rest, add_p.bind(rest, y))


def _positive_remainder(x: Any, y: Any) -> list[Any]:
    """Return `x * sign % abs(y)`, `abs(y)` and the sign of `y` (1 for 0) of floats; the remainder is never -0."""
    negative = lt_p.bind(y, constant(y, 0))
    size, sign = abs_p.bind(y), select_n_p.bind(negative, constant(y, 1), constant(y, -1))
    rest = mul_p.bind(rem_p.bind(x, y), sign)
    missing = select_n_p.bind(lt_p.bind(rest, constant(y, 0)), constant(size, 0), size)
    return [add_p.bind(rest, missing), size, sign]


def floor_divide(x: Any, y: Any) -> Any:
    """Compute `x // y`, rounded down.

    Raises:
        TypeError: the operands are complex.
    """
    x, y = _numbers(x, y, "//")
    if dtypes.is_inexact(x.aval.dtype):
        return _floor_divide_floats(x, y)
    quotient = div_p.bind(x, y)
    if dtypes.is_unsigned(quotient.aval.dtype):
        return quotient
    fix = _needs_correction(rem_p.bind(x, y), y)
    return select_n_p.bind(fix, quotient, sub_p.bind(quotient, constant(quotient, 1)))


def _floor_divide_floats(x: Any, y: Any) -> Any:
    """Compute `floor(x / y)` as the array API defines it, also for zeros and infinities.

    If `x / y` is rounded up to an integer, the result is the integer below it.
    """
    quotient = div_p.bind(x, y)
    floor = floor_p.bind(quotient)
    rest, size, _ = _positive_remainder(x, y)
    is_large = or_p.bind(gt_p.bind(rest, mul_p.bind(size, constant(size, 0.5))), eq_p.bind(rest, size))
    is_above = and_p.bind(eq_p.bind(quotient, floor), and_p.bind(is_large, is_finite_p.bind(y)))
    return select_n_p.bind(is_above, floor, sub_p.bind(floor, constant(floor, 1)))


def divmod_(x: Any, y: Any) -> tuple[Any, Any]:
    """Return `(x // y, x % y)`."""
    return floor_divide(x, y), remainder(x, y)


def power(x: Any, y: Any) -> Any:
    """Compute `x ** y`; if the exponent is a Python or NumPy integer, it is static and the dtype is that of `x`.

    Raises:
        ValueError: an integer is raised to a negative static power.
    """
    if type(y) is not int or type(x) in PYTHON_SCALARS:
        return _power_of_arrays(x, y)
    if x.aval.dtype == _bool:
        x = convert_element_type(x, dtypes.default_int_dtype())
    if y < 0 and not dtypes.is_inexact(x.aval.dtype):
        raise ValueError(
            f"integers to negative integer powers are not integers: {x.aval.str_short()} ** {y}; "
            "convert the base to a floating dtype first"
        )
    return as_array(x) if y == 1 and not dtypes.is_extended(x.aval.dtype) else integer_pow_p.bind(x, y=y)


def _power_of_arrays(x: Any, y: Any) -> Any:
    if type(y) not in PYTHON_SCALARS and dtypes.is_integer(y.aval.dtype):
        x = as_array(x) if type(x) in (float, complex) else x
    arrays = type(x) not in PYTHON_SCALARS and type(y) not in PYTHON_SCALARS
    if arrays and dtypes.is_inexact(x.aval.dtype) and dtypes.is_integer(y.aval.dtype):
        return pow_p.bind(*broadcast_operands(x, y, name="pow"))  # integer exponents are not promoted
    if result_type(x, y) == _bool:
        x, y = _as_integers(x, y)
    return pow_p.bind(*promote_operands(x, y, name="pow"))


@api_boundary
def _pow(self: Any, other: Any) -> Any:
    if type(other) is float and (make := yielding_scalar(self.aval, float)) is not None:
        return pow_p.bind(self, make(other))
    if isinstance(other, np.integer):
        return power(self, int(other))
    other = as_operand(other)
    return other if other is NotImplemented else power(self, other)


def _shift(primitive: Primitive, of_signed: Primitive, symbol: str) -> Binary:
    """Return a shift with promotion; booleans count as integers, and signed numbers may have their own primitive."""

    def apply(x: Any, y: Any) -> Any:
        dtype = result_type(x, y)
        if dtypes.is_inexact(dtype):
            raise TypeError(f"operator {symbol} takes booleans or integers; these operands are {dtype.name}")
        x, y = promote_operands(*(_as_integers(x, y) if dtype == _bool else (x, y)), name=symbol)
        return (primitive if dtypes.is_unsigned(x.aval.dtype) else of_signed).bind(x, y)

    return apply


def _absolute(self: Any) -> Any:
    return self if self.aval.dtype.kind in "bu" else abs_p.bind(self)


OPERATORS: Mapping[str, Any] = {
    **operator("floordiv", remembered(floor_divide, numbers=True)),
    **operator("mod", remembered(remainder, ufunc=np.remainder, ufunc_of="fdbhilqBHILQ", numbers=True)),
    **operator("divmod", remembered(divmod_, numbers=True)),
    **{**operator("pow", power), "__pow__": _pow},
    **operator("lshift", _shift(shift_left_p, shift_left_p, "<<")),
    **operator("rshift", _shift(shift_right_logical_p, shift_right_arithmetic_p, ">>")),
    "__abs__": _absolute,
}
for _name, _function in OPERATORS.items():
    named(_function, _name)
