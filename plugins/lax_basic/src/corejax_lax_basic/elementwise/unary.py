"""Elementwise functions of one operand.

    sin : a[*s] -> a[*s]

The result has the operand's shape, weak type and, unless said otherwise, dtype. Each function raises TypeError for
dtypes that are not named. Functions of 16-bit floats are computed in float32 and rounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Primitive, defjvp, defjvp_with_result, defvectorized, defzero, dtypes, get_aval
from corejax_lax_basic._base.type_rules import FLOAT, INEXACT, NUMERIC, constant, row, through_float32, to_bool
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.conversion.convert import stop_gradient as stop_gradient
from corejax_lax_basic.conversion.convert import stop_gradient_p as stop_gradient_p
from corejax_lax_basic.elementwise import _complex_values as complex_values
from corejax_lax_basic.elementwise.arithmetic import add, div, mul, sub
from corejax_lax_basic.elementwise.arithmetic import integer_pow as integer_pow
from corejax_lax_basic.elementwise.arithmetic import integer_pow_p as integer_pow_p
from corejax_lax_basic.elementwise.arithmetic import neg as neg
from corejax_lax_basic.elementwise.arithmetic import neg_p as neg_p
from corejax_lax_basic.elementwise.arithmetic import square as square
from corejax_lax_basic.elementwise.comparison import eq, ge
from corejax_lax_basic.elementwise.complex_numbers import conj, real
from corejax_lax_basic.elementwise.select import select_n

# -- functions ---------------------------------------------------------------------------------------------


def abs(x: Any) -> Any:
    """Absolute value; integer, floating-point or complex, which gives its real dtype (StableHLO `abs`).

    The derivative at 0 is 1 for real numbers and 0 for complex ones, as in JAX.
    """
    return abs_p.bind(x)


def sign(x: Any) -> Any:
    """-1, 0 or 1 by the sign, or `x/|x|`; integer, floating-point or complex (StableHLO `sign`).

    NaN gives NaN and -0.0 gives -0.0. The derivative counts as zero, for complex numbers too, as in JAX.
    """
    return sign_p.bind(x)


def floor(x: Any) -> Any:
    """The largest integer not above `x`; floating-point (StableHLO `floor`)."""
    return floor_p.bind(x)


def ceil(x: Any) -> Any:
    """The smallest integer not below `x`; floating-point (StableHLO `ceil`)."""
    return ceil_p.bind(x)


def is_finite(x: Any) -> Any:
    """Whether neither infinite nor NaN, as bool; floating-point (StableHLO `is_finite`)."""
    return is_finite_p.bind(x)


def exp(x: Any) -> Any:
    """Exponential; floating-point or complex (StableHLO `exponential`)."""
    return exp_p.bind(x)


def expm1(x: Any) -> Any:
    """`exp(x) - 1`, accurate near 0; floating-point or complex (StableHLO `exponential_minus_one`)."""
    return expm1_p.bind(x)


def log(x: Any) -> Any:
    """Natural logarithm, NaN below 0; floating-point or complex, principal branch (StableHLO `log`)."""
    return log_p.bind(x)


def log1p(x: Any) -> Any:
    """`log(1 + x)`, accurate near 0; floating-point or complex (StableHLO `log_plus_one`)."""
    return log1p_p.bind(x)


def sqrt(x: Any) -> Any:
    """Square root, NaN below 0; floating-point or complex, principal branch (StableHLO `sqrt`)."""
    return sqrt_p.bind(x)


def rsqrt(x: Any) -> Any:
    """`1 / sqrt(x)`; floating-point or complex (StableHLO `rsqrt`)."""
    return rsqrt_p.bind(x)


def sin(x: Any) -> Any:
    """Sine of radians; floating-point or complex (StableHLO `sine`)."""
    return sin_p.bind(x)


def cos(x: Any) -> Any:
    """Cosine of radians; floating-point or complex (StableHLO `cosine`)."""
    return cos_p.bind(x)


def tan(x: Any) -> Any:
    """Tangent of radians; floating-point or complex (StableHLO `tan`)."""
    return tan_p.bind(x)


def tanh(x: Any) -> Any:
    """Hyperbolic tangent; floating-point or complex (StableHLO `tanh`)."""
    return tanh_p.bind(x)


def logistic(x: Any) -> Any:
    """The sigmoid function `1 / (1 + exp(-x))`; floating-point or complex."""
    return logistic_p.bind(x)


# -- impl rules that are no NumPy function -----------------------------------------------------------------


def _sign(x: Any) -> Any:
    if dtypes.is_complex(x.dtype):
        return complex_values.sign(x)
    return np.copysign(np.sign(x), x) if dtypes.is_float(x.dtype) else np.sign(x)


@through_float32
def _logistic(x: Any) -> Any:
    one = x.dtype.type(1)
    return complex_values.divide(one, one + complex_values.exp(-x))


# -- primitives --------------------------------------------------------------------------------------------

# fmt: off
abs_p       = Primitive(**row("abs",       complex_values.absolute, NUMERIC, abs, dtypes.real_dtype_of))
sign_p      = Primitive(**row("sign",      _sign,                   NUMERIC, sign))
floor_p     = Primitive(**row("floor",     np.floor,                FLOAT,   floor))
ceil_p      = Primitive(**row("ceil",      np.ceil,                 FLOAT,   ceil))
is_finite_p = Primitive(**row("is_finite", np.isfinite,             FLOAT,   is_finite, to_bool))
exp_p       = Primitive(**row("exp",       complex_values.exp,      INEXACT, exp))
expm1_p     = Primitive(**row("expm1",     complex_values.expm1,    INEXACT, expm1))
log_p       = Primitive(**row("log",       complex_values.log,      INEXACT, log))
log1p_p     = Primitive(**row("log1p",     complex_values.log1p,    INEXACT, log1p))
sqrt_p      = Primitive(**row("sqrt",      complex_values.sqrt,     INEXACT, sqrt))
rsqrt_p     = Primitive(**row("rsqrt",     complex_values.rsqrt,    INEXACT, rsqrt))
sin_p       = Primitive(**row("sin",       complex_values.sin,      INEXACT, sin))
cos_p       = Primitive(**row("cos",       complex_values.cos,      INEXACT, cos))
tan_p       = Primitive(**row("tan",       complex_values.tan,      INEXACT, tan))
tanh_p      = Primitive(**row("tanh",      complex_values.tanh,     INEXACT, tanh))
logistic_p  = Primitive(**row("logistic",  _logistic,               INEXACT, logistic))
# fmt: on

defvectorized(
    abs_p, sign_p, floor_p, ceil_p, is_finite_p, exp_p, expm1_p, log_p,
    log1p_p, sqrt_p, rsqrt_p, sin_p, cos_p, tan_p, tanh_p, logistic_p,
)  # fmt: skip

# -- derivatives -------------------------------------------------------------------------------------------


def _one(x: Any) -> Any:
    return constant(x, 1)


def _abs_jvp(t: Any, out: Any, x: Any) -> Any:
    if dtypes.is_complex(get_aval(x).dtype):
        size = select_n(eq(out, constant(out, 0)), out, constant(out, 1))
        return real(mul(div(conj(x), convert_element_type(size, get_aval(x).dtype)), t))
    return mul(select_n(ge(x, constant(x, 0)), constant(x, -1), constant(x, 1)), t)


def _sign_jvp(t: Any, out: Any, x: Any) -> Any:
    """Of z/|z|: what of the tangent is not along z, over |z|; zero at zero, and for real numbers everywhere."""
    if not dtypes.is_complex(get_aval(x).dtype):
        return None
    size = abs(x)
    size = select_n(eq(size, constant(size, 0)), size, constant(size, float("inf")))
    along = convert_element_type(real(mul(conj(out), t)), get_aval(x).dtype)
    return div(sub(t, mul(out, along)), convert_element_type(size, get_aval(x).dtype))


for _primitive in (floor_p, ceil_p, is_finite_p):
    defzero(_primitive)

# Each row is linear in the tangent `t` in one operation; the factor beside it is known when linearising.
# fmt: off
defjvp_with_result(abs_p,      _abs_jvp)
defjvp_with_result(sign_p,     _sign_jvp)
defjvp_with_result(exp_p,      lambda t, out, x: mul(out, t))
defjvp_with_result(expm1_p,    lambda t, out, x: mul(add(out, _one(x)), t))
defjvp(            log_p,      lambda t, x:      div(t, x))
defjvp(            log1p_p,    lambda t, x:      div(t, add(x, _one(x))))
defjvp_with_result(sqrt_p,     lambda t, out, x: mul(div(constant(out, 0.5), out), t))
defjvp_with_result(rsqrt_p,    lambda t, out, x: mul(mul(constant(out, -0.5), div(out, x)), t))
defjvp(            sin_p,      lambda t, x:      mul(cos(x), t))
defjvp(            cos_p,      lambda t, x:      mul(neg(sin(x)), t))
defjvp_with_result(tan_p,      lambda t, out, x: mul(add(_one(x), mul(out, out)), t))
defjvp_with_result(tanh_p,     lambda t, out, x: mul(mul(add(_one(x), out), sub(_one(x), out)), t))
defjvp_with_result(logistic_p, lambda t, out, x: mul(mul(out, sub(_one(x), out)), t))
# fmt: on
