"""Trigonometric and hyperbolic functions and their inverses.

    sin : a[*s] -> a[*s]        atan2 : (a[*s], a[*s]) -> a[*s]

Floating-point or complex, on the branches of C99 (ISO/IEC 9899, Annex G). Angles are in radians. Outside of the domain
of a real function the result is NaN. Each function raises TypeError for other dtypes.
"""

from __future__ import annotations

from typing import Any

from corejax.extend import dtypes, get_aval
from corejax_lax_basic._base.accuracy import is_highest
from corejax_lax_basic._base.derivatives import Function, tangents, tangents_with_result
from corejax_lax_basic._base.type_rules import INEXACT
from corejax_lax_basic.conversion.convert import stop_gradient
from corejax_lax_basic.elementwise import _complex_values
from corejax_lax_basic.elementwise._family import binary, constant, unary
from corejax_lax_basic.elementwise.arithmetic import add, div, max, mul, neg, sub
from corejax_lax_basic.elementwise.powers import square
from corejax_lax_basic.elementwise.select import clamp
from corejax_lax_basic.elementwise.unary import abs, logistic, rsqrt

__all__: list[str] = []  # rows bring their own names

# Names that derivatives use before their rows define them, declared for type checkers.
cos: Function
cosh: Function


# Each tangent's formula is one operation linear in `t`, times a factor that linearisation computes beforehand.

# -- trigonometry --------------------------------------------------------------------------------------------------

sin, sin_p = unary(
    "sin", _complex_values.sin, INEXACT, "sine",
    tangents(lambda t, x, **how: mul(cos(x, **how), t)),
    "Compute the sine of angles in radians; floating-point or complex (StableHLO `sine`).",
    accuracy=True,
)  # fmt: skip

cos, cos_p = unary(
    "cos", _complex_values.cos, INEXACT, "cosine",
    tangents(lambda t, x, **how: mul(neg(sin(x, **how)), t)),
    "Compute the cosine of angles in radians; floating-point or complex (StableHLO `cosine`).",
    accuracy=True,
)  # fmt: skip

tan, tan_p = unary(
    "tan", _complex_values.tan, INEXACT, "tan",
    tangents_with_result(lambda t, out, x, **how: mul(add(constant(x, 1), mul(out, out)), t)),
    "Compute the tangent of angles in radians; floating-point or complex (StableHLO `tan`).",
    accuracy=True,
)  # fmt: skip


def _tanh_tangent(t: Any, out: Any, x: Any, **how: Any) -> Any:
    if is_highest(how):  # 1 / cosh(x)^2
        sides = (logistic(mul(constant(x, factor), x), **how) for factor in (2, -2))
        return mul(mul(constant(x, 4), mul(*sides)), t)
    return mul(mul(add(constant(x, 1), out), sub(constant(x, 1), out)), t)


tanh, tanh_p = unary(
    "tanh", _complex_values.tanh, INEXACT, "tanh",
    tangents_with_result(_tanh_tangent),
    "Compute the hyperbolic tangent; floating-point or complex (StableHLO `tanh`).",
    accuracy=True,
)  # fmt: skip

sinh, sinh_p = unary(
    "sinh", _complex_values.sinh, INEXACT, None,
    tangents(lambda t, x: mul(cosh(x), t)),
    "Compute the hyperbolic sine; floating-point or complex.",
)  # fmt: skip

cosh, cosh_p = unary(
    "cosh", _complex_values.cosh, INEXACT, None,
    tangents(lambda t, x: mul(sinh(x), t)),
    "Compute the hyperbolic cosine; floating-point or complex.",
)  # fmt: skip

# -- inverse functions ---------------------------------------------------------------------------------------------


def _by_unit_circle(x: Any) -> Any:
    """Compute `1 / sqrt(1 - x^2)`: in two factors for complex numbers, whose square may overflow."""
    below, above = sub(constant(x, 1), x), add(constant(x, 1), x)
    if dtypes.is_complex(get_aval(x).dtype):
        return mul(rsqrt(below), rsqrt(above))
    return rsqrt(mul(below, above))


asin, asin_p = unary(
    "asin", _complex_values.asin, INEXACT, "chlo.asin",
    tangents(lambda t, x: mul(_by_unit_circle(x), t)),
    "Compute the arc sine, between -pi/2 and pi/2; floating-point or complex.",
)  # fmt: skip

acos, acos_p = unary(
    "acos", _complex_values.acos, INEXACT, "chlo.acos",
    tangents(lambda t, x: mul(neg(_by_unit_circle(x)), t)),
    "Compute the arc cosine, between 0 and pi; floating-point or complex.",
)  # fmt: skip

atan, atan_p = unary(
    "atan", _complex_values.atan, INEXACT, "chlo.atan",
    tangents(lambda t, x: div(t, add(constant(x, 1), square(x)))),
    "Compute the arc tangent, between -pi/2 and pi/2; floating-point or complex.",
)  # fmt: skip

asinh, asinh_p = unary(
    "asinh", _complex_values.asinh, INEXACT, "chlo.asinh",
    tangents(lambda t, x: mul(rsqrt(add(square(x), constant(x, 1))), t)),
    "Compute the inverse hyperbolic sine; floating-point or complex.",
)  # fmt: skip

acosh, acosh_p = unary(
    "acosh", _complex_values.acosh, INEXACT, "chlo.acosh",
    # Not 1/sqrt(x^2 - 1), which is on another branch if the real part is negative.
    tangents(lambda t, x: mul(mul(rsqrt(sub(x, constant(x, 1))), rsqrt(add(x, constant(x, 1)))), t)),
    "Compute the inverse hyperbolic cosine, not negative; floating-point or complex.",
)  # fmt: skip

atanh, atanh_p = unary(
    "atanh", _complex_values.atanh, INEXACT, "chlo.atanh",
    tangents(lambda t, x: div(t, mul(sub(constant(x, 1), x), add(constant(x, 1), x)))),
    "Compute the inverse hyperbolic tangent; floating-point or complex.",
)  # fmt: skip


def _over_squares(numerator: Any, x: Any, y: Any) -> Any:
    """Compute `numerator / (x^2 + y^2)`; real operands are scaled first, so that no square overflows or underflows."""
    dtype = get_aval(x).dtype
    if dtypes.is_complex(dtype):
        return div(numerator, add(square(x), square(y)))
    largest = float(dtypes.finfo(dtype).max)  # stands for infinity
    numerator, x, y = (clamp(constant(v, -largest), v, constant(v, largest)) for v in (numerator, x, y))
    size = stop_gradient(max(abs(x), abs(y)))
    squares = add(square(div(x, size)), square(div(y, size)))
    return mul(
        div(numerator, size), div(div(constant(x, 1), squares), size)
    )  # one factor is a product: the compiler would merge a chain of divisions


atan2, atan2_p = binary(
    "atan2", _complex_values.atan2, INEXACT, None,
    tangents(
        lambda t, x, y: mul(_over_squares(y, x, y), t),
        lambda t, x, y: mul(_over_squares(neg(x), x, y), t),
    ),
    """Return the angle of the point `(y, x)`, between -pi and pi; floating-point or complex (StableHLO `atan2`).

    It is the arc tangent of `x / y`, in the quadrant given by the signs of `x` and `y`.
    """,
)  # fmt: skip
