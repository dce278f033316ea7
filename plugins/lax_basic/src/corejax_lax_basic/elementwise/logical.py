"""Bitwise operations, which are the logical ones on booleans: and or xor not.

    and : (a[*s], a[*s]) -> a[*s]        a boolean or integer

Operands have one dtype and shape, or are scalars beside arrays. Derivatives are zero. Each function raises TypeError
if dtypes or shapes disagree, or if the dtype is neither boolean nor integer.
"""

from __future__ import annotations

import numpy as np

from corejax.extend import defzero
from corejax_lax_basic._base.type_rules import INTEGRAL
from corejax_lax_basic.elementwise._family import binary, unary

__all__: list[str] = []  # rows bring their own names

_doc = "Compute `{}` for each element; boolean or integer, the same dtype out (StableHLO `{}`)."

# fmt: off
bitwise_and, and_p = binary("and", np.bitwise_and, INTEGRAL, "and", defzero, _doc.format("x & y", "and"),
                            function="bitwise_and")
bitwise_or,  or_p  = binary("or",  np.bitwise_or,  INTEGRAL, "or",  defzero, _doc.format("x | y", "or"),
                            function="bitwise_or")
bitwise_xor, xor_p = binary("xor", np.bitwise_xor, INTEGRAL, "xor", defzero, _doc.format("x ^ y", "xor"),
                            function="bitwise_xor")
bitwise_not, not_p = unary("not",  np.bitwise_not, INTEGRAL, "not", defzero, _doc.format("~x", "not"),
                           function="bitwise_not")
# fmt: on
