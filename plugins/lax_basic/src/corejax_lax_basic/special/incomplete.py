"""Incomplete gamma and beta functions: igamma igammac igamma_grad_a random_gamma_grad betainc.

    igamma : (f[*s], f[*s]) -> f[*s]

Operands are floating-point, of one dtype and shape, or scalars beside arrays; others raise TypeError. Compiled programs
compute all dtypes in float64. Definitions: DLMF 8.2 and 8.17.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Primitive, defbroadcasting, defjvp, impl_rules, nondifferentiable
from corejax_lax_basic import _speed
from corejax_lax_basic._base.derivatives import Function, tangents, tangents_with_result
from corejax_lax_basic._base.type_rules import FLOAT, elementwise
from corejax_lax_basic._promotion import joined_operands
from corejax_lax_basic.elementwise._family import binary, bind_joined, constant
from corejax_lax_basic.elementwise.arithmetic import add, div, mul, neg, sub
from corejax_lax_basic.elementwise.unary import log
from corejax_lax_basic.special import _incomplete_beta, _incomplete_gamma
from corejax_lax_basic.special._densities import beta_density, gamma_density
from corejax_lax_basic.special._eager import ARRAYS, by_scipy, in_float64
from corejax_lax_basic.special.gamma import digamma

__all__ = ["betainc", "regularized_incomplete_beta_p"]

# Names that derivatives use before their rows define them, declared for type checkers.
igamma_grad_a: Function
igamma_p: Primitive
igammac_p: Primitive
igamma_grad_a_p: Primitive
random_gamma_grad_p: Primitive

_BY_A = nondifferentiable("the second derivative of igamma by its first operand has no rule")
_BY_PARAMETER = nondifferentiable("the incomplete beta function has no rule for derivatives by its first two operands")

# -- gamma ---------------------------------------------------------------------------------------------------------


def _by_scipy_or(function: str, formula: Callable[..., Any]) -> Callable[..., Any]:
    """Return the impl rule by SciPy, with a formula for large `a`, for which SciPy loses digits in the lower tail."""

    def amend(out: Any, a: Any, x: Any) -> Any:
        lost = (a > 1e3) & (x > 0) & ~(np.isinf(a) & np.isinf(x))
        if lost.any():
            wide = [np.where(lost, v, 1.0).astype(np.float64, copy=False) for v in (a, x)]
            out = np.where(lost, formula(ARRAYS, *wide), out)
        return out.astype(x.dtype, copy=False)

    return by_scipy(function, amend)


igamma, igamma_p = binary(
    "igamma", _by_scipy_or("gammainc", _incomplete_gamma.lower), FLOAT, None,
    tangents(
        lambda t, a, x: mul(igamma_grad_a(a, x), t),
        lambda t, a, x: mul(gamma_density(a, x), t),
    ),
    """Compute the regularised lower incomplete gamma function `P(a, x)`, from 0 at `x = 0` to 1; floating-point.

    It is NaN for negative operands, and if both are zero or both infinite.
    """,
    lambda a, x: bind_joined(igamma_p, a, x),
)  # fmt: skip

igammac, igammac_p = binary(
    "igammac", _by_scipy_or("gammaincc", _incomplete_gamma.upper), FLOAT, None,
    tangents(
        lambda t, a, x: mul(neg(igamma_grad_a(a, x)), t),
        lambda t, a, x: mul(neg(gamma_density(a, x)), t),
    ),
    "Compute the upper incomplete gamma function `1 - igamma(a, x)`, accurate also if small; floating-point.",
    lambda a, x: bind_joined(igammac_p, a, x),
)  # fmt: skip


def _score(a: Any, x: Any) -> Any:
    """Return the derivative of the logarithm of the density by `a`."""
    return sub(log(x), digamma(a))


igamma_grad_a, igamma_grad_a_p = binary(
    "igamma_grad_a",
    in_float64(lambda a, x: _incomplete_gamma.derivative_by_a(ARRAYS, a, x)),
    FLOAT, None,
    tangents(_BY_A, lambda t, a, x: mul(mul(gamma_density(a, x), _score(a, x)), t)),
    "Compute the derivative of `igamma(a, x)` by `a`; NaN if `a` is not positive or `x` is negative; floating-point.",
    lambda a, x: bind_joined(igamma_grad_a_p, a, x),
)  # fmt: skip


def _sample_slope(t: Any, out: Any, a: Any, x: Any) -> Any:
    """Return the tangent of `-P_a / p`: `-p_a / p`, less the result times `p_x / p = (a-1) / x - 1`."""
    one = constant(x, 1)
    growth = sub(div(sub(a, constant(a, 1)), x), one)
    return mul(neg(add(_score(a, x), mul(out, growth))), t)


random_gamma_grad, random_gamma_grad_p = binary(
    "random_gamma_grad",
    in_float64(lambda a, x: _incomplete_gamma.sample_derivative(ARRAYS, a, x)),
    FLOAT, None,
    tangents_with_result(_BY_A, _sample_slope),
    """Compute the derivative by `a` of a sample `x` of Gamma(a, 1) with a fixed quantile; floating-point.

    It is minus the derivative of `igamma(a, x)` by `a`, over the density at `x` (Figurnov, Mohamed and Mnih 2018).
    """,
    lambda a, x: bind_joined(random_gamma_grad_p, a, x),
)  # fmt: skip

# -- beta ----------------------------------------------------------------------------------------------------------


def betainc(a: Any, b: Any, x: Any) -> Any:
    """Compute the regularised incomplete beta function `I_x(a, b)`, from 0 at `x = 0` to 1 at `x = 1`; floating-point.

    It is NaN outside of `a, b >= 0` and `0 <= x <= 1`, and if `a` and `b` are both zero or both infinite. Only the
    derivative by `x` is defined.

    Raises:
        TypeError: dtypes or shapes disagree.
    """
    return regularized_incomplete_beta_p.bind(*joined_operands(a, b, x))


def _amended_betainc(out: Any, a: Any, b: Any, x: Any) -> Any:
    """Use a formula if SciPy's powers of small parameters underflow, or large ones cancel."""
    least = np.minimum(a, b)
    lost = ((least < 1e-100) & (least > 0)) | (least > 1e9)
    return np.where(lost, _incomplete_beta.betainc(ARRAYS, a, b, x), out) if lost.any() else out


regularized_incomplete_beta_p = Primitive(
    "regularized_incomplete_beta",
    abstract_eval=elementwise("regularized_incomplete_beta", 3, FLOAT),
    tags=("elementwise",),
    doc="Compute the regularised incomplete beta function of a, b and x.",
)
impl_rules.register(
    regularized_incomplete_beta_p,
    in_float64(by_scipy("betainc", _amended_betainc)),
    large=_speed.elementwise("regularized_incomplete_beta"),
)
defbroadcasting(regularized_incomplete_beta_p)

defjvp(regularized_incomplete_beta_p, _BY_PARAMETER, _BY_PARAMETER, lambda t, a, b, x: mul(beta_density(a, b, x), t))
