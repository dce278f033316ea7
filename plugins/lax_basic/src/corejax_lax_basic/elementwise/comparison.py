"""Comparisons: eq ne lt le gt ge.

    eq : (a[*s], a[*s]) -> bool[*s]

Operands of one dtype and shape, or scalars beside arrays. A NaN is unequal to everything and unordered; complex
numbers have equality only. Derivatives are zero. Each function raises TypeError where dtypes or shapes disagree.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Primitive, defbroadcasting, defzero
from corejax_lax_basic._base.type_rules import ANY, ORDERED, row, to_bool
from corejax_lax_basic._operands import promoted


def eq(x: Any, y: Any) -> Any:
    """`x == y` for each element, as bool; any dtype (StableHLO `compare` EQ)."""
    if getattr(x, "aval", None) is not getattr(y, "aval", x):
        x, y = promoted(x, y)
    return eq_p.bind(x, y)


def ne(x: Any, y: Any) -> Any:
    """`x != y` for each element, as bool; any dtype (StableHLO `compare` NE)."""
    if getattr(x, "aval", None) is not getattr(y, "aval", x):
        x, y = promoted(x, y)
    return ne_p.bind(x, y)


def lt(x: Any, y: Any) -> Any:
    """`x < y` for each element, as bool; boolean, integer or floating-point (StableHLO `compare` LT)."""
    if getattr(x, "aval", None) is not getattr(y, "aval", x):
        x, y = promoted(x, y)
    return lt_p.bind(x, y)


def le(x: Any, y: Any) -> Any:
    """`x <= y` for each element, as bool; boolean, integer or floating-point (StableHLO `compare` LE)."""
    if getattr(x, "aval", None) is not getattr(y, "aval", x):
        x, y = promoted(x, y)
    return le_p.bind(x, y)


def gt(x: Any, y: Any) -> Any:
    """`x > y` for each element, as bool; boolean, integer or floating-point (StableHLO `compare` GT)."""
    if getattr(x, "aval", None) is not getattr(y, "aval", x):
        x, y = promoted(x, y)
    return gt_p.bind(x, y)


def ge(x: Any, y: Any) -> Any:
    """`x >= y` for each element, as bool; boolean, integer or floating-point (StableHLO `compare` GE)."""
    if getattr(x, "aval", None) is not getattr(y, "aval", x):
        x, y = promoted(x, y)
    return ge_p.bind(x, y)


# fmt: off
eq_p = Primitive(**row("eq", np.equal,         ANY,     eq, to_bool))
ne_p = Primitive(**row("ne", np.not_equal,     ANY,     ne, to_bool))
lt_p = Primitive(**row("lt", np.less,          ORDERED, lt, to_bool))
le_p = Primitive(**row("le", np.less_equal,    ORDERED, le, to_bool))
gt_p = Primitive(**row("gt", np.greater,       ORDERED, gt, to_bool))
ge_p = Primitive(**row("ge", np.greater_equal, ORDERED, ge, to_bool))
# fmt: on

for _primitive in (eq_p, ne_p, lt_p, le_p, gt_p, ge_p):
    defzero(_primitive)
    defbroadcasting(_primitive)
