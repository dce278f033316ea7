"""Two SciPy functions as elementwise primitives: `erfcx`, and the principal branch of `lambertw`.

SciPy computes the values. The rules here define the result's type, the derivative, and batching, which is trivial for
elementwise functions. `translations.py` defines how compiled programs compute the functions without SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from corejax.extend import Primitive, ShapedArray, defjvp_with_result, defvectorized, dtypes


def _real(name: str) -> Callable[[ShapedArray], ShapedArray]:
    """Return an abstract-eval rule for a real elementwise function, whose result has the operand's type."""

    def abstract_eval(x: ShapedArray) -> ShapedArray:
        if not dtypes.is_float(x.dtype):
            raise TypeError(f"{name} takes real floating-point numbers, got {x.str_short()}; convert them first")
        return x

    return abstract_eval


def _in_own_dtype(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Extend a function of float32 and float64 to all floating-point types; narrower types compute in float32."""

    def impl(x: np.ndarray) -> np.ndarray:
        wide = x if x.dtype in (np.float32, np.float64) else x.astype(np.float32)
        return np.asarray(function(wide)).astype(x.dtype)

    return impl


# -- erfcx ---------------------------------------------------------------------------------------------------------

erfcx_p = Primitive(
    "special_functions.erfcx",
    impl=_in_own_dtype(scipy.special.erfcx),
    abstract_eval=_real("erfcx"),
    tags=("elementwise",),
    doc="exp(x**2) * erfc(x), elementwise.",
)

# The rule uses only operators and the result, so that it can be differentiated to any order.
defjvp_with_result(erfcx_p, lambda t, y, x: t * (2 * x * y - 2 / math.sqrt(math.pi)))
defvectorized(erfcx_p)


def erfcx(x: Any) -> Any:
    """Compute the scaled complementary error function, exp(x**2) * erfc(x), elementwise.

    The result is about 1/(x sqrt(pi)) for large x, for which erfc underflows. It overflows to inf for x below about -9
    (float32) or -26 (float64). See DLMF 7.2, and `scipy.special.erfcx`.

    Args:
        x: real floating-point numbers, of any shape.

    Returns:
        An array of the same shape and dtype.

    Raises:
        TypeError: the dtype is not a real floating-point one.
    """
    return erfcx_p.bind(x)


# -- lambertw ------------------------------------------------------------------------------------------------------


def _principal_branch(x: np.ndarray) -> np.ndarray:
    """Compute the principal branch by SciPy's complex function; it is real for x >= -1/e."""
    end = x.dtype.type(-math.exp(-1))  # SciPy returns NaN there
    w = scipy.special.lambertw(np.where(x > end, x, np.nan).astype(np.float64)).real
    return np.where(x == end, -1.0, w)


lambertw_p = Primitive(
    "special_functions.lambertw",
    impl=_in_own_dtype(_principal_branch),
    abstract_eval=_real("lambertw"),
    tags=("elementwise",),
    doc="The w >= -1 with w * exp(w) = x, elementwise; NaN for x < -1/e.",
)


def _lambertw_jvp(t: Any, w: Any, x: Any) -> Any:
    """Return the tangent, W'(x) = exp(-W) / (1 + W); unlike W / (x (1 + W)), this form is valid at 0."""
    from corejax import lax

    return t * lax.exp(-w) / (1 + w)


defjvp_with_result(lambertw_p, _lambertw_jvp)
defvectorized(lambertw_p)


def lambertw(x: Any) -> Any:
    """Compute the principal branch of Lambert's W for real x: w >= -1 with w * exp(w) = x, elementwise.

    See DLMF 4.13, and `scipy.special.lambertw`, which is complex. The derivative is infinite at -1/e.

    Args:
        x: real floating-point numbers, of any shape.

    Returns:
        An array of the same shape and dtype, with NaN where x < -1/e.

    Raises:
        TypeError: the dtype is not a real floating-point one.
    """
    return lambertw_p.bind(x)


__all__ = ["erfcx", "lambertw"]
