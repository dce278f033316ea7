"""reduce_precision: floating-point numbers rounded to a format of fewer bits.

reduce_precision : f[*s] -> f[*s]
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, deflinear, defvectorized, dtypes
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.type_rules import FLOAT, check_kind

__all__ = ["reduce_precision", "reduce_precision_p"]


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """Round `operand` to a format of fewer bits, in its own dtype (StableHLO `reduce_precision`).

    Args:
        operand: floating-point array.
        exponent_bits: bits of the exponent, at least 1. Numbers that are too large become infinite, numbers below the
            smallest normal number become zero.
        mantissa_bits: bits of the fraction, at least 0; halfway values are rounded to even.

    Returns:
        Array of the dtype of `operand`. The function counts as linear: tangents are rounded as well.

    Raises:
        TypeError: the dtype is not floating-point, or a number of bits is no integer.
        ValueError: a number of bits is too small.
    """
    return reduce_precision_p.bind(
        operand,
        exponent_bits=_bits("exponent_bits", exponent_bits),
        mantissa_bits=_bits("mantissa_bits", mantissa_bits),
    )


def _bits(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"reduce_precision: `{name}` has to be an integer, got {value!r}") from None


def _impl(x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    if x.dtype.itemsize == 1:  # XLA computes in the wider format with as many exponent bits
        wider = x.astype(np.float16 if dtypes.finfo(x.dtype).nexp <= 5 else np.float32)
        return _impl(wider, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits).astype(x.dtype)
    info = dtypes.finfo(x.dtype)
    word = np.dtype(f"u{x.dtype.itemsize}").type
    bits, one = x.view(word), word(1)
    sign = bits & (one << word(info.bits - 1))
    bits = bits ^ sign
    infinity = ((one << word(info.nexp)) - one) << word(info.nmant)
    if mantissa_bits < info.nmant:
        dropped = word(info.nmant - mantissa_bits)
        last = (bits >> dropped) & one
        bits = (bits + last + ((one << (dropped - one)) - one)) & ~((one << dropped) - one)
    if exponent_bits < info.nexp:
        bias, reduced = (1 << (info.nexp - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        exponent = bits >> word(info.nmant)
        bits = np.where(exponent > word(bias + reduced), infinity, bits)
        bits = np.where(exponent <= word(bias - reduced), word(0), bits)
    return np.where(np.isnan(x), x, (bits | sign).astype(word).view(x.dtype))


@takes("reduce_precision", 1)
def _abstract_eval(x: ShapedArray, *, exponent_bits: int, mantissa_bits: int) -> ShapedArray:
    check_kind("reduce_precision", x, FLOAT)
    if exponent_bits < 1:
        raise ValueError(f"reduce_precision: `exponent_bits` has to be at least 1, got {exponent_bits}")
    if mantissa_bits < 0:
        raise ValueError(f"reduce_precision: `mantissa_bits` has to be at least 0, got {mantissa_bits}")
    return x


reduce_precision_p = Primitive(
    "reduce_precision",
    impl=_impl,
    abstract_eval=_abstract_eval,
    linear_in=(0,),
    tags=("elementwise",),
    doc="Round floating-point numbers to a format of fewer bits, in their own dtype.",
)
defvectorized(reduce_precision_p)
deflinear(reduce_precision_p, lambda ct, x, **bits: [reduce_precision_p.bind(ct, **bits)])
