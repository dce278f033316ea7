"""Arithmetic: neg add sub mul div rem max min.

    add : (a[*s], a[*s]) -> a[*s]

Operands have one dtype and shape, or are scalars beside arrays; Python scalars and weakly typed arrays take the other
operand's dtype. Each function raises TypeError if dtypes or shapes disagree, or if it does not accept the dtype.
Integer arithmetic wraps around; integer division truncates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import dtypes, is_undef_primal
from corejax_lax_basic._base.derivatives import Function, jvp_rule, linear, tangents, tangents_with_result
from corejax_lax_basic._base.prepared import is_ufunc
from corejax_lax_basic._base.type_rules import ANY, NUMERIC, REAL
from corejax_lax_basic.conversion.convert import stop_gradient
from corejax_lax_basic.elementwise import _complex_values
from corejax_lax_basic.elementwise._family import binary, constant, spread, unary, unbroadcast
from corejax_lax_basic.elementwise.comparison import eq
from corejax_lax_basic.elementwise.select import select_n

__all__: list[str] = []  # rows bring their own names

# Names that derivatives use before their rows define them, declared for type checkers.
neg: Function
mul: Function
div: Function

# -- neg -----------------------------------------------------------------------------------------------------------

neg, neg_p = unary(
    "neg", np.negative, NUMERIC, "negate",
    linear(lambda ct, x: [neg(ct)]),
    "Compute `-x`; integer, floating-point or complex, the same dtype out (StableHLO `negate`).",
    linear_in=(0,),
)  # fmt: skip

# -- add, sub ------------------------------------------------------------------------------------------------------


def _add_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    out = add_p.bind(*primals)
    s, t = tangents
    if s is not None and t is not None:
        return out, add_p.bind(s, t)
    tangent = s if t is None else t
    return out, None if tangent is None else spread(tangent, out)


def _add_transpose(ct: Any, x: Any, y: Any) -> list[Any]:
    return [unbroadcast(z.aval, ct) if is_undef_primal(z) else None for z in (x, y)]


add, add_p = binary(
    "add", np.add, NUMERIC, "add",
    jvp_rule(_add_jvp),
    "Compute `x + y`; integer, floating-point or complex, the same dtype out (StableHLO `add`).",
    linear_in=(0, 1), transpose=_add_transpose,
)  # fmt: skip


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


sub, sub_p = binary(
    "sub", np.subtract, NUMERIC, "subtract",
    jvp_rule(_sub_jvp),
    "Compute `x - y`; integer, floating-point or complex, the same dtype out (StableHLO `subtract`).",
    linear_in=(0, 1), transpose=_sub_transpose,
)  # fmt: skip

# -- mul -----------------------------------------------------------------------------------------------------------


def _mul_transpose(ct: Any, x: Any, y: Any) -> list[Any]:
    if is_undef_primal(x):
        return [unbroadcast(x.aval, mul(ct, y)), None]  # `mul` raises if `y` is an unknown, too
    return [None, unbroadcast(y.aval, mul(x, ct))]


mul, mul_p = binary(
    "mul", np.multiply, NUMERIC, "multiply",
    tangents(lambda t, x, y: mul(t, y), lambda t, x, y: mul(x, t)),
    "Compute `x * y`; integer, floating-point or complex, the same dtype out, or `out_dtype` (StableHLO `multiply`).",
    linear_in=(0, 1), transpose=_mul_transpose, out_dtype=True,
)  # fmt: skip

# -- div, rem ------------------------------------------------------------------------------------------------------


@is_ufunc(np.divide)
def _div(x: Any, y: Any) -> Any:
    if dtypes.is_inexact(x.dtype):
        return _complex_values.divide(x, y)
    if not y.all():
        return np.where(y == 0, np.invert(np.zeros_like(y)), _div(x, np.where(y == 0, y.dtype.type(1), y)))
    if not y.ndim:
        return _by_one_number(x, y)[0]
    if x.dtype.itemsize <= 4:  # float64 holds these integers, and no quotient rounds to a whole number
        return np.divide(x, y, dtype=np.float64).astype(np.int64).astype(x.dtype)
    return (x - np.fmod(x, y)) // y


def _by_one_number(x: Any, y: Any) -> tuple[Any, Any]:
    """Divide integers by one integer; NumPy vectorises only the quotient that is rounded down."""
    quotient = np.floor_divide(x, y)
    rest = x - quotient * y
    if dtypes.is_unsigned(x.dtype):
        return quotient, rest
    above = (quotient < 0) & (rest != 0)
    return quotient + above, rest - y * above


@is_ufunc(np.fmod)
def _rem(x: Any, y: Any) -> Any:
    if dtypes.is_inexact(x.dtype):
        return np.fmod(x, y)
    if not y.ndim and y:
        return _by_one_number(x, y)[1]
    return np.fmod(x, y) if y.all() else np.where(y == 0, x, np.fmod(x, np.where(y == 0, y.dtype.type(1), y)))


def _div_transpose(ct: Any, x: Any, y: Any) -> list[Any]:
    ct_x = div(ct, y)  # raises if the divisor is unknown: a quotient is not linear in it
    return [unbroadcast(x.aval, ct_x), None]


def _by_divisor(t: Any, quotient: Any, y: Any) -> Any:
    """Return the tangent of a quotient by its divisor: `-t quotient / y`."""
    return mul(neg(div(quotient, y)), t)


div, div_p = binary(
    "div", _div, NUMERIC, "divide",
    tangents_with_result(lambda t, q, x, y: div(t, y), lambda t, q, x, y: _by_divisor(t, q, y)),
    """Compute `x / y`; integer, floating-point or complex, the same dtype out (StableHLO `divide`).

    Integer quotients are truncated towards zero; `x / 0` is -1 (all bits set), and the least integer over -1 is itself.
    """,
    linear_in=(0,), transpose=_div_transpose,
)  # fmt: skip


def _times_taken(t: Any, rest: Any, x: Any, y: Any) -> Any:
    """Return the tangent of a remainder by its divisor: `-t n` with the truncated quotient `n` held constant."""
    rest = select_n(eq(rest, rest), constant(rest, 0), rest)  # NaN if the quotient is infinite
    return mul(neg(stop_gradient(div(sub(x, rest), y))), t)


rem, rem_p = binary(
    "rem", _rem, REAL, "remainder",
    tangents_with_result(lambda t, r, x, y: spread(t, r), _times_taken),
    """Compute the remainder of truncated division, signed as `x`; integer or floating-point (StableHLO `remainder`).

    The remainder by integer 0 is `x`; by floating-point 0 it is NaN.
    """,
)  # fmt: skip

# -- max, min ------------------------------------------------------------------------------------------------------


def _share(x: Any, out: Any, y: Any) -> Any:
    """Return the derivative of a maximum by `x`: 1 if `x` is chosen, 1/2 if `y` ties, else 0."""
    chosen = select_n(eq(y, out), constant(out, 1), constant(out, 0.5))
    return select_n(eq(x, out), constant(out, 0), chosen)


_shared = tangents_with_result(
    lambda t, out, x, y: mul(_share(x, out, y), t), lambda t, out, x, y: mul(_share(y, out, x), t)
)

max, max_p = binary(
    "max", np.maximum, ANY, None,
    _shared,
    """Return the larger operand, NaN if either is; any dtype, complex in lexicographic order (StableHLO `maximum`).

    Operands that tie share the derivative.
    """,
)  # fmt: skip

min, min_p = binary(
    "min", np.minimum, ANY, None,
    _shared,
    """Return the smaller operand, NaN if either is; any dtype, complex in lexicographic order (StableHLO `minimum`).

    Operands that tie share the derivative.
    """,
)  # fmt: skip
