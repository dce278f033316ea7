"""Element-wise activation functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, canonical_axis, like, operand, promote_dtypes
from corejax_numpy.elementwise import clip
from corejax_numpy.elementwise import where as select


def _inexact(name: str, x: Any) -> Any:
    return promote_dtypes(name, x, inexact=True)[0]


def relu(x: Any) -> Any:
    """Compute `max(x, 0)`, element-wise; NaN stays NaN, and the derivative at 0 is 0."""
    x = array_argument("relu", x)
    if dtypes.is_bool(x.dtype):
        (x, _) = promote_dtypes("relu", x, 0)
    zero = like(x, 0)
    return lax.select(lax.le(x, zero), zero, x)


def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Any:
    """Compute `x` if `x >= 0`, else `negative_slope * x`, element-wise; the slope is 0.01 by default."""
    x = _inexact("leaky_relu", x)
    slope = operand("leaky_relu", negative_slope, "negative_slope")
    return select(lax.ge(x, like(x, 0)), x, slope * x)


def elu(x: Any, alpha: Any = 1.0) -> Any:
    """Compute `x` if `x > 0`, else `alpha * expm1(x)`, element-wise; `alpha` is 1 by default."""
    x = _inexact("elu", x)
    positive = lax.gt(x, like(x, 0))
    # Both branches are computed; the one that is not taken at 0, so that it does not overflow and give NaN derivatives.
    return select(positive, x, operand("elu", alpha, "alpha") * lax.expm1(lax.select(positive, like(x, 0), x)))


def softplus(x: Any) -> Any:
    """Compute `log(1 + exp(x))`, element-wise, without overflow."""
    x = _inexact("softplus", x)
    zero = like(x, 0)
    positive = lax.ge(x, zero)
    # max(x, 0) + log1p(exp(-|x|)); both kinks take the branch of positive x at 0, so that the derivative there is 1/2.
    return lax.add(lax.select(positive, x, zero), lax.log1p(lax.exp(lax.select(positive, lax.neg(x), x))))


def gelu(x: Any, approximate: bool = True) -> Any:
    """Compute the Gaussian error linear unit: `x` times the standard normal distribution function at `x`.

    Args:
        x: the argument.
        approximate: True, the default, uses an approximation with tanh, with errors up to 5e-4; False uses `erfc`.
    """
    x = _inexact("gelu", x)
    if approximate:
        inner = lax.mul(like(x, math.sqrt(2 / math.pi)), lax.add(x, lax.mul(like(x, 0.044715), lax.integer_pow(x, 3))))
        return lax.mul(x, lax.mul(like(x, 0.5), lax.add(like(x, 1.0), lax.tanh(inner))))
    return lax.mul(lax.mul(x, like(x, 0.5)), lax.erfc(lax.mul(x, like(x, -math.sqrt(0.5)))))


def celu(x: Any, alpha: Any = 1.0) -> Any:
    """Compute `x` if `x > 0`, else `alpha * expm1(x / alpha)`: `elu` with derivative 1 at 0 for every `alpha`."""
    x, alpha = promote_dtypes("celu", x, alpha, inexact=True)
    lax.check_rank_promotion("celu", (x.shape, alpha.shape))
    positive = lax.gt(x, like(x, 0))
    return select(positive, x, alpha * lax.expm1(lax.select(positive, like(x, 0), x) / alpha))


def selu(x: Any) -> Any:
    """Compute the scaled `elu` that preserves mean 0 and variance 1 (Klambauer et al. 2017)."""
    x = _inexact("selu", x)
    return lax.mul(like(x, 1.0507009873554804934193349852946), elu(x, like(x, 1.6732632423543772848170429916717)))


def soft_sign(x: Any) -> Any:
    """Compute `x / (1 + |x|)`, element-wise."""
    x = _inexact("soft_sign", x)
    size = lax.abs(x)
    scale = lax.add(size, like(size, 1))
    return lax.div(x, scale if scale.dtype == x.dtype else lax.convert_element_type(scale, x.dtype))


def squareplus(x: Any, b: Any = 4) -> Any:
    """Compute `(x + sqrt(x**2 + b)) / 2`, a smooth `relu`.

    Args:
        x: the argument.
        b: the smoothness, 4 by default; not negative, and 0 gives `relu`.
    """
    x, b = promote_dtypes("squareplus", x, b, inexact=True)
    lax.check_rank_promotion("squareplus", (x.shape, b.shape))
    return (x + lax.sqrt(lax.square(x) + b)) * like(x, 0.5)


def log1mexp(x: Any) -> Any:
    """Compute `log(1 - exp(-x))` accurately for positive `x`; NaN for negative `x` (Maechler 2012)."""
    x = _inexact("log1mexp", x)
    middle = like(x, math.log(2))
    near = lax.lt(x, middle)
    # Both branches are computed; the one that is not taken at `middle`, so that its derivative is not NaN.
    small = lax.select(near, x, middle)
    by_expm1 = lax.sub(lax.log(lax.expm1(small)), small)  # does not overflow for negative `x`
    by_log1p = lax.log1p(lax.neg(lax.exp(lax.neg(lax.select(near, middle, x)))))
    return lax.select(near, by_expm1, by_log1p)


# -- piecewise functions ------------------------------------------------------------------------------------------


def hard_tanh(x: Any) -> Any:
    """Limit `x` to the interval from -1 to 1; the derivative at both ends is 1."""
    x = array_argument("hard_tanh", x)
    if dtypes.is_bool(x.dtype):
        (x, _) = promote_dtypes("hard_tanh", x, 0)
    one = like(x, 1)
    if dtypes.is_unsigned(x.dtype):
        return lax.min(x, one)
    return lax.select(lax.gt(x, one), one, lax.select(lax.lt(x, like(x, -1)), like(x, -1), x))


def sparse_plus(x: Any) -> Any:
    """Compute 0 below -1, `(x + 1)**2 / 4` from -1 to 1, and `x` above 1: a smooth `relu` with zeros."""
    x = _inexact("sparse_plus", x)
    zero, one = like(x, 0), like(x, 1)
    middle = lax.mul(lax.square(lax.add(x, one)), like(x, 0.25))
    return lax.select(lax.le(x, lax.neg(one)), zero, lax.select(lax.ge(x, one), x, middle))


def _activation(name: str, apply: Callable[[Any], Any], doc: str) -> Callable[[Any], Any]:
    """Return an activation function that converts its argument to floating point."""

    def activation(x: Any) -> Any:
        return apply(_inexact(name, x))

    lax.named(activation, name, doc)
    return activation


sigmoid = _activation("sigmoid", lax.logistic, "Compute `1 / (1 + exp(-x))`, element-wise.")
silu = _activation("silu", lambda x: lax.mul(x, lax.logistic(x)), "Compute `x * sigmoid(x)`, also called swish.")
tanh = _activation("tanh", lax.tanh, "Compute the hyperbolic tangent, element-wise.")
log_sigmoid = _activation(
    "log_sigmoid", lambda x: lax.neg(softplus(lax.neg(x))), "Compute `log(sigmoid(x))`, element-wise, without overflow."
)
mish = _activation(
    "mish", lambda x: lax.mul(x, lax.tanh(softplus(x))), "Compute `x * tanh(softplus(x))`, element-wise."
)
relu6 = _activation(
    "relu6",
    lambda x: lax.clamp(like(x, 0), x, like(x, 6)),
    "Compute `min(max(x, 0), 6)`, element-wise; the derivative at 0 and 6 is 0.",
)
hard_sigmoid = _activation(
    "hard_sigmoid",
    lambda x: lax.div(relu6(lax.add(x, like(x, 3))), like(x, 6)),
    "Compute `relu6(x + 3) / 6`, element-wise: a piecewise linear approximation of `sigmoid`.",
)
hard_silu = _activation(
    "hard_silu", lambda x: lax.mul(x, hard_sigmoid(x)), "Compute `x * hard_sigmoid(x)`, also called hard swish."
)
sparse_sigmoid = _activation(
    "sparse_sigmoid",
    lambda x: lax.mul(like(x, 0.5), clip(lax.add(x, like(x, 1)), like(x, 0), like(x, 2))),
    "Compute the derivative of `sparse_plus`: 0 below -1, `(x + 1) / 2` from -1 to 1, and 1 above 1.",
)

# -- other functions ----------------------------------------------------------------------------------------------


def identity(x: Any) -> Any:
    """Return `x` as an array."""
    return array_argument("identity", x)


def glu(x: Any, axis: int = -1) -> Any:
    """Compute the gated linear unit: the first half of an axis times `sigmoid` of the second half.

    Args:
        x: the argument.
        axis: the axis that is split, by default the last; its size must be even.

    Raises:
        ValueError: the axis has an odd size, or does not exist.
    """
    x = _inexact("glu", x)
    place = canonical_axis(axis, x.ndim)
    size = x.shape[place]
    if size % 2:
        raise ValueError(f"glu halves an axis of even size, got size {size} for axis {axis} of shape {x.shape}")
    first = lax.slice_in_dim(x, 0, size // 2, axis=place)
    return lax.mul(first, lax.logistic(lax.slice_in_dim(x, size // 2, size, axis=place)))
