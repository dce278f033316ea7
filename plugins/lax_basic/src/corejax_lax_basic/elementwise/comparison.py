"""Comparisons: eq ne lt le gt ge.

    eq : (a[*s], a[*s]) -> bool[*s]

Operands of one dtype and shape, or scalars beside arrays. A NaN is unequal to everything and unordered; complex
numbers have equality only. Derivatives are zero. Each function raises TypeError where dtypes or shapes disagree.
"""

from __future__ import annotations

import numpy as np

from corejax.extend import defzero
from corejax_lax_basic._base.type_rules import ANY, ORDERED, to_bool
from corejax_lax_basic.elementwise._family import binary

__all__: list[str] = []  # rows bring their own names

_any = "`{} y` for each element, as bool; any dtype (StableHLO `compare` {})."
_ordered = "`{} y` for each element, as bool; boolean, integer or floating-point (StableHLO `compare` {})."

# Translated by one rule, in which the name is the direction of StableHLO's `compare`.
# fmt: off
eq, eq_p = binary("eq", np.equal,         ANY,     None, defzero, _any.format("x ==", "EQ"),     result=to_bool)
ne, ne_p = binary("ne", np.not_equal,     ANY,     None, defzero, _any.format("x !=", "NE"),     result=to_bool)
lt, lt_p = binary("lt", np.less,          ORDERED, None, defzero, _ordered.format("x <", "LT"),  result=to_bool)
le, le_p = binary("le", np.less_equal,    ORDERED, None, defzero, _ordered.format("x <=", "LE"), result=to_bool)
gt, gt_p = binary("gt", np.greater,       ORDERED, None, defzero, _ordered.format("x >", "GT"),  result=to_bool)
ge, ge_p = binary("ge", np.greater_equal, ORDERED, None, defzero, _ordered.format("x >=", "GE"), result=to_bool)
# fmt: on
