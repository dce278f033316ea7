"""Python's operators on arrays and tracers, with NumPy's promotion and broadcasting.

Two operands of one type, and an array with a Python scalar that yields to it, go straight to the primitive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from corejax.extend import Array, Primitive, api_boundary, as_array, dtypes, frames_left_out, quick_bind, remembered
from corejax_lax_basic._base.rows import named
from corejax_lax_basic._base.scalars import PYTHON_SCALARS, beyond, scalar_maker
from corejax_lax_basic._promotion import as_operand, broadcast_operands, promote_operands, yielding_scalar
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.elementwise.arithmetic import add_p, div_p, mul_p, neg_p, rem_p, sub_p
from corejax_lax_basic.elementwise.bits import shift_left_p, shift_right_arithmetic_p, shift_right_logical_p
from corejax_lax_basic.elementwise.comparison import eq_p, ge_p, gt_p, le_p, lt_p, ne_p
from corejax_lax_basic.elementwise.logical import and_p, not_p, or_p, xor_p
from corejax_lax_basic.elementwise.powers import integer_pow_p, pow_p
from corejax_lax_basic.elementwise.select import select_n_p
from corejax_lax_basic.elementwise.unary import abs_p, floor_p, sign_p

Binary = Callable[[Any, Any], Any]

_bool = np.dtype(np.bool_)

# -- meanings, of operands that `as_operand` let through --------------------------------------------------


def _elementwise(primitive: Primitive, on_bool: Primitive | None = None, inexact: bool = False) -> Binary:
    """A binary operation; `on_bool` is the primitive for booleans, where that is another one."""

    def apply(x: Any, y: Any) -> Any:
        x, y = promote_operands(x, y, inexact=inexact, name=primitive.name)
        if on_bool is not None and x.aval.dtype == _bool:
            return on_bool.bind(x, y)
        return primitive.bind(x, y)

    return apply


def _compare(primitive: Primitive) -> Binary:
    """A comparison; with a Python integer that the dtype does not hold, all elements are on one side of it."""

    def apply(x: Any, y: Any) -> Any:
        if {_dtype_of(x), _dtype_of(y)} == _LONGEST and dtypes.is_inexact(dtypes.result_type(x, y)):
            return _compare_exactly(primitive, *broadcast_operands(x, y, name=primitive.name))
        try:
            x, y = promote_operands(x, y, name=primitive.name)
        except OverflowError:
            side = beyond(y, x.aval.dtype)
            if not side:
                raise
            holds = primitive is ne_p or primitive in ((lt_p, le_p) if side > 0 else (gt_p, ge_p))
            return (ge_p if holds else lt_p).bind(x, _constant(x, int(dtypes.iinfo(x.aval.dtype).min)))
        return primitive.bind(x, y)

    return apply


_LONGEST = {np.dtype(np.int64), np.dtype(np.uint64)}  # what they promote to does not hold all of them
_MIRRORED = {lt_p: gt_p, le_p: ge_p, gt_p: lt_p, ge_p: le_p, eq_p: eq_p, ne_p: ne_p}


def _dtype_of(x: Any) -> Any:
    return None if type(x) in PYTHON_SCALARS else x.aval.dtype


def _compare_exactly(primitive: Primitive, x: Any, y: Any) -> Any:
    """A comparison of signed and unsigned integers: what is negative is less, and the others are unsigned."""
    if dtypes.is_unsigned(x.aval.dtype):
        x, y, primitive = y, x, _MIRRORED[primitive]
    negative = lt_p.bind(x, _constant(x, 0))
    found = primitive.bind(convert_element_type(x, y.aval.dtype), y)
    if primitive in (lt_p, le_p, ne_p):
        return or_p.bind(found, negative)
    return and_p.bind(found, not_p.bind(negative))


def _bitwise(primitive: Primitive, symbol: str) -> Binary:
    """A binary operation on booleans and integers."""

    def apply(x: Any, y: Any) -> Any:
        x, y = promote_operands(x, y, name=primitive.name)
        if dtypes.is_inexact(x.aval.dtype):
            raise TypeError(f"operator {symbol} takes booleans or integers; these operands are {x.aval.dtype.name}")
        return primitive.bind(x, y)

    return apply


def subtract(x: Any, y: Any) -> Any:
    """`x - y`.

    Raises:
        TypeError: the operands are booleans.
    """
    x, y = promote_operands(x, y, name="sub")
    if x.aval.dtype == _bool:
        raise TypeError("operator - is not defined for booleans; use x ^ y, or convert to an integer dtype first")
    return sub_p.bind(x, y)


def _numbers(x: Any, y: Any, symbol: str) -> list[Any]:
    """Operands of a division with remainder: real numbers, booleans counting as integers."""
    if (aval := getattr(x, "aval", None)) is getattr(y, "aval", x) and aval.dtype.kind not in "bc":
        return [x, y]
    dtype = dtypes.result_type(x, y)
    if dtypes.is_complex(dtype):
        raise TypeError(f"operator {symbol} is not defined for complex numbers; these operands are {dtype.name}")
    return promote_operands(*_as_integers(x, y), name=symbol) if dtype == _bool else promote_operands(x, y, name=symbol)


def _as_integers(*booleans: Any) -> list[Any]:
    """Booleans as strongly typed default integers, since no operand is weakly typed."""
    return [convert_element_type(x, dtypes.default_int_dtype()) for x in booleans]


def _constant(x: Any, value: float) -> Any:
    """A Python number as a scalar of the dtype of `x`."""
    return scalar_maker(x.aval.dtype, x.aval.weak_type)(value)


def _needs_correction(remainder: Any, divisor: Any) -> Any:
    """Where truncated division of integers differs from floored division: signs differ, and something is left."""
    zero = _constant(remainder, 0)
    differs = ne_p.bind(lt_p.bind(remainder, zero), lt_p.bind(divisor, zero))
    return and_p.bind(differs, ne_p.bind(remainder, zero))


def remainder(x: Any, y: Any) -> Any:
    """`x % y`, of the sign of `y`.

    Raises:
        TypeError: the operands are complex.
    """
    x, y = _numbers(x, y, "%")
    if dtypes.is_inexact(x.aval.dtype):
        rest, _, sign = _positive_remainder(x, y)
        return mul_p.bind(rest, sign)
    rest = rem_p.bind(x, y)
    if dtypes.is_unsigned(rest.aval.dtype):
        return rest
    return select_n_p.bind(_needs_correction(rest, y), rest, add_p.bind(rest, y))


def _positive_remainder(x: Any, y: Any) -> list[Any]:
    """`x * sign(y) % abs(y)`, `abs(y)` and `sign(y)`, of floating-point numbers; a remainder of zero is never -0."""
    size, sign = abs_p.bind(y), sign_p.bind(y)
    rest = mul_p.bind(rem_p.bind(x, y), sign)
    missing = select_n_p.bind(lt_p.bind(rest, _constant(y, 0)), _constant(size, 0), size)
    return [add_p.bind(rest, missing), size, sign]


def floor_divide(x: Any, y: Any) -> Any:
    """`x // y`, rounded down.

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
    return select_n_p.bind(fix, quotient, sub_p.bind(quotient, _constant(quotient, 1)))


def _floor_divide_floats(x: Any, y: Any) -> Any:
    """`floor(x / y)`, where the quotient has not been rounded up to an integer, with the array API's signs of zeros.

    As in NumPy infinite (NaN for 0) where `y` is 0, NaN where else `x` is infinite, and 0 or -1 where `y` is.
    """
    quotient = div_p.bind(x, y)
    floor = floor_p.bind(quotient)
    rest, size, _ = _positive_remainder(x, y)
    much = or_p.bind(gt_p.bind(rest, mul_p.bind(size, _constant(size, 0.5))), eq_p.bind(rest, size))
    is_above = and_p.bind(eq_p.bind(quotient, floor), much)
    below = select_n_p.bind(is_above, floor, sub_p.bind(floor, _constant(floor, 1)))
    is_infinite = and_p.bind(ne_p.bind(rest, rest), ne_p.bind(size, _constant(size, 0)))
    return select_n_p.bind(is_infinite, below, sub_p.bind(floor, floor))


def matmul(x: Any, y: Any) -> Any:
    """`x @ y`."""
    from corejax_lax_basic.linear import dot  # which few first operations need

    return dot.matmul(x, y)


def divmod_(x: Any, y: Any) -> tuple[Any, Any]:
    """`(x // y, x % y)`."""
    return floor_divide(x, y), remainder(x, y)


def power(x: Any, y: Any) -> Any:
    """`x ** y`; a Python or NumPy integer as exponent is static, and the dtype that of `x`.

    Raises:
        ValueError: an integer to a negative static power.
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
        return pow_p.bind(*broadcast_operands(x, y, name="pow"))  # an integer exponent stays one
    if dtypes.result_type(x, y) == _bool:
        x, y = _as_integers(x, y)
    return pow_p.bind(*promote_operands(x, y, name="pow"))


# -- operators ---------------------------------------------------------------------------------------------------


@api_boundary
def _pow(self: Any, other: Any) -> Any:
    if type(other) is float and (make := yielding_scalar(self.aval, float)) is not None:
        return pow_p.bind(self, make(other))
    if isinstance(other, np.integer):
        return power(self, int(other))
    other = as_operand(other)
    return other if other is NotImplemented else power(self, other)


def _nowhere(dtype: Any) -> bool:
    return False


def _not_taken(other: Any, name: str) -> Any:
    """NotImplemented, so that the other operand's type is asked; lists would repeat, join or be unequal."""
    if type(other) in (list, tuple, set, dict):
        raise TypeError(
            f"{name} takes arrays and scalars, got {type(other).__name__}; make it an array with corejax.numpy.asarray"
        )
    return NotImplemented


def _operator(
    name: str, apply: Binary, primitive: Primitive = add_p, fits: Callable[[Any], bool] = _nowhere
) -> dict[str, Any]:
    """An operator and its reflected one.

    Args:
        name: `"add"` for `__add__`.
        apply: what the operator means.
        primitive: what that comes down to for operands of one type, and for Python scalars that yield.
        fits: the dtypes for which it does.
    """
    direct = frozenset(filter(fits, dtypes.LONG_NAMES.values()))
    bind = quick_bind(primitive, 2)

    promoted = remembered(apply)  # of arrays of several dtypes

    @remembered
    def broadcast(x: Any, y: Any) -> Any:
        return primitive.bind(*broadcast_operands(x, y, name=primitive.name))

    def forward(self: Any, other: Any) -> Any:
        aval = self.aval
        if aval.dtype in direct:
            other_aval = getattr(other, "aval", None)
            if other_aval is aval:
                return bind(self, other)
            if other_aval is None:
                if (make := yielding_scalar(aval, type(other))) is not None:
                    try:
                        scalar = make(other)
                    except OverflowError:
                        return apply(self, other)
                    return bind(self, scalar)
            elif other_aval.dtype is aval.dtype:
                if not aval.shape or not other_aval.shape or other_aval.shape == aval.shape:
                    return bind(self, other)
                try:
                    return broadcast(self, other)
                except frames_left_out():
                    raise
        try:
            if type(other) is Array:
                return promoted(self, other)
            given, other = other, as_operand(other)
            return _not_taken(given, name) if other is NotImplemented else apply(self, other)
        except frames_left_out():
            raise

    def reflected(self: Any, other: Any) -> Any:
        if self.aval.dtype in direct and (make := yielding_scalar(self.aval, type(other))) is not None:
            return bind(make(other), self)
        try:
            given, other = other, as_operand(other)
            return _not_taken(given, name) if other is NotImplemented else apply(other, self)
        except frames_left_out():
            raise

    return {f"__{name}__": forward, f"__r{name}__": reflected}


def _number(dtype: Any) -> bool:
    return bool(dtype != _bool)


def _discrete(dtype: Any) -> bool:
    return not dtypes.is_inexact(dtype)


def _any(dtype: Any) -> bool:
    return True


def _negative(self: Any) -> Any:
    if self.aval.dtype == _bool:
        raise TypeError("operator - is not defined for booleans; use ~x, or convert to an integer dtype first")
    return neg_p.bind(self)


def _positive(self: Any) -> Any:
    return self


def _absolute(self: Any) -> Any:
    return self if self.aval.dtype.kind in "bu" else abs_p.bind(self)


def _invert(self: Any) -> Any:
    if dtypes.is_inexact(self.aval.dtype):
        raise TypeError(f"operator ~ takes booleans or integers; this operand is {self.aval.str_short()}")
    return not_p.bind(self)


def _shift(primitive: Primitive, of_signed: Primitive, symbol: str) -> Binary:
    """A shift, where booleans count as integers; signed numbers have a primitive of their own."""

    def apply(x: Any, y: Any) -> Any:
        dtype = dtypes.result_type(x, y)
        if dtypes.is_inexact(dtype):
            raise TypeError(f"operator {symbol} takes booleans or integers; these operands are {dtype.name}")
        x, y = promote_operands(*(_as_integers(x, y) if dtype == _bool else (x, y)), name=symbol)
        return (primitive if dtypes.is_unsigned(x.aval.dtype) else of_signed).bind(x, y)

    return apply


def _comparison(name: str, primitive: Primitive) -> dict[str, Any]:
    both = _operator(name, _compare(primitive), primitive, _any)
    return {f"__{name}__": both[f"__{name}__"]}


OPERATORS: Mapping[str, Any] = {
    **_operator("add", _elementwise(add_p, on_bool=or_p), add_p, _number),
    **_operator("sub", subtract, sub_p, _number),
    **_operator("mul", _elementwise(mul_p, on_bool=and_p), mul_p, _number),
    **_operator("truediv", _elementwise(div_p, inexact=True), div_p, dtypes.is_inexact),
    **_operator("and", _bitwise(and_p, "&"), and_p, _discrete),
    **_operator("or", _bitwise(or_p, "|"), or_p, _discrete),
    **_operator("xor", _bitwise(xor_p, "^"), xor_p, _discrete),
    **_operator("floordiv", remembered(floor_divide, numbers=True)),
    **_operator("mod", remembered(remainder, ufunc=np.remainder, ufunc_of="fd", numbers=True)),
    **_operator("divmod", remembered(divmod_, numbers=True)),
    **{**_operator("pow", power), "__pow__": _pow},
    **_operator("matmul", remembered(matmul)),
    **_operator("lshift", _shift(shift_left_p, shift_left_p, "<<")),
    **_operator("rshift", _shift(shift_right_logical_p, shift_right_arithmetic_p, ">>")),
    **_comparison("eq", eq_p),
    **_comparison("ne", ne_p),
    **_comparison("lt", lt_p),
    **_comparison("le", le_p),
    **_comparison("gt", gt_p),
    **_comparison("ge", ge_p),
    "__neg__": _negative,
    "__pos__": _positive,
    "__abs__": _absolute,
    "__invert__": _invert,
}
for _name, _function in OPERATORS.items():
    named(_function, _name)
