"""Functions of floating-point numbers that are one primitive each: hyperbolic, inverse, roots, powers of 2."""

from __future__ import annotations

from typing import Any

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.elementwise import inexact_function, promoted_function


def _principal_acosh(x: Any) -> Any:
    """The branch with a real part that is not negative, as NumPy's; the primitive has the other one for some."""
    out = lax.acosh(x)
    if not dtypes.is_complex(out.dtype):
        return out
    real = lax.real(out)
    return lax.select(lax.lt(real, lax.full_like(real, 0)), lax.neg(out), out)


# fmt: off
sinh    = inexact_function("sinh",    lax.sinh_p,  "Hyperbolic sine.")
cosh    = inexact_function("cosh",    lax.cosh_p,  "Hyperbolic cosine.")
arcsin  = inexact_function("arcsin",  lax.asin_p,  "Inverse of the sine, in radians; NaN outside of [-1, 1].")
arccos  = inexact_function("arccos",  lax.acos_p,  "Inverse of the cosine, in radians; NaN outside of [-1, 1].")
arctan  = inexact_function("arctan",  lax.atan_p,  "Inverse of the tangent, in radians.")
arcsinh = inexact_function("arcsinh", lax.asinh_p, "Inverse of the hyperbolic sine.")
arccosh = inexact_function("arccosh", _principal_acosh, "Inverse of the hyperbolic cosine; NaN below 1.")
arctanh = inexact_function("arctanh", lax.atanh_p, "Inverse of the hyperbolic tangent; NaN outside of [-1, 1].")
cbrt    = inexact_function("cbrt",    lax.cbrt_p,  "Cube root, negative for negative numbers.")
exp2    = inexact_function("exp2",    lax.exp2_p,  "2 to the power `x`.")

arctan2 = promoted_function("arctan2", lax.atan2_p, "The angle of the point `(y, x)`, in radians.", inexact=True)
# fmt: on
