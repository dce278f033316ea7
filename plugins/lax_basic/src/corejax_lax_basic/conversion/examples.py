"""Examples of the primitives of this package, from which checks of their rules start. Data only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from corejax.extend import Example
from corejax_lax_basic._base.samples import F32, I32, typed, unary

_REASON = "its derivative is zero by definition, and not the function's"
_NO_DERIVATIVE = dict.fromkeys(("jvp", "second_order", "pairs", "triples"), _REASON)

NAMED: dict[str, Callable[[], list[Example]]] = {
    **dict.fromkeys(("copy", "stage"), lambda: unary(reference=np.array)),
    "stop_gradient": lambda: unary(skip=_NO_DERIVATIVE),
    "bitcast_convert_type": lambda: [
        Example((typed(*shape, dtype=source),), {"new_dtype": np.dtype(target)}, skip=_NO_DERIVATIVE)
        for shape, source, target in (((3,), F32, np.int32), ((3,), I32, np.int16), ((3, 2), np.int16, np.int32))
    ],
    # In a format that holds every operand nothing is rounded, so that finite differences agree with the derivative.
    "reduce_precision": lambda: [
        Example((typed(*shape),), {"exponent_bits": 11, "mantissa_bits": 52}) for shape in ((3,), (2, 3), ())
    ],
    "convert_element_type": lambda: [
        Example((typed(4, dtype=source),), {"new_dtype": np.dtype(target), "weak_type": False}, low=0.1, high=2.9)
        for source in (F32, I32)
        for target in (np.float64, np.float32, np.float16, np.int32, np.bool_, np.complex64)
    ],
}
