"""Bitwise operations, which are the logical ones on booleans: and or xor not.

    and : (a[*s], a[*s]) -> a[*s]        a boolean or integer

Operands of one dtype and shape, or scalars beside arrays. There are no derivatives. Each function raises TypeError
where dtypes or shapes disagree, and for other dtypes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Primitive, defbroadcasting, defvectorized, defzero
from corejax_lax_basic._base.type_rules import INTEGRAL, row
from corejax_lax_basic._operands import promoted


def bitwise_and(x: Any, y: Any) -> Any:
    """`x & y` for each element; boolean or integer, the same dtype out (StableHLO `and`)."""
    if getattr(x, "aval", None) is not getattr(y, "aval", x):
        x, y = promoted(x, y)
    return and_p.bind(x, y)


def bitwise_or(x: Any, y: Any) -> Any:
    """`x | y` for each element; boolean or integer, the same dtype out (StableHLO `or`)."""
    if getattr(x, "aval", None) is not getattr(y, "aval", x):
        x, y = promoted(x, y)
    return or_p.bind(x, y)


def bitwise_xor(x: Any, y: Any) -> Any:
    """`x ^ y` for each element; boolean or integer, the same dtype out (StableHLO `xor`)."""
    if getattr(x, "aval", None) is not getattr(y, "aval", x):
        x, y = promoted(x, y)
    return xor_p.bind(x, y)


def bitwise_not(x: Any) -> Any:
    """`~x` for each element; boolean or integer, the same dtype out (StableHLO `not`)."""
    return not_p.bind(x)


# fmt: off
and_p = Primitive(**row("and", np.bitwise_and, INTEGRAL, bitwise_and))
or_p  = Primitive(**row("or",  np.bitwise_or,  INTEGRAL, bitwise_or))
xor_p = Primitive(**row("xor", np.bitwise_xor, INTEGRAL, bitwise_xor))
not_p = Primitive(**row("not", np.bitwise_not, INTEGRAL, bitwise_not))
# fmt: on

for _primitive in (and_p, or_p, xor_p, not_p):
    defzero(_primitive)
defbroadcasting(and_p, or_p, xor_p)
defvectorized(not_p)
