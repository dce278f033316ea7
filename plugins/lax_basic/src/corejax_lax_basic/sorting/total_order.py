"""Comparisons in the total order of floats: eq_to lt_to le_to.

    lt_to : (a[*s], a[*s]) -> bool[*s]

-NaN < -inf < ... < -0.0 < 0.0 < ... < inf < NaN (IEEE 754 totalOrder; StableHLO `compare` with TOTALORDER). Integers
and booleans have their natural order. Rules of other primitives and programs that sort use these primitives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Primitive, defbroadcasting, defzero
from corejax_lax_basic._base.type_rules import ORDERED, elementwise, to_bool
from corejax_lax_basic.sorting._host_order import ordinals

__all__ = ["eq_to_p", "le_to_p", "lt_to_p"]


def _comparison(name: str, compare: Callable[..., Any], text: str) -> Primitive:
    def impl(x: Any, y: Any) -> Any:
        return compare(ordinals(x, False), ordinals(y, False))

    primitive = Primitive(
        name,
        impl=impl,
        abstract_eval=elementwise(name, 2, ORDERED, to_bool),
        tags=("elementwise",),
        doc=f"Return `x {text} y` for each element in the total order of floats; boolean, integer or floating-point.",
    )
    defbroadcasting(primitive)
    defzero(primitive)
    return primitive


eq_to_p = _comparison("eq_to", np.equal, "==")
lt_to_p = _comparison("lt_to", np.less, "<")
le_to_p = _comparison("le_to", np.less_equal, "<=")
