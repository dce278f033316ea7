"""`from_front`: indices with the negative ones counted from the end of an axis.

Each index that is data needs it. As one primitive, it is one equation of a program instead of three.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Primitive, defbroadcasting, dtypes, impl_rules
from corejax_lax_basic._base.scalars import make_scalar
from corejax_lax_basic._base.type_rules import INTEGER, elementwise
from corejax_lax_basic.elementwise.arithmetic import add
from corejax_lax_basic.elementwise.comparison import lt
from corejax_lax_basic.elementwise.select import select_n

__all__ = ["from_front"]


def from_front(index: Any, size: Any) -> Any:
    """Return indices with the negative ones counted from the end of an axis.

    Args:
        index: integer array of any shape. Unsigned indices are returned unchanged.
        size: the size of the axis, a Python integer or symbolic.
    """
    dtype = index.aval.dtype
    return index if dtypes.is_unsigned(dtype) else from_front_p.bind(index, make_scalar(size, dtype))


def _decomposed(index: Any, size: Any) -> Any:
    return select_n(lt(index, 0), index, add(index, size))


def _impl(index: Any, size: Any) -> Any:
    return np.where(index < 0, index + size, index)


from_front_p = Primitive(
    "from_front",
    abstract_eval=elementwise("from_front", 2, INTEGER),
    decomposition=_decomposed,
    tags=("elementwise", "exact", "cheap"),
    doc="Return indices with the negative ones counted from the end of an axis, whose size is the second operand.",
)
impl_rules.register(from_front_p, _impl)
defbroadcasting(from_front_p)
