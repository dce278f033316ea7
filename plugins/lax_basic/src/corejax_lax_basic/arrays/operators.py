"""Python's operators on arrays and tracers, with NumPy's promotion and broadcasting.

Two operands of one type, and an array with a Python scalar that takes its dtype, go straight to the primitive;
for which types that is right is remembered. Everything else passes through `promote`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from corejax.extend import Primitive, api_boundary, as_array, config, dtypes, frames_left_out, trace_state
from corejax_lax_basic._promotion import (
    PYTHON_SCALARS,
    broadcast_together,
    operand,
    promote,
    scalar_maker,
)
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.elementwise.arithmetic import add_p, div_p, integer_pow_p, mul_p, pow_p, rem_p, sub_p
from corejax_lax_basic.elementwise.comparison import eq_p, ge_p, gt_p, le_p, lt_p, ne_p
from corejax_lax_basic.elementwise.logical import and_p, not_p, or_p, xor_p
from corejax_lax_basic.elementwise.select import select_n_p
from corejax_lax_basic.elementwise.unary import abs_p, floor_p, neg_p, sign_p
from corejax_lax_basic.linear.dot import matmul

Binary = Callable[[Any, Any], Any]

_bool = np.dtype(np.bool_)
_MEMO_LIMIT = 4096

# -- meanings, of operands that `promote.operand` let through --------------------------------------------------


def _elementwise(primitive: Primitive, on_bool: Primitive | None = None, inexact: bool = False) -> Binary:
    """A binary operation; `on_bool` is the primitive for booleans, where that is another one."""

    def apply(x: Any, y: Any) -> Any:
        x, y = promote(primitive.name, x, y, inexact=inexact)
        if on_bool is not None and x.aval.dtype == _bool:
            return on_bool.bind(x, y)
        return primitive.bind(x, y)

    return apply


def _bitwise(primitive: Primitive, symbol: str) -> Binary:
    """A binary operation on booleans and integers."""

    def apply(x: Any, y: Any) -> Any:
        x, y = promote(primitive.name, x, y)
        if dtypes.is_inexact(x.aval.dtype):
            raise TypeError(f"operator {symbol} takes booleans or integers; these operands are {x.aval.dtype.name}")
        return primitive.bind(x, y)

    return apply


def subtract(x: Any, y: Any) -> Any:
    """`x - y`.

    Raises:
        TypeError: the operands are booleans.
    """
    x, y = promote("sub", x, y)
    if x.aval.dtype == _bool:
        raise TypeError("operator - is not defined for booleans; use x ^ y, or convert to an integer dtype first")
    return sub_p.bind(x, y)


def _numbers(x: Any, y: Any, symbol: str) -> list[Any]:
    """Operands of a division with remainder: real numbers, booleans counting as integers."""
    dtype = dtypes.result_type(x, y)
    if dtypes.is_complex(dtype):
        raise TypeError(f"operator {symbol} is not defined for complex numbers; these operands are {dtype.name}")
    return promote(symbol, *_as_integers(x, y)) if dtype == _bool else promote(symbol, x, y)


def _as_integers(*booleans: Any) -> list[Any]:
    """Booleans as strongly typed default integers, since no operand is weakly typed."""
    return [convert_element_type(x, dtypes.default_int_dtype()) for x in booleans]


def _constant(x: Any, value: float) -> Any:
    """A Python number as a scalar of the dtype of `x`."""
    return scalar_maker(x.aval.dtype, x.aval.weak_type)(value)


def _needs_correction(remainder: Any, divisor: Any) -> Any:
    """Where truncated division differs from floored division: signs differ, and something is left."""
    zero = _constant(remainder, 0)
    if dtypes.is_inexact(remainder.aval.dtype):
        return lt_p.bind(mul_p.bind(sign_p.bind(remainder), divisor), zero)
    differs = ne_p.bind(lt_p.bind(remainder, zero), lt_p.bind(divisor, zero))
    return and_p.bind(differs, ne_p.bind(remainder, zero))


def remainder(x: Any, y: Any) -> Any:
    """`x % y`, of the sign of `y`.

    Raises:
        TypeError: the operands are complex.
    """
    x, y = _numbers(x, y, "%")
    rest = rem_p.bind(x, y)
    if dtypes.is_unsigned(rest.aval.dtype):
        return rest
    return select_n_p.bind(_needs_correction(rest, y), rest, add_p.bind(rest, y))


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
    """As NumPy's: infinite (NaN for 0) where `y` is 0, NaN where `x` is infinite."""
    rest = rem_p.bind(x, y)
    rest = select_n_p.bind(eq_p.bind(y, _constant(y, 0)), rest, _constant(rest, 0))
    quotient = div_p.bind(sub_p.bind(x, rest), y)  # an integer but for rounding
    one = _constant(quotient, 1)
    quotient = select_n_p.bind(_needs_correction(rest, y), quotient, sub_p.bind(quotient, one))
    whole = floor_p.bind(quotient)
    rounds_up = gt_p.bind(sub_p.bind(quotient, whole), _constant(quotient, 0.5))
    return select_n_p.bind(rounds_up, whole, add_p.bind(whole, one))


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
    return as_array(x) if y == 1 else integer_pow_p.bind(x, y=y)


def _power_of_arrays(x: Any, y: Any) -> Any:
    arrays = type(x) not in PYTHON_SCALARS and type(y) not in PYTHON_SCALARS
    if arrays and dtypes.is_inexact(x.aval.dtype) and dtypes.is_integer(y.aval.dtype):
        return pow_p.bind(*broadcast_together("pow", [x, y]))  # an integer exponent stays one
    if dtypes.result_type(x, y) == _bool:
        x, y = _as_integers(x, y)
    return pow_p.bind(*promote("pow", x, y))


# -- operators ---------------------------------------------------------------------------------------------------


@api_boundary
def _pow(self: Any, other: Any) -> Any:
    if isinstance(other, np.integer):
        return power(self, int(other))
    other = operand(other)
    return other if other is NotImplemented else power(self, other)


def _plain(name: str, apply: Binary) -> dict[str, Any]:
    """An operator and its reflected one."""

    def forward(self: Any, other: Any) -> Any:
        try:
            other = operand(other)
            return other if other is NotImplemented else apply(self, other)
        except frames_left_out():
            raise

    def reflected(self: Any, other: Any) -> Any:
        try:
            other = operand(other)
            return other if other is NotImplemented else apply(other, self)
        except frames_left_out():
            raise

    return {f"__{name}__": forward, f"__r{name}__": reflected}


def _direct(
    name: str, apply: Binary, primitive: Primitive, fits: Callable[[Any], bool], reflect: bool = True
) -> dict[str, Any]:
    """As `_plain`, with short cuts to `primitive` for operands of one type and for Python scalars.

    Args:
        name: `"add"` for `__add__`.
        apply: what the operator means.
        primitive: what that comes down to for operands of one dtype.
        fits: the dtypes for which it does.
        reflect: whether there is a reflected operator.
    """
    same_type: set[Any] = set()
    scalars: dict[Any, Callable[[Any], Any]] = {}

    def learn(aval: Any, other: Any) -> None:
        """Remember whether the next operands like these may take the short cut."""
        if not fits(aval.dtype):
            return
        if getattr(other, "aval", None) is aval:
            if len(same_type) >= _MEMO_LIMIT:
                same_type.clear()
            same_type.add(aval)
        elif type(other) in PYTHON_SCALARS:
            dtype, weak = dtypes.result_type(aval, other, return_weak_type_flag=True)
            if dtype == aval.dtype and weak == aval.weak_type:
                if len(scalars) >= _MEMO_LIMIT:
                    scalars.clear()
                scalars[aval, type(other), config.default_dtype_bits] = scalar_maker(dtype, weak)

    def forward(self: Any, other: Any) -> Any:
        aval = self.aval
        if getattr(other, "aval", None) is aval and aval in same_type:
            return trace_state.trace.process_primitive(primitive, (self, other), {})[0]
        make = scalars.get((aval, type(other), config.default_dtype_bits))
        if make is not None:
            return trace_state.trace.process_primitive(primitive, (self, make(other)), {})[0]
        try:
            other = operand(other)
            if other is NotImplemented:
                return other
            out = apply(self, other)
        except frames_left_out():
            raise
        learn(aval, other)
        return out

    def reflected(self: Any, other: Any) -> Any:
        make = scalars.get((self.aval, type(other), config.default_dtype_bits))
        if make is not None:
            return trace_state.trace.process_primitive(primitive, (make(other), self), {})[0]
        try:
            other = operand(other)
            if other is NotImplemented:
                return other
            out = apply(other, self)
        except frames_left_out():
            raise
        learn(self.aval, other)
        return out

    pair = {f"__{name}__": forward}
    return {**pair, f"__r{name}__": reflected} if reflect else pair


def _number(dtype: Any) -> bool:
    return bool(dtype != _bool)


def _discrete(dtype: Any) -> bool:
    return not dtypes.is_inexact(dtype)


def _any(dtype: Any) -> bool:
    return True


def _negative(self: Any) -> Any:
    if self.aval.dtype == _bool:
        raise TypeError("operator - is not defined for booleans; use ~x, or convert to an integer dtype first")
    return trace_state.trace.process_primitive(neg_p, (self,), {})[0]


def _positive(self: Any) -> Any:
    return self


def _absolute(self: Any) -> Any:
    return self if self.aval.dtype.kind in "bu" else abs_p.bind(self)


def _invert(self: Any) -> Any:
    if dtypes.is_inexact(self.aval.dtype):
        raise TypeError(f"operator ~ takes booleans or integers; this operand is {self.aval.str_short()}")
    return not_p.bind(self)


def _shift(symbol: str) -> Binary:
    def apply(x: Any, y: Any) -> Any:
        raise NotImplementedError(f"operator {symbol} on arrays needs the shift primitives of a later release")

    return apply


def _comparison(name: str, primitive: Primitive) -> dict[str, Any]:
    return _direct(name, _elementwise(primitive), primitive, _any, reflect=False)


OPERATORS: Mapping[str, Any] = {
    **_direct("add", _elementwise(add_p, on_bool=or_p), add_p, _number),
    **_direct("sub", subtract, sub_p, _number),
    **_direct("mul", _elementwise(mul_p, on_bool=and_p), mul_p, _number),
    **_direct("truediv", _elementwise(div_p, inexact=True), div_p, dtypes.is_inexact),
    **_direct("and", _bitwise(and_p, "&"), and_p, _discrete),
    **_direct("or", _bitwise(or_p, "|"), or_p, _discrete),
    **_direct("xor", _bitwise(xor_p, "^"), xor_p, _discrete),
    **_plain("floordiv", floor_divide),
    **_plain("mod", remainder),
    **_plain("divmod", divmod_),
    **{**_plain("pow", power), "__pow__": _pow},
    **_plain("matmul", matmul),
    **_plain("lshift", _shift("<<")),
    **_plain("rshift", _shift(">>")),
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
    _function.__name__ = _name
