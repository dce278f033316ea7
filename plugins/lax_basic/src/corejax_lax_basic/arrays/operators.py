"""Python's operators on arrays and tracers, with NumPy's promotion and broadcasting.

Two operands of one type, and an array with a Python scalar that takes its dtype, go straight to the primitive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from corejax.extend import Primitive, dtypes, remembered
from corejax_lax_basic._base.rows import named
from corejax_lax_basic._base.scalars import PYTHON_SCALARS, beyond
from corejax_lax_basic._base.type_rules import ANY, INEXACT, INTEGRAL, NUMERIC, ORDERED
from corejax_lax_basic._promotion import broadcast_operands, promote_dtypes, promote_operands
from corejax_lax_basic.arrays._operator import Binary, constant, operator
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.elementwise.arithmetic import add_p, div_p, mul_p, neg_p, sub_p
from corejax_lax_basic.elementwise.comparison import eq_p, ge_p, gt_p, le_p, lt_p, ne_p
from corejax_lax_basic.elementwise.complex_numbers import imag_p, real_p
from corejax_lax_basic.elementwise.logical import and_p, not_p, or_p, xor_p

_bool = np.dtype(np.bool_)

# -- binary functions, of operands that `as_operand` accepts -----------------------------------------------------


def _elementwise(primitive: Primitive, on_bool: Primitive | None = None, inexact: bool = False) -> Binary:
    """Return a binary operation with promotion; `on_bool` is the primitive for booleans, if it is another one."""

    def apply(x: Any, y: Any) -> Any:
        x, y = promote_operands(x, y, inexact=inexact, name=primitive.name)
        if on_bool is not None and x.aval.dtype == _bool:
            return on_bool.bind(x, y)
        return primitive.bind(x, y)

    return apply


def _compare(primitive: Primitive) -> Binary:
    """Return a comparison; if a dtype does not hold a Python integer, all elements are on one side of the integer."""

    def apply(x: Any, y: Any) -> Any:
        if {_dtype_of(x), _dtype_of(y)} == _LONGEST and dtypes.is_inexact(
            promote_dtypes(x, y, name=primitive.name)[0].aval.dtype
        ):
            return _compare_exactly(primitive, *broadcast_operands(x, y, name=primitive.name))
        try:
            x, y = promote_operands(x, y, name=primitive.name)
        except OverflowError:
            side = beyond(y, x.aval.dtype)
            if not side:
                raise
            holds = primitive is ne_p or primitive in ((lt_p, le_p) if side > 0 else (gt_p, ge_p))
            return (ge_p if holds else lt_p).bind(x, constant(x, int(dtypes.iinfo(x.aval.dtype).min)))
        if dtypes.is_complex(x.aval.dtype) and primitive not in (eq_p, ne_p):
            return _compare_parts(primitive, *broadcast_operands(x, y, name=primitive.name))
        return primitive.bind(x, y)

    return apply


def _compare_parts(primitive: Primitive, x: Any, y: Any) -> Any:
    """Compare complex numbers as NumPy does: by their real parts, and if these are equal by imaginary parts."""
    of_real, of_imag = (primitive.bind(part.bind(x), part.bind(y)) for part in (real_p, imag_p))
    tie = eq_p.bind(real_p.bind(x), real_p.bind(y))
    return or_p.bind(and_p.bind(tie, of_imag), and_p.bind(not_p.bind(tie), of_real))


_LONGEST = {np.dtype(np.int64), np.dtype(np.uint64)}  # the dtype that they promote to cannot represent all of them
_MIRRORED = {lt_p: gt_p, le_p: ge_p, gt_p: lt_p, ge_p: le_p, eq_p: eq_p, ne_p: ne_p}


def _dtype_of(x: Any) -> Any:
    return None if type(x) in PYTHON_SCALARS else x.aval.dtype


def _compare_exactly(primitive: Primitive, x: Any, y: Any) -> Any:
    """Compare signed with unsigned integers: negative numbers are less, and others compare as unsigned numbers."""
    if dtypes.is_unsigned(x.aval.dtype):
        x, y, primitive = y, x, _MIRRORED[primitive]
    negative = lt_p.bind(x, constant(x, 0))
    out = primitive.bind(convert_element_type(x, y.aval.dtype), y)
    if primitive in (lt_p, le_p, ne_p):
        return or_p.bind(out, negative)
    return and_p.bind(out, not_p.bind(negative))


def _bitwise(primitive: Primitive, symbol: str) -> Binary:
    """Return a binary operation on booleans and integers, with promotion."""

    def apply(x: Any, y: Any) -> Any:
        x, y = promote_operands(x, y, name=primitive.name)
        if dtypes.is_inexact(x.aval.dtype):
            raise TypeError(f"operator {symbol} takes booleans or integers; these operands are {x.aval.dtype.name}")
        return primitive.bind(x, y)

    return apply


def subtract(x: Any, y: Any) -> Any:
    """Compute `x - y`.

    Raises:
        TypeError: the operands are booleans.
    """
    x, y = promote_operands(x, y, name="sub")
    if x.aval.dtype == _bool:
        raise TypeError("operator - is not defined for booleans; use x ^ y, or convert to an integer dtype first")
    return sub_p.bind(x, y)


def matmul(x: Any, y: Any) -> Any:
    """Compute `x @ y`."""
    from corejax_lax_basic.linear import dot  # imported on first use: few programs start with a product

    return dot.matmul(x, y)


# -- operators ---------------------------------------------------------------------------------------------------


def _negative(self: Any) -> Any:
    if self.aval.dtype == _bool:
        raise TypeError("operator - is not defined for booleans; use ~x, or convert to an integer dtype first")
    return neg_p.bind(self)


def _positive(self: Any) -> Any:
    return self


def _invert(self: Any) -> Any:
    if dtypes.is_inexact(self.aval.dtype):
        raise TypeError(f"operator ~ takes booleans or integers; this operand is {self.aval.str_short()}")
    return not_p.bind(self)


def _comparison(name: str, primitive: Primitive) -> dict[str, Any]:
    both = operator(name, _compare(primitive), primitive, ANY if primitive in (eq_p, ne_p) else ORDERED)
    return {f"__{name}__": both[f"__{name}__"]}


OPERATORS: Mapping[str, Any] = {
    **operator("add", _elementwise(add_p, on_bool=or_p), add_p, NUMERIC),
    **operator("sub", subtract, sub_p, NUMERIC),
    **operator("mul", _elementwise(mul_p, on_bool=and_p), mul_p, NUMERIC),
    **operator("truediv", _elementwise(div_p, inexact=True), div_p, INEXACT),
    **operator("and", _bitwise(and_p, "&"), and_p, INTEGRAL),
    **operator("or", _bitwise(or_p, "|"), or_p, INTEGRAL),
    **operator("xor", _bitwise(xor_p, "^"), xor_p, INTEGRAL),
    **operator("matmul", remembered(matmul)),
    **_comparison("eq", eq_p),
    **_comparison("ne", ne_p),
    **_comparison("lt", lt_p),
    **_comparison("le", le_p),
    **_comparison("gt", gt_p),
    **_comparison("ge", ge_p),
    "__neg__": _negative,
    "__pos__": _positive,
    "__invert__": _invert,
}
for _name, _function in OPERATORS.items():
    named(_function, _name)
