"""Complex numbers and their parts: real imag conj complex.

    real : c64[*s] -> f32[*s]        complex : (f32[*s], f32[*s]) -> c64[*s]

Tangents and cotangents pair as `Re(ct * t)`, without conjugation, as in JAX. Each function raises TypeError if it does
not accept the dtype.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import dtypes, get_aval, is_undef_primal
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.derivatives import Function, linear
from corejax_lax_basic._base.related_dtypes import complex_dtype_of
from corejax_lax_basic._base.type_rules import COMPLEX, FLOAT, elementwise
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.elementwise._family import binary, constant, unary, unbroadcast
from corejax_lax_basic.elementwise.arithmetic import neg

__all__ = ["conj"]

# Names that derivatives use before their rows define them, declared for type checkers.
complex: Function

real, real_p = unary(
    "real", lambda x: x.real, COMPLEX, "real",
    linear(lambda ct, x: [complex(ct, constant(ct, 0))]),
    "Return the real part of complex numbers: complex64 gives float32, complex128 float64 (StableHLO `real`).",
    result=dtypes.real_dtype_of, linear_in=(0,),
)  # fmt: skip

imag, imag_p = unary(
    "imag", lambda x: x.imag, COMPLEX, "imag",
    linear(lambda ct, x: [complex(constant(ct, 0), neg(ct))]),
    "Return the imaginary part of complex numbers: complex64 gives float32, complex128 float64 (StableHLO `imag`).",
    result=dtypes.real_dtype_of, linear_in=(0,),
)  # fmt: skip


def _complex_impl(x: Any, y: Any) -> Any:
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), complex_dtype_of(x.dtype))
    out.real, out.imag = x, y
    return out


_of_parts = elementwise("complex", 2, FLOAT, complex_dtype_of)


@takes("complex", 2)
def _complex_abstract_eval(*avals: Any) -> Any:
    for aval in avals:
        if dtypes.is_float(aval.dtype) and aval.dtype.itemsize < 4:
            shown = aval.str_short(short_dtypes=False)
            raise TypeError(f"complex: the parts have to be float32 or float64, got {shown}")
    return _of_parts(*avals)


def _complex_transpose(ct: Any, x: Any, y: Any) -> list[Any]:
    return [
        unbroadcast(x.aval, real(ct)) if is_undef_primal(x) else None,
        unbroadcast(y.aval, neg(imag(ct))) if is_undef_primal(y) else None,
    ]


complex, complex_p = binary(
    "complex", _complex_impl, FLOAT, "complex",
    linear(_complex_transpose),
    "Return `x + iy` for two float32 (complex64) or float64 (complex128) arrays of one shape (StableHLO `complex`).",
    abstract_eval=_complex_abstract_eval, linear_in=(0, 1),
)  # fmt: skip

# `lax.conj` is the function below, which also takes real numbers.
_, conj_p = unary(
    "conj", np.conjugate, COMPLEX, None,
    linear(lambda ct, x: [conj(ct)]),
    "Return the complex conjugate, which is complex also for floating-point operands.",
    linear_in=(0,),
)  # fmt: skip


def conj(x: Any) -> Any:
    """Return the complex conjugate, which is complex also for floating-point operands."""
    dtype = get_aval(x).dtype
    if dtypes.is_float(dtype):
        return convert_element_type(x, complex_dtype_of(dtype))
    return conj_p.bind(x)
