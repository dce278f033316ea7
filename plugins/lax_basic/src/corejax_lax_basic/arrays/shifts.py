"""Python's operators `<<` and `>>`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from corejax.extend import Primitive, dtypes
from corejax_lax_basic._base.rows import named
from corejax_lax_basic._promotion import promote_operands
from corejax_lax_basic.arrays._operator import Binary, operator
from corejax_lax_basic.arrays.other_operators import as_integers
from corejax_lax_basic.elementwise.bits import shift_left_p, shift_right_arithmetic_p, shift_right_logical_p

_bool = np.dtype(np.bool_)


def _shift(primitive: Primitive, of_signed: Primitive, symbol: str) -> Binary:
    """A shift, where booleans count as integers; signed numbers have a primitive of their own."""

    def apply(x: Any, y: Any) -> Any:
        dtype = dtypes.result_type(x, y)
        if dtypes.is_inexact(dtype):
            raise TypeError(f"operator {symbol} takes booleans or integers; these operands are {dtype.name}")
        x, y = promote_operands(*(as_integers(x, y) if dtype == _bool else (x, y)), name=symbol)
        return (primitive if dtypes.is_unsigned(x.aval.dtype) else of_signed).bind(x, y)

    return apply


OPERATORS: Mapping[str, Any] = {
    **operator("lshift", _shift(shift_left_p, shift_left_p, "<<")),
    **operator("rshift", _shift(shift_right_logical_p, shift_right_arithmetic_p, ">>")),
}
for _name, _function in OPERATORS.items():
    named(_function, _name)
