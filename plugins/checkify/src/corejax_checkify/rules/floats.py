"""Checks of NaN and of division by zero.

A primitive that computes fails if its result has NaN, whether or not an operand has: if it has, the NaN was in an
argument or a constant. Primitives that move, select or compare elements are not checked.
"""

from __future__ import annotations

from typing import Any

from corejax.extend import Array, Primitive, get_aval, host_value
from corejax_checkify.failures import DivisionByZeroError
from corejax_checkify.interpreter import Checks, for_primitive
from corejax_lax_basic import lax

_COMPUTING = """
    acos acosh add asin asinh atan atan2 atanh batched bessel_i0e bessel_i1e cbrt conv_general_dilated cos cosh
    cumlogsumexp cummax cummin cumprod cumsum custom_linear_solve digamma dot_general effectful_ffi_call erf erf_inv
    erfc exp exp2 expm1 ffi_call igamma igamma_grad_a igammac integer_pow lgamma linear_call log log1p log2 logistic
    mul one_minus_square pad polygamma polynomial pow ragged_dot_general random_gamma_grad reduce reduce_prod
    reduce_sum reduce_window reduce_window_sum regularized_incomplete_beta rsqrt scaled_dot select_and_scatter_add
    sin sinh sqrt square sub tan tanh zeta
"""
_MOVING = """
    abs after_all and approx_top_k argmax argmin bitcast_convert_type broadcast_in_dim ceil clamp clz complex
    concatenate conj convert_element_type copy create_token custom_lin dce_sink empty eq eq_to floor from_front ge gt
    if_taken imag iota is_finite le le_to lt lt_to max min mulhi name ne neg nextafter not optimization_barrier or pack
    population_count progress progress_report real rearranged reduce_and reduce_max reduce_min reduce_or
    reduce_precision reduce_window_max reduce_window_min reduce_xor reshape rev round select_and_gather_add
    select_and_scatter select_n shift_left shift_right_arithmetic shift_right_logical sign slice sort split squeeze
    stack stage stop_gradient tile top_k transpose unpack unstack xor
"""


def _computing(primitive: Primitive, checks: Checks, /, *operands: Any, **params: Any) -> Any:
    checks.keeps_checks(primitive, params)
    out = primitive.bind(*operands, **params)
    checks.no_nan(primitive.name, out if primitive.multiple_results else [out])
    return out


def _moving(primitive: Primitive, checks: Checks, /, *operands: Any, **params: Any) -> Any:
    checks.keeps_checks(primitive, params)
    return primitive.bind(*operands, **params)


def _dividing(primitive: Primitive, checks: Checks, x: Any, y: Any, /, **params: Any) -> Any:
    if checks.on(DivisionByZeroError) and not _is_nonzero(y):
        aval = get_aval(y)
        zero = lax.eq(y, lax.zeros_like_array(y))
        checks.add(lax.reduce_or(zero, tuple(range(aval.ndim))) if aval.ndim else zero, DivisionByZeroError)
    out = primitive.bind(x, y, **params)
    checks.no_nan(primitive.name, [out])
    return out


def _is_nonzero(y: Any) -> bool:
    """Return whether a divisor is a nonzero constant scalar."""
    return type(y) is Array and not y.ndim and bool(host_value(y) != 0)


for _names, _rule in ((_COMPUTING, _computing), (_MOVING, _moving), ("div rem", _dividing)):
    for _name in _names.split():
        for_primitive(_name, _rule)
