"""Complex numbers and their parts: real imag conj complex.

    real : c64[*s] -> f32[*s]        complex : (f32[*s], f32[*s]) -> c64[*s]

Tangents and cotangents pair as `Re(ct * t)`, without conjugation, as in JAX. Each function raises TypeError for
dtypes not named.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Primitive, defbroadcasting, deflinear, defvectorized, dtypes, get_aval, is_undef_primal
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.type_rules import COMPLEX, FLOAT, constant, elementwise, row, unbroadcast
from corejax_lax_basic._operands import promoted
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.elementwise.arithmetic import neg


def real(x: Any) -> Any:
    """Real part of complex numbers: complex64 gives float32, complex128 float64 (StableHLO `real`)."""
    return real_p.bind(x)


def imag(x: Any) -> Any:
    """Imaginary part of complex numbers: complex64 gives float32, complex128 float64 (StableHLO `imag`)."""
    return imag_p.bind(x)


def complex(x: Any, y: Any) -> Any:
    """`x + iy` of two float32 (complex64) or float64 (complex128) arrays of one shape (StableHLO `complex`)."""
    return complex_p.bind(*promoted(x, y))


def conj(x: Any) -> Any:
    """Complex conjugate; floating-point numbers become complex first, so that the result always is."""
    dtype = get_aval(x).dtype
    if dtypes.is_float(dtype):
        return convert_element_type(x, dtypes.complex_dtype_of(dtype))
    return conj_p.bind(x)


def _complex_impl(x: Any, y: Any) -> Any:
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), dtypes.complex_dtype_of(x.dtype))
    out.real, out.imag = x, y
    return out


_of_parts = elementwise("complex", 2, FLOAT, dtypes.complex_dtype_of)


@takes("complex", 2)
def _complex_abstract_eval(*avals: Any) -> Any:
    for aval in avals:
        if dtypes.is_float(aval.dtype) and aval.dtype.itemsize < 4:
            given = aval.str_short(short_dtypes=False)
            raise TypeError(f"complex: the parts have to be float32 or float64, got {given}")
    return _of_parts(*avals)


# fmt: off
real_p = Primitive(**row("real", lambda x: x.real, COMPLEX, real, dtypes.real_dtype_of, linear_in=(0,)))
imag_p = Primitive(**row("imag", lambda x: x.imag, COMPLEX, imag, dtypes.real_dtype_of, linear_in=(0,)))
conj_p = Primitive(**row("conj", np.conjugate,     COMPLEX, conj, linear_in=(0,)))
# fmt: on
complex_p = Primitive(
    "complex",
    impl=_complex_impl,
    abstract_eval=_complex_abstract_eval,
    linear_in=(0, 1),
    tags=("elementwise",),
    doc=complex.__doc__,
)

defvectorized(real_p, imag_p, conj_p)
defbroadcasting(complex_p)


def _complex_transpose(ct: Any, x: Any, y: Any) -> list[Any]:
    return [
        unbroadcast(x.aval, real(ct)) if is_undef_primal(x) else None,
        unbroadcast(y.aval, neg(imag(ct))) if is_undef_primal(y) else None,
    ]


deflinear(real_p, lambda ct, x: [complex(ct, constant(ct, 0))])
deflinear(imag_p, lambda ct, x: [complex(constant(ct, 0), neg(ct))])
deflinear(conj_p, lambda ct, x: [conj(ct)])
deflinear(complex_p, _complex_transpose)
