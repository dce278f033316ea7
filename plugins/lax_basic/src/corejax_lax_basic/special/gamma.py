"""The logarithm of the gamma function, its derivatives, and the Hurwitz zeta function.

    zeta : (f[*s], f[*s]) -> f[*s]

Also lgamma, digamma, polygamma. Operands are floating-point, of one dtype and shape, or scalars beside arrays; others
raise TypeError. Compiled programs compute all dtypes in float64. Definitions: DLMF 5.2, 5.15 and 25.11.
"""

from __future__ import annotations

from corejax.extend import Primitive, nondifferentiable
from corejax_lax_basic._base.derivatives import Function, tangents
from corejax_lax_basic._base.type_rules import FLOAT
from corejax_lax_basic.elementwise._family import binary, bind_joined, constant, unary
from corejax_lax_basic.elementwise.arithmetic import add, mul, neg
from corejax_lax_basic.special import _series
from corejax_lax_basic.special._eager import ARRAYS, by_scipy, gammaln_as_xla, in_float64, psi_as_xla

__all__: list[str] = []  # rows bring their own names

# Names that derivatives use before their rows define them, declared for type checkers.
digamma: Function
polygamma: Function
zeta: Function
polygamma_p: Primitive
zeta_p: Primitive


lgamma, lgamma_p = unary(
    "lgamma", by_scipy("gammaln", gammaln_as_xla), FLOAT, None,
    tangents(lambda t, x: mul(digamma(x), t)),
    "Compute the logarithm of the absolute value of the gamma function; infinite at its poles; floating-point.",
)  # fmt: skip

digamma, digamma_p = unary(
    "digamma", by_scipy("psi", psi_as_xla), FLOAT, None,
    tangents(lambda t, x: mul(polygamma(constant(x, 1), x), t)),
    "Compute the derivative of `lgamma`; NaN at its poles 0, -1, -2, ...; floating-point.",
)  # fmt: skip

polygamma, polygamma_p = binary(
    "polygamma", in_float64(lambda m, x: _series.polygamma(ARRAYS, m, x)), FLOAT, None,
    tangents(
        nondifferentiable("the order of a derivative is a whole number"),
        lambda t, m, x: mul(polygamma(add(m, constant(m, 1)), x), t),
    ),
    "Compute the `m`-th derivative of `digamma` at `x`; NaN if `m` is not 0, 1, 2, ...; floating-point.",
    lambda m, x: bind_joined(polygamma_p, m, x),
)  # fmt: skip

zeta, zeta_p = binary(
    "zeta", in_float64(ARRAYS.zeta), FLOAT, None,
    tangents(
        nondifferentiable("the derivative of the Hurwitz zeta function by its exponent is no function of corejax.lax"),
        lambda t, x, q: mul(mul(neg(x), zeta(add(x, constant(x, 1)), q)), t),
    ),
    """Compute the Hurwitz zeta function, the sum of `(q + n)**-x` over n = 0, 1, ...; floating-point.

    It is infinite at `x = 1` and NaN below. If `q` is not positive, it is NaN unless `x` is whole. If `q` is a pole, it
    is infinite for even `x` and NaN for odd `x`.
    """,
    lambda x, q: bind_joined(zeta_p, x, q),
)  # fmt: skip
