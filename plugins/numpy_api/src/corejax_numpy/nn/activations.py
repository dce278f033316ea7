"""Activation functions, elementwise."""

from __future__ import annotations

import math
from typing import Any

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, like, promote_dtypes
from corejax_numpy.elementwise import where as select


def _inexact(name: str, x: Any) -> Any:
    return promote_dtypes(name, x, inexact=True)[0]


def relu(x: Any) -> Any:
    """`max(x, 0)`, elementwise; NaN stays NaN, and the derivative at 0 is 0."""
    x = array_argument("relu", x)
    if dtypes.is_bool(x.dtype):
        (x, _) = promote_dtypes("relu", x, 0)
    zero = like(x, 0)
    return lax.select(lax.le(x, zero), zero, x)


def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Any:
    """`x` where it is not negative, else `negative_slope * x`."""
    x = _inexact("leaky_relu", x)
    return select(lax.ge(x, like(x, 0)), x, negative_slope * x)


def elu(x: Any, alpha: Any = 1.0) -> Any:
    """`x` where it is positive, else `alpha * expm1(x)`."""
    x = _inexact("elu", x)
    positive = lax.gt(x, like(x, 0))
    # The branch that is not taken is computed too: of 0, lest it overflow and its derivative become NaN.
    return select(positive, x, alpha * lax.expm1(lax.select(positive, like(x, 0), x)))


def sigmoid(x: Any) -> Any:
    """`1 / (1 + exp(-x))`, elementwise."""
    return lax.logistic(_inexact("sigmoid", x))


def silu(x: Any) -> Any:
    """`x * sigmoid(x)`, elementwise; also called swish."""
    x = _inexact("silu", x)
    return lax.mul(x, lax.logistic(x))


def tanh(x: Any) -> Any:
    """Hyperbolic tangent, elementwise."""
    return lax.tanh(_inexact("tanh", x))


def softplus(x: Any) -> Any:
    """`log(1 + exp(x))`, elementwise, without overflow."""
    x = _inexact("softplus", x)
    zero = like(x, 0)
    positive = lax.ge(x, zero)
    # max(x, 0) + log1p(exp(-|x|)), both kinks bent to one side, so that the derivative at 0 is 1/2.
    return lax.add(lax.select(positive, x, zero), lax.log1p(lax.exp(lax.select(positive, lax.neg(x), x))))


def log_sigmoid(x: Any) -> Any:
    """`log(sigmoid(x))`, elementwise, without overflow."""
    return lax.neg(softplus(lax.neg(_inexact("log_sigmoid", x))))


def gelu(x: Any, approximate: bool = True) -> Any:
    """Gaussian error linear unit, `x` times the normal distribution function at `x`.

    Args:
        x: the argument.
        approximate: in the form with tanh; the exact one needs the primitive `erf`.

    Raises:
        NotImplementedError: the exact form is asked for and no plugin provides `erf`.
    """
    x = _inexact("gelu", x)
    if approximate:
        inner = lax.mul(like(x, math.sqrt(2 / math.pi)), lax.add(x, lax.mul(like(x, 0.044715), lax.integer_pow(x, 3))))
        return lax.mul(x, lax.mul(like(x, 0.5), lax.add(like(x, 1.0), lax.tanh(inner))))
    erf = getattr(lax, "erf", None)
    if erf is None:
        raise NotImplementedError(
            "gelu: the exact form needs the primitive erf, which no plugin provides; use approximate=True"
        )
    scaled = lax.mul(x, like(x, math.sqrt(0.5)))
    return lax.mul(lax.mul(x, like(x, 0.5)), lax.add(like(x, 1.0), erf(scaled)))
