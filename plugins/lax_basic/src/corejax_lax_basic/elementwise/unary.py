"""Elementwise functions of one operand.

    sin : a[*s] -> a[*s]

The result has the operand's shape and weak type and, unless its docstring says otherwise, its dtype. Each function
raises TypeError for dtypes that its docstring does not name. 16-bit floats are computed in float32 and rounded.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corejax.extend import defzero, dtypes, get_aval
from corejax.extend.speed import HostCode
from corejax_lax_basic._base.accuracy import is_highest
from corejax_lax_basic._base.derivatives import Function, tangents, tangents_with_result
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS, through_float32
from corejax_lax_basic._base.prepared import Avals, prepared_by
from corejax_lax_basic._base.type_rules import FLOAT, INEXACT, NUMERIC, to_bool
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.elementwise import _complex_values
from corejax_lax_basic.elementwise._family import constant, unary
from corejax_lax_basic.elementwise.arithmetic import add, div, mul, neg, sub
from corejax_lax_basic.elementwise.comparison import eq, ge
from corejax_lax_basic.elementwise.complex_numbers import conj, real
from corejax_lax_basic.elementwise.select import select_n

__all__: list[str] = []  # rows bring their own names

# Names that derivatives use before their rows define them, declared for type checkers.
log: Function


_WIDE = frozenset(map(np.dtype, (np.float32, np.float64)))  # dtypes that are computed without conversion


# Each tangent's formula is one operation linear in `t`, times a factor that linearisation computes beforehand.

# -- sizes and signs -----------------------------------------------------------------------------------------------


def _abs_jvp(t: Any, out: Any, x: Any) -> Any:
    if dtypes.is_complex(get_aval(x).dtype):
        size = select_n(eq(out, constant(out, 0)), out, constant(out, 1))
        return real(mul(div(conj(x), convert_element_type(size, get_aval(x).dtype)), t))
    return mul(select_n(ge(x, constant(x, 0)), constant(x, -1), constant(x, 1)), t)


abs, abs_p = unary(
    "abs", np.absolute, NUMERIC, None,
    tangents_with_result(_abs_jvp),
    """Compute the absolute value; integer, floating-point or complex, whose result is real (StableHLO `abs`).

    The derivative at 0 is 1 for real numbers and 0 for complex ones, as in JAX.
    """,
    result=dtypes.real_dtype_of,
)  # fmt: skip


def _sign_prepared(avals: Avals) -> Any:
    dtype = avals[0].dtype
    return np.sign if dtype.kind in "iuf" and dtype not in NARROW_FLOATS else None


@prepared_by(_sign_prepared)
@through_float32  # in narrow formats NumPy's sign of a zero is 1
def _sign(x: Any) -> Any:
    return _complex_values.sign(x) if dtypes.is_complex(x.dtype) else np.sign(x)


def _sign_jvp(t: Any, out: Any, x: Any) -> Any:
    """Return the tangent of z/|z|: the part of `t` across z, over |z|; zero for real numbers and at zero."""
    if not dtypes.is_complex(get_aval(x).dtype):
        return None
    size = abs(x)
    size = select_n(eq(size, constant(size, 0)), size, constant(size, float("inf")))
    along = convert_element_type(real(mul(conj(out), t)), get_aval(x).dtype)
    return div(sub(t, mul(out, along)), convert_element_type(size, get_aval(x).dtype))


sign, sign_p = unary(
    "sign", _sign, NUMERIC, None,
    tangents_with_result(_sign_jvp),
    """Return -1, 0 or 1 by the sign of `x`, or `x/|x|` if it is complex; any numeric dtype (StableHLO `sign`).

    NaN gives NaN, and a zero of either sign gives 0.0. The derivative is zero for real numbers.
    """,
    exact=True,
)  # fmt: skip

floor, floor_p = unary(
    "floor", np.floor, FLOAT, "floor",
    defzero,
    "Return the largest integer not above `x`; floating-point (StableHLO `floor`).",
)  # fmt: skip

ceil, ceil_p = unary(
    "ceil", np.ceil, FLOAT, "ceil",
    defzero,
    "Return the smallest integer not below `x`; floating-point (StableHLO `ceil`).",
)  # fmt: skip

is_finite, is_finite_p = unary(
    "is_finite", np.isfinite, FLOAT, "is_finite",
    defzero,
    "Return whether `x` is neither infinite nor NaN, as bool; floating-point (StableHLO `is_finite`).",
    result=to_bool,
)  # fmt: skip

# -- exponentials, logarithms and roots ----------------------------------------------------------------------------

exp, exp_p = unary(
    "exp", _complex_values.exp, INEXACT, "exponential",
    tangents_with_result(lambda t, out, x, **how: mul(out, t)),
    "Compute the exponential function; floating-point or complex (StableHLO `exponential`).",
    accuracy=True,
)  # fmt: skip

exp2, exp2_p = unary(
    "exp2", _complex_values.exp2, INEXACT, None,
    tangents_with_result(lambda t, out, x, **how: mul(mul(log(constant(x, 2)), out), t)),
    "Compute `2 ** x`; floating-point or complex.",
    accuracy=True,
)  # fmt: skip


def _expm1_tangent(t: Any, out: Any, x: Any, **how: Any) -> Any:
    return mul(exp(x, **how) if is_highest(how) else add(out, constant(x, 1)), t)


expm1, expm1_p = unary(
    "expm1", _complex_values.expm1, INEXACT, "exponential_minus_one",
    tangents_with_result(_expm1_tangent),
    "Compute `exp(x) - 1`, accurate near 0; floating-point or complex (StableHLO `exponential_minus_one`).",
    accuracy=True,
)  # fmt: skip

log, log_p = unary(
    "log", _complex_values.log, INEXACT, "log",
    tangents(lambda t, x, **how: div(t, x)),
    "Compute the natural logarithm, NaN below 0; floating-point or complex, principal branch (StableHLO `log`).",
    accuracy=True,
)  # fmt: skip

log2, log2_p = unary(
    "log2", _complex_values.log2, INEXACT, None,
    tangents(lambda t, x, **how: div(t, mul(constant(x, math.log(2)), x))),
    "Compute the logarithm to base 2, NaN below 0; floating-point or complex, principal branch.",
    accuracy=True,
)  # fmt: skip

log1p, log1p_p = unary(
    "log1p", _complex_values.log1p, INEXACT, "log_plus_one",
    tangents(lambda t, x, **how: div(t, add(x, constant(x, 1)))),
    "Compute `log(1 + x)`, accurate near 0; floating-point or complex (StableHLO `log_plus_one`).",
    accuracy=True,
)  # fmt: skip

sqrt, sqrt_p = unary(
    "sqrt", _complex_values.sqrt, INEXACT, "sqrt",
    tangents_with_result(lambda t, out, x, **how: mul(div(constant(out, 0.5), out), t)),
    "Compute the square root, NaN below 0; floating-point or complex, principal branch (StableHLO `sqrt`).",
    accuracy=True,
)  # fmt: skip

rsqrt, rsqrt_p = unary(
    "rsqrt", _complex_values.rsqrt, INEXACT, "rsqrt",
    tangents_with_result(lambda t, out, x, **how: mul(mul(constant(out, -0.5), div(out, x)), t)),
    "Compute `1 / sqrt(x)`; floating-point or complex (StableHLO `rsqrt`).",
    accuracy=True,
)  # fmt: skip

cbrt, cbrt_p = unary(
    "cbrt", _complex_values.cbrt, FLOAT, "cbrt",
    tangents_with_result(lambda t, out, x, **how: mul(div(div(constant(x, 1 / 3), out), out), t)),
    "Compute the cube root, also of negative numbers; floating-point (StableHLO `cbrt`).",
    accuracy=True,
)  # fmt: skip


def _logistic_prepared(avals: Avals, *, accuracy: Any = None) -> Any:
    [x] = avals
    if x.dtype not in _WIDE or not x.shape:
        return None
    lines = (
        "{out} = {negative}({0})",
        "{exp}({out}, {out})",
        "{add}({one}, {out}, {out})",
        "{divide}({one}, {out}, {out})",
    )
    text, one = "\n".join(lines), np.ones((), x.dtype)
    return HostCode(text, one=one, negative=np.negative, exp=np.exp, add=np.add, divide=np.divide)


@prepared_by(_logistic_prepared)
@through_float32
def _logistic(x: Any, *, accuracy: Any = None) -> Any:
    one = x.dtype.type(1)
    return _complex_values.divide(one, one + _complex_values.exp(-x))


def _logistic_tangent(t: Any, out: Any, x: Any, **how: Any) -> Any:
    return mul(mul(out, logistic(neg(x), **how) if is_highest(how) else sub(constant(x, 1), out)), t)


logistic, logistic_p = unary(
    "logistic", _logistic, INEXACT, None,
    tangents_with_result(_logistic_tangent),
    "Compute the sigmoid function `1 / (1 + exp(-x))`; floating-point or complex.",
    accuracy=True,
)  # fmt: skip
