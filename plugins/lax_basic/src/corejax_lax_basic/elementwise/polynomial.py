"""`polynomial`: the values of a polynomial by Horner's rule.

polynomial : (a[*s], a[*s], ...) -> a[*s]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from corejax.extend import (
    Primitive,
    ShapedArray,
    as_array,
    defbroadcasting,
    get_aval,
    impl_rules,
    is_undef_primal,
    jvp_rules,
    transpose_rules,
)
from corejax.extend.transforms import zero_cotangent
from corejax_lax_basic._base.axes import integer
from corejax_lax_basic._base.narrow_floats import through_float32
from corejax_lax_basic._base.type_rules import NUMERIC, check_equal_dtypes, check_kind, joint_shape
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.creation.filled import full_like
from corejax_lax_basic.elementwise._family import constant, spread, unbroadcast
from corejax_lax_basic.elementwise.arithmetic import add, mul

__all__ = ["polynomial", "polynomial_p"]


def polynomial(x: Any, coeffs: Iterable[Any], *, unroll: int | None = None) -> Any:
    """Compute `coeffs[0] + coeffs[1] x + coeffs[2] x**2 + ...`; integer, floating-point or complex.

    Derivatives with respect to `x` are polynomials of a lower degree, so that derivatives of high orders are cheap.

    Args:
        x: the points.
        coeffs: the coefficients, that of `x**0` first: scalars, or arrays of the shape of `x`, whose dtype they get.
        unroll: accepted for compatibility: all steps of Horner's rule are operations of the program.

    Raises:
        TypeError: the shapes differ, or the dtype is bool.
    """
    x = as_array(x)
    if unroll is not None:
        integer(unroll, "unroll")
    aval = get_aval(x)
    operands = [_coefficient(c, aval) for c in coeffs]
    if not operands:
        return full_like(x, 0)
    return polynomial_p.bind(x, *operands)


def _coefficient(c: Any, aval: ShapedArray) -> Any:
    """Return a coefficient in the dtype of the points; a number is as weakly typed as they are."""
    if aval.weak_type and isinstance(c, (int, float, complex)):
        return as_array(c) if get_aval(as_array(c)).dtype == aval.dtype else convert_element_type(c, aval.dtype)
    return convert_element_type(as_array(c), aval.dtype)


def _horner(x: Any, *coeffs: Any) -> Any:
    out = coeffs[-1]
    for c in reversed(coeffs[:-1]):
        out = add(mul(out, x), c)
    return spread(out, x) if len(coeffs) == 1 else out


@through_float32
def _impl(x: Any, *coeffs: Any) -> Any:
    out = np.broadcast_to(coeffs[-1], np.broadcast_shapes(x.shape, *[c.shape for c in coeffs]))
    for c in reversed(coeffs[:-1]):
        out = out * x + c
    return np.asarray(out)


def _type(*operands: ShapedArray) -> ShapedArray:
    if len(operands) < 2:
        raise TypeError(
            f"polynomial takes at least 2 operands, got {len(operands)}: the points and at least one coefficient"
        )
    x = operands[0]
    check_equal_dtypes("polynomial", operands)
    check_kind("polynomial", x, NUMERIC)
    return ShapedArray(joint_shape("polynomial", operands), x.dtype, all(a.weak_type for a in operands))


polynomial_p = Primitive(
    "polynomial",
    abstract_eval=_type,
    decomposition=_horner,
    tags=("elementwise",),
    doc="Compute the values of a polynomial by Horner's rule; the coefficient of `x**0` is the second operand.",
)
impl_rules.register(polynomial_p, _impl)
defbroadcasting(polynomial_p)


def _jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    x, *coeffs = primals
    t, *ts = tangents
    out = polynomial_p.bind(*primals)
    terms = []
    if t is not None and len(coeffs) > 1:
        slope = polynomial_p.bind(x, *[mul(constant(c, k), c) for k, c in enumerate(coeffs) if k])
        terms.append(spread(mul(slope, t), out))
    if any(c is not None for c in ts):
        used = len(ts) - next(k for k, c in enumerate(reversed(ts)) if c is not None)
        filled = [zero_cotangent(get_aval(c)) if d is None else d for c, d in zip(coeffs, ts, strict=True)]
        terms.append(spread(polynomial_p.bind(x, *filled[:used]), out))
    return out, (add(*terms) if len(terms) == 2 else terms[0] if terms else None)


def _transpose(ct: Any, x: Any, *coeffs: Any) -> list[Any]:
    """Return the cotangents of the coefficients, in which the polynomial is linear: `ct x**k`."""
    cts = []
    for k, c in enumerate(coeffs):
        cts.append(unbroadcast(c.aval, ct) if is_undef_primal(c) else None)
        if k + 1 < len(coeffs):
            ct = mul(ct, x)  # raises if `x` is unknown: the polynomial is not linear in it
    return [None, *cts]


jvp_rules.register(polynomial_p, _jvp, symbolic_zeros=True)
transpose_rules.register(polynomial_p, _transpose)
