"""Element-wise functions that are one primitive each: hyperbolic, inverse trigonometric, roots, powers of 2."""

from __future__ import annotations

from typing import Any

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.elementwise import inexact_function, promoted_function


def _principal_acosh(x: Any) -> Any:
    """Return the branch of acosh with non-negative real part, as NumPy does; the primitive may return the other."""
    out = lax.acosh(x)
    if not dtypes.is_complex(out.dtype):
        return out
    real = lax.real(out)
    return lax.select(lax.lt(real, lax.full_like(real, 0)), lax.neg(out), out)


# fmt: off
sinh    = inexact_function("sinh",    lax.sinh_p,  "Compute the hyperbolic sine.")
cosh    = inexact_function("cosh",    lax.cosh_p,  "Compute the hyperbolic cosine.")
arcsin  = inexact_function("arcsin",  lax.asin_p,  "Compute the inverse sine, in radians; NaN outside [-1, 1].")
arccos  = inexact_function("arccos",  lax.acos_p,  "Compute the inverse cosine, in radians; NaN outside [-1, 1].")
arctan  = inexact_function("arctan",  lax.atan_p,  "Compute the inverse tangent, in radians.")
arcsinh = inexact_function("arcsinh", lax.asinh_p, "Compute the inverse hyperbolic sine.")
arccosh = inexact_function("arccosh", _principal_acosh, "Compute the inverse hyperbolic cosine; NaN below 1.")
arctanh = inexact_function("arctanh", lax.atanh_p, "Compute the inverse hyperbolic tangent; NaN outside [-1, 1].")
cbrt    = inexact_function("cbrt",    lax.cbrt_p,  "Compute the cube root; negative for negative numbers.")
exp2    = inexact_function("exp2",    lax.exp2_p,  "Compute 2 to the power `x`.")

_ARCTAN2 = "Compute the angle of the point `(y, x)`, in radians; `y` is the first argument."
arctan2 = promoted_function("arctan2", lax.atan2_p, _ARCTAN2, inexact=True)
# fmt: on
