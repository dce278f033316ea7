"""Arithmetic: neg add sub mul div rem max min pow integer_pow square.

    add : (a[*s], a[*s]) -> a[*s]

Operands of one dtype and shape, or scalars beside arrays; Python scalars and weakly typed arrays take the other
operand's dtype. Each function raises TypeError where dtypes or shapes disagree, and for dtypes not named. Integer
arithmetic wraps around; integer division truncates.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from corejax.extend import (
    Array,
    Primitive,
    ShapedArray,
    as_array,
    defbroadcasting,
    defjvp,
    defjvp_with_result,
    deflinear,
    defvectorized,
    dtypes,
    get_aval,
    is_undef_primal,
    jvp_rules,
    transpose_rules,
)
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.type_rules import (
    ANY,
    NUMERIC,
    REAL,
    check_equal_dtypes,
    check_kind,
    constant,
    joint_shape,
    row,
    spread,
    through_float32,
    unbroadcast,
)
from corejax_lax_basic._operands import promoted
from corejax_lax_basic.conversion.convert import convert_element_type, stop_gradient
from corejax_lax_basic.elementwise import _complex_values as complex_values
from corejax_lax_basic.elementwise.comparison import eq
from corejax_lax_basic.elementwise.logical import bitwise_and
from corejax_lax_basic.elementwise.select import select_n

# -- functions ---------------------------------------------------------------------------------------------


def neg(x: Any) -> Any:
    """`-x`; integer, floating-point or complex, the same dtype out (StableHLO `negate`)."""
    return neg_p.bind(x)


def add(x: Any, y: Any) -> Any:
    """`x + y`; integer, floating-point or complex, the same dtype out (StableHLO `add`)."""
    if getattr(x, "aval", None) is not getattr(y, "aval", x):
        x, y = promoted(x, y)
    return add_p.bind(x, y)


def sub(x: Any, y: Any) -> Any:
    """`x - y`; integer, floating-point or complex, the same dtype out (StableHLO `subtract`)."""
    if getattr(x, "aval", None) is not getattr(y, "aval", x):
        x, y = promoted(x, y)
    return sub_p.bind(x, y)


def mul(x: Any, y: Any) -> Any:
    """`x * y`; integer, floating-point or complex, the same dtype out (StableHLO `multiply`)."""
    if getattr(x, "aval", None) is not getattr(y, "aval", x):
        x, y = promoted(x, y)
    return mul_p.bind(x, y)


def div(x: Any, y: Any) -> Any:
    """`x / y`; integer, floating-point or complex, the same dtype out (StableHLO `divide`).

    Integers are truncated towards zero; `x / 0` is -1 (all bits set) and the least integer over -1 is itself.
    """
    if getattr(x, "aval", None) is not getattr(y, "aval", x):
        x, y = promoted(x, y)
    return div_p.bind(x, y)


def rem(x: Any, y: Any) -> Any:
    """Remainder of truncated division, with the sign of `x`; integer or floating-point (StableHLO `remainder`).

    The remainder by integer 0 is `x`; by floating-point 0 it is NaN.
    """
    if getattr(x, "aval", None) is not getattr(y, "aval", x):
        x, y = promoted(x, y)
    return rem_p.bind(x, y)


def max(x: Any, y: Any) -> Any:
    """The larger of two, NaN if either is; any dtype, complex in lexicographic order (StableHLO `maximum`).

    Operands that tie share the derivative.
    """
    if getattr(x, "aval", None) is not getattr(y, "aval", x):
        x, y = promoted(x, y)
    return max_p.bind(x, y)


def min(x: Any, y: Any) -> Any:
    """The smaller of two, NaN if either is; any dtype, complex in lexicographic order (StableHLO `minimum`).

    Operands that tie share the derivative.
    """
    if getattr(x, "aval", None) is not getattr(y, "aval", x):
        x, y = promoted(x, y)
    return min_p.bind(x, y)


def pow(x: Any, y: Any) -> Any:
    """`x ** y`; integer, floating-point or complex, of the dtype of `x` (StableHLO `power`).

    Args:
        x: base.
        y: exponent: of the dtype of `x`, or integers where `x` is inexact. An integer raised to a negative power
            is 0, except that 1 and -1 have their inverses.

    Raises:
        TypeError: dtypes or shapes disagree.
    """
    if not (dtypes.is_inexact(get_aval(x).dtype) and dtypes.is_integer(get_aval(y).dtype)):
        x, y = promoted(x, y)
    return pow_p.bind(x, y)


def integer_pow(x: Any, y: int) -> Any:
    """`x ** y` for a static Python int `y`; integer, floating-point or complex, the same dtype out.

    Raises:
        TypeError: `y` is not an integer, or is negative for an integer dtype.
    """
    y = operator.index(y)
    return as_array(x) if y == 1 else integer_pow_p.bind(x, y=y)


def square(x: Any) -> Any:
    """`x * x`; integer, floating-point or complex, the same dtype out."""
    return integer_pow_p.bind(x, y=2)


# -- impl rules: StableHLO's meaning on NumPy arrays -------------------------------------------------------


def _div(x: Any, y: Any) -> Any:
    if dtypes.is_inexact(x.dtype):
        return complex_values.divide(x, y)
    quotient = (x - _rem(x, y)) // np.where(y == 0, y.dtype.type(1), y)
    return np.where(y == 0, np.invert(np.zeros_like(y)), quotient)


def _rem(x: Any, y: Any) -> Any:
    if dtypes.is_inexact(x.dtype):
        return np.fmod(x, y)
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, y.dtype.type(1), y)))


def _extremum(of_real: Any, first_wins: Any) -> Any:
    def impl(x: Any, y: Any) -> Any:
        if not dtypes.is_complex(x.dtype):
            return of_real(x, y)
        ties = x.real == y.real
        return np.where(np.where(ties, first_wins(x.imag, y.imag), first_wins(x.real, y.real)), x, y)

    return impl


def _pow(x: Any, y: Any) -> Any:
    if dtypes.is_inexact(x.dtype):
        if y.dtype is not x.dtype:
            y = y.astype(x.dtype)
        if y.size == 1 and y.item() == 0.5 and dtypes.is_float(x.dtype):
            x = _as_base_of_roots(x)
        return complex_values.power(x, y)
    if dtypes.is_unsigned(x.dtype):
        return np.power(x, y)
    # With a negative exponent only 1 and -1 have an integer inverse, which is their power by the parity.
    unit = (x == 1) | (x == -1)
    return np.where((y < 0) & ~unit, x.dtype.type(0), np.power(x, np.where(y < 0, y & 1, y)))


def _as_base_of_roots(x: Any) -> Any:
    """A base for which NumPy's square root is the power 1/2, which is infinite at -inf and 0.0 at -0.0."""
    lowest = x == -np.inf
    return (np.where(lowest, x.dtype.type(np.inf), x) if lowest.any() else x) + x.dtype.type(0)


@through_float32
def _integer_pow(x: Any, *, y: int) -> Any:
    power, base, left = None, x, abs(y)
    while left:
        if left & 1:
            power = base if power is None else power * base
        left >>= 1
        if left:
            base = base * base
    if power is None:
        return np.ones_like(x)
    return _div(np.ones_like(x), power) if y < 0 else power


# -- abstract-eval rules that are not the common one -------------------------------------------------------


@takes("pow", 2)
def _pow_abstract_eval(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    check_kind("pow", x, NUMERIC, "first")
    check_kind("pow", y, NUMERIC, "second")
    if not (dtypes.is_inexact(x.dtype) and dtypes.is_integer(y.dtype)):
        check_equal_dtypes("pow", (x, y))
    return ShapedArray(joint_shape("pow", (x, y)), x.dtype, x.weak_type and y.weak_type)


@takes("integer_pow", 1)
def _integer_pow_abstract_eval(x: ShapedArray, *, y: int) -> ShapedArray:
    check_kind("integer_pow", x, NUMERIC)
    if y < 0 and not dtypes.is_inexact(x.dtype):
        raise TypeError(
            f"integer_pow: an integer cannot be raised to the negative power {y}, got {x.str_short()}; "
            "convert it to a floating-point dtype first, x.astype('float32')"
        )
    return x


# -- primitives --------------------------------------------------------------------------------------------

# fmt: off
neg_p = Primitive(**row("neg", np.negative,                       NUMERIC, neg, linear_in=(0,)))
add_p = Primitive(**row("add", np.add,                            NUMERIC, add, linear_in=(0, 1)))
sub_p = Primitive(**row("sub", np.subtract,                       NUMERIC, sub, linear_in=(0, 1)))
mul_p = Primitive(**row("mul", np.multiply,                       NUMERIC, mul, linear_in=(0, 1)))
div_p = Primitive(**row("div", _div,                              NUMERIC, div, linear_in=(0,)))
rem_p = Primitive(**row("rem", _rem,                              REAL,    rem))
max_p = Primitive(**row("max", _extremum(np.maximum, np.greater), ANY,     max))
min_p = Primitive(**row("min", _extremum(np.minimum, np.less),    ANY,     min))
# fmt: on
pow_p = Primitive("pow", impl=_pow, abstract_eval=_pow_abstract_eval, tags=("elementwise",), doc=pow.__doc__)
integer_pow_p = Primitive(
    "integer_pow",
    impl=_integer_pow,
    abstract_eval=_integer_pow_abstract_eval,
    tags=("elementwise",),
    doc=integer_pow.__doc__,
)

defvectorized(neg_p, integer_pow_p)
defbroadcasting(add_p, sub_p, mul_p, div_p, rem_p, max_p, min_p, pow_p)

# -- derivatives -------------------------------------------------------------------------------------------

deflinear(neg_p, lambda ct, x: [neg(ct)])


def _add_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    out = add_p.bind(*primals)
    s, t = tangents
    if s is not None and t is not None:
        return out, add_p.bind(s, t)
    moving = s if t is None else t
    return out, None if moving is None else spread(moving, out)


def _add_transpose(ct: Any, x: Any, y: Any) -> list[Any]:
    return [unbroadcast(z.aval, ct) if is_undef_primal(z) else None for z in (x, y)]


def _sub_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    out = sub_p.bind(*primals)
    s, t = tangents
    if s is not None and t is not None:
        return out, sub_p.bind(s, t)
    if s is None and t is None:
        return out, None
    return out, spread(s if t is None else neg(t), out)


def _sub_transpose(ct: Any, x: Any, y: Any) -> list[Any]:
    return [
        unbroadcast(x.aval, ct) if is_undef_primal(x) else None,
        unbroadcast(y.aval, neg(ct)) if is_undef_primal(y) else None,
    ]


def _mul_transpose(ct: Any, x: Any, y: Any) -> list[Any]:
    return [
        unbroadcast(x.aval, mul(ct, y)) if is_undef_primal(x) else None,
        unbroadcast(y.aval, mul(x, ct)) if is_undef_primal(y) else None,
    ]


def _div_transpose(ct: Any, x: Any, y: Any) -> list[Any]:
    ct_x = div(ct, y)  # which refuses a divisor that has no value: a quotient is not linear in it
    return [unbroadcast(x.aval, ct_x), None]


def _by_divisor(t: Any, quotient: Any, y: Any) -> Any:
    """Tangent of a quotient by its divisor: `-t quotient / y`."""
    return mul(neg(div(quotient, y)), t)


def _times_taken(t: Any, rest: Any, x: Any, y: Any) -> Any:
    """Tangent of a remainder by its divisor: minus the whole number of times that it was taken, which is a constant."""
    return mul(neg(stop_gradient(div(sub(x, rest), y))), t)


def _share(x: Any, out: Any, y: Any) -> Any:
    """Derivative of a maximum by `x`: 1 where `x` is chosen, 1/2 where `y` ties, else 0."""
    chosen = select_n(eq(y, out), constant(out, 1), constant(out, 0.5))
    return select_n(eq(x, out), constant(out, 0), chosen)


# The derivative of x**y by y counts as zero where x is 0, and so do all that follow from it: there the power is
# constant for y > 0, and the limit of a mixed derivative is infinite or not there. 0**0 is constant in both.


def _unless_zero(x: Any) -> Any:
    return select_n(eq(x, constant(x, 0)), x, constant(x, 1))


def _by_base(t: Any, out: Any, x: Any, y: Any) -> Any:
    """`t y x**(y-1)`, and 0 for 0**0."""
    if not dtypes.is_inexact(get_aval(y).dtype):
        lowered = pow(x, sub(_unless_zero(y), constant(y, 1)))
        return mul(t, mul(convert_element_type(y, get_aval(x).dtype), lowered))
    if type(y) is Array:  # a constant: nothing is differentiated by it
        lowered = pow(x, sub(y if y.ndim == 0 and y.item() else _unless_zero(y), constant(y, 1)))
        return mul(t, mul(y, lowered))
    at_zero = eq(x, constant(x, 0))
    y = select_n(at_zero, y, stop_gradient(y))
    constant_power = bitwise_and(at_zero, eq(y, constant(y, 0)))
    lowered = pow(x, sub(select_n(constant_power, y, constant(y, 1)), constant(y, 1)))
    return mul(t, mul(y, lowered))


def _by_exponent(t: Any, out: Any, x: Any, y: Any) -> Any:
    """`t log(x) x**y`, and 0 where `x` is 0."""
    from corejax_lax_basic.elementwise.unary import log  # whose own derivative is a quotient

    return mul(t, mul(log(_unless_zero(x)), out))


def _integer_pow_jvp(primals: Any, tangents: Any, *, y: int) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    out = integer_pow_p.bind(x, y=y)
    if t is None or y == 0:
        return out, None
    return out, t if y == 1 else mul(mul(constant(x, y), integer_pow(x, y - 1)), t)


jvp_rules.register(add_p, _add_jvp, symbolic_zeros=True)
jvp_rules.register(sub_p, _sub_jvp, symbolic_zeros=True)
jvp_rules.register(integer_pow_p, _integer_pow_jvp, symbolic_zeros=True)
# fmt: off
#                         tangent of operand 0                        tangent of operand 1
defjvp(            mul_p, lambda t, x, y: mul(t, y),                  lambda t, x, y: mul(x, t))
defjvp_with_result(div_p, lambda t, q, x, y: div(t, y),               lambda t, q, x, y: _by_divisor(t, q, y))
defjvp_with_result(rem_p, lambda t, r, x, y: spread(t, r),            _times_taken)
defjvp_with_result(max_p, lambda t, m, x, y: mul(_share(x, m, y), t), lambda t, m, x, y: mul(_share(y, m, x), t))
defjvp_with_result(min_p, lambda t, m, x, y: mul(_share(x, m, y), t), lambda t, m, x, y: mul(_share(y, m, x), t))
defjvp_with_result(pow_p, _by_base,                                   _by_exponent)
# fmt: on
transpose_rules.register(add_p, _add_transpose)
transpose_rules.register(sub_p, _sub_transpose)
transpose_rules.register(mul_p, _mul_transpose)
transpose_rules.register(div_p, _div_transpose)
