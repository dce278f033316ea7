"""Powers: pow integer_pow square one_minus_square reciprocal.

pow : (a[*s], a[*s]) -> a[*s]
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import (
    Array,
    Primitive,
    ShapedArray,
    as_array,
    defbroadcasting,
    defjvp_with_result,
    defvectorized,
    dtypes,
    get_aval,
    impl_rules,
    jvp_rules,
)
from corejax.extend.speed import HostCode
from corejax_lax_basic import _speed
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import integer
from corejax_lax_basic._base.derivatives import tangents
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS, through_float32
from corejax_lax_basic._base.type_rules import NUMERIC, check_equal_dtypes, check_kind, joint_shape
from corejax_lax_basic._promotion import ones_repeated, scalars_yield
from corejax_lax_basic._speed import HIGH, MANY_POWERS
from corejax_lax_basic.conversion.convert import convert_element_type, stop_gradient
from corejax_lax_basic.elementwise import _complex_values
from corejax_lax_basic.elementwise._family import constant, unary
from corejax_lax_basic.elementwise.arithmetic import mul, sub
from corejax_lax_basic.elementwise.comparison import eq
from corejax_lax_basic.elementwise.logical import bitwise_and
from corejax_lax_basic.elementwise.select import select_n
from corejax_lax_basic.elementwise.unary import log

if TYPE_CHECKING:
    from corejax_lax_basic._base.prepared import Avals

__all__ = ["integer_pow", "integer_pow_p", "pow", "pow_p", "reciprocal"]

# -- pow -----------------------------------------------------------------------------------------------------------


def pow(x: Any, y: Any) -> Any:
    """Compute `x ** y`; integer, floating-point or complex, in the dtype of `x` (StableHLO `power`).

    Args:
        x: base.
        y: exponent, of the dtype of `x`; it may be an integer array if `x` is inexact. An integer raised to a
            negative power is 0, except that 1 and -1 have their inverses.

    Raises:
        TypeError: dtypes or shapes disagree.
    """
    if not (dtypes.is_inexact(get_aval(x).dtype) and dtypes.is_integer(get_aval(y).dtype)):
        x, y = scalars_yield(x, y)
    return pow_p.bind(*ones_repeated(x, y))


def _pow(x: Any, y: Any) -> Any:
    if dtypes.is_inexact(x.dtype):
        if y.dtype is not x.dtype:
            y = y.astype(x.dtype)
        if y.size == 1 and y.item() == 0.5 and dtypes.is_float(x.dtype):
            x = _as_base_of_roots(x)
        if x.dtype == np.float32 and max(x.size, y.size) >= MANY_POWERS and (y.max() > HIGH or y.min() < -HIGH):
            return np.power(x.astype(np.float64), y).astype(np.float32)
        return _complex_values.power(x, y)
    if dtypes.is_unsigned(x.dtype):
        return np.power(x, y)
    # With a negative exponent only 1 and -1 have an integer inverse: their power by the parity of the exponent.
    unit = (x == 1) | (x == -1)
    return np.where((y < 0) & ~unit, x.dtype.type(0), np.power(x, np.where(y < 0, y & 1, y)))


def _as_base_of_roots(x: Any) -> Any:
    """Return a base of which NumPy's square root equals the power 1/2: infinite at -inf, and 0.0 at -0.0."""
    lowest = x == -np.inf
    return (np.where(lowest, x.dtype.type(np.inf), x) if lowest.any() else x) + x.dtype.type(0)


@takes("pow", 2)
def _pow_abstract_eval(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    check_kind("pow", x, NUMERIC, "first")
    check_kind("pow", y, NUMERIC, "second")
    if not (dtypes.is_inexact(x.dtype) and dtypes.is_integer(y.dtype)):
        check_equal_dtypes("pow", (x, y))
    return ShapedArray(joint_shape("pow", (x, y)), x.dtype, x.weak_type and y.weak_type)


pow_p = Primitive("pow", abstract_eval=_pow_abstract_eval, tags=("elementwise",), doc=pow.__doc__)
impl_rules.register(pow_p, _pow, large=_speed.elementwise("pow"))
defbroadcasting(pow_p)

# The derivative of x**y by y counts as zero if x is 0, and so do all derivatives of it: the power is constant there
# for y > 0, and the limit of a mixed derivative may be infinite. 0**0 is constant in both operands.


def _unless_zero(x: Any) -> Any:
    return select_n(eq(x, constant(x, 0)), x, constant(x, 1))


def _by_base(t: Any, out: Any, x: Any, y: Any) -> Any:
    """Return the tangent `t y x**(y-1)`, and 0 for 0**0."""
    if not dtypes.is_inexact(get_aval(y).dtype):
        lowered = pow(x, sub(_unless_zero(y), constant(y, 1)))
        return mul(t, mul(convert_element_type(y, get_aval(x).dtype), lowered))
    if type(y) is Array:  # a constant: nothing is differentiated with respect to it
        lowered = pow(x, sub(y if y.ndim == 0 and y.item() else _unless_zero(y), constant(y, 1)))
        return mul(t, mul(y, lowered))
    at_zero = eq(x, constant(x, 0))
    y = select_n(at_zero, y, stop_gradient(y))
    constant_power = bitwise_and(at_zero, eq(y, constant(y, 0)))
    lowered = pow(x, sub(select_n(constant_power, y, constant(y, 1)), constant(y, 1)))
    return mul(t, mul(y, lowered))


def _by_exponent(t: Any, out: Any, x: Any, y: Any) -> Any:
    """Return the tangent `t log(x) x**y`, and 0 if `x` is 0."""
    return mul(t, mul(log(_unless_zero(x)), out))


defjvp_with_result(pow_p, _by_base, _by_exponent)

# -- integer_pow ---------------------------------------------------------------------------------------------------


def integer_pow(x: Any, y: int) -> Any:
    """Compute `x ** y` for a static Python int `y`; integer, floating-point or complex, the same dtype out.

    Raises:
        TypeError: `y` is not an integer, or is negative for an integer dtype.
    """
    y = integer(y, "exponent")
    return as_array(x) if y == 1 else integer_pow_p.bind(x, y=y)


def reciprocal(x: Any) -> Any:
    """Compute `1 / x`; floating-point or complex, the same dtype out. Raise TypeError for other dtypes."""
    return integer_pow_p.bind(x, y=-1)


def by_squaring(x: Any, y: int, multiply: Callable[[Any, Any], Any]) -> Any:
    """Compute `x ** y` for `y >= 1` by repeated squaring."""
    power = None
    while True:
        if y & 1:
            power = x if power is None else multiply(power, x)
        y >>= 1
        if not y:
            return power
        x = multiply(x, x)


@through_float32
def _integer_pow(x: Any, *, y: int) -> Any:
    if not y:
        return np.ones_like(x)
    power = by_squaring(x, abs(y), operator.mul)
    return _complex_values.divide(np.ones_like(x), power) if y < 0 else power


def _integer_pow_prepared(avals: Avals, *, y: int) -> Any:
    [x] = avals
    if y < 1 or not x.shape or x.dtype.kind not in "biufc" or x.dtype in NARROW_FLOATS:
        return None
    lines: list[str] = []

    def multiply(a: str, b: str) -> str:
        lines.append(f"{{out}}_{len(lines)} = {{multiply}}({a}, {b})")
        return lines[-1].partition(" ")[0]

    lines.append(f"{{out}} = {by_squaring('{0}', y, multiply)}")
    return HostCode("\n".join(lines), multiply=np.multiply)


@takes("integer_pow", 1)
def _integer_pow_abstract_eval(x: ShapedArray, *, y: int) -> ShapedArray:
    check_kind("integer_pow", x, NUMERIC)
    if y < 0 and not dtypes.is_inexact(x.dtype):
        raise TypeError(
            f"integer_pow: an integer cannot be raised to the negative power {y}, got {x.str_short()}; "
            "convert it to a floating-point dtype first, x.astype('float32')"
        )
    return x


integer_pow_p = Primitive(
    "integer_pow",
    abstract_eval=_integer_pow_abstract_eval,
    tags=("elementwise", "cheap"),
    doc=integer_pow.__doc__,
)
impl_rules.register(
    integer_pow_p, _integer_pow, prepared=_integer_pow_prepared, large=_speed.elementwise("integer_pow")
)
defvectorized(integer_pow_p)


def _integer_pow_jvp(primals: Any, tangents: Any, *, y: int) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    out = integer_pow_p.bind(x, y=y)
    if t is None or y == 0:
        return out, None
    return out, t if y == 1 else mul(mul(constant(x, y), integer_pow(x, y - 1)), t)


jvp_rules.register(integer_pow_p, _integer_pow_jvp, symbolic_zeros=True)

# -- square --------------------------------------------------------------------------------------------------------

square, square_p = unary(
    "square", _complex_values.square, NUMERIC, None,
    tangents(lambda t, x: mul(mul(constant(x, 2), x), t)),
    "Compute `x * x`; integer, floating-point or complex, the same dtype out.",
)  # fmt: skip

# -- one_minus_square ----------------------------------------------------------------------------------------------


@through_float32
def _one_minus_square(x: Any) -> Any:
    one = x.dtype.type(1)
    return (one + x) * (one - x)


# The product rule would give (1 - x) - (1 + x), which is 0 and not -2x for `x` below the rounding error of 1.
one_minus_square, one_minus_square_p = unary(
    "one_minus_square", _one_minus_square, NUMERIC, None,
    tangents(lambda t, x: mul(mul(constant(x, -2), x), t)),
    "Compute `1 - x * x` as `(1 + x) * (1 - x)`, accurate near 1 and -1; integer, floating-point or complex.",
)  # fmt: skip
