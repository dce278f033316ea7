"""Examples of the primitives of this package, from which checks of their rules start. Data only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Example
from corejax_lax_basic._base.samples import C64, F32, I32, typed

# Elements that tie have one tangent each, and the order of the operands decides which goes where.
TIES = {"points": "equal elements keep the order that they have, which a step in any direction changes"}


def _sorted(*operands: Any, dimension: int, num_keys: int = 1, reference: Any = None) -> Example:
    params = {"dimension": dimension, "is_stable": True, "num_keys": num_keys}
    return Example(operands, params, reference=reference, skip=TIES)


def _approximate(shape: tuple[int, ...], k: int, is_max_k: bool) -> Example:
    params = {
        "k": k,
        "reduction_dimension": len(shape) - 1,
        "recall_target": 0.95,
        "is_max_k": is_max_k,
        "reduction_input_size_override": -1,
        "aggregate_to_topk": True,
    }
    return Example((typed(*shape),), params, skip=TIES)


NAMED: dict[str, Callable[[], list[Example]]] = {
    "sort": lambda: [
        _sorted(typed(5), dimension=0, reference=lambda x, *, dimension, **_: [np.sort(x, dimension)]),
        _sorted(typed(2, 3), typed(2, 3), dimension=1),
        _sorted(typed(3, 2, dtype=I32), typed(3, 2), dimension=0, num_keys=2),
        _sorted(typed(4, dtype=C64), dimension=0),
    ],
    "top_k": lambda: [
        Example((typed(5),), {"k": 2, "axis": 0}, skip=TIES),
        Example((typed(3, 4),), {"k": 2, "axis": 0}, skip=TIES),
        Example((typed(2, 3, dtype=I32),), {"k": 3, "axis": 1}, skip=TIES),
    ],
    "approx_top_k": lambda: [_approximate((6,), 2, True), _approximate((2, 4), 3, False)],
    **{
        name: lambda: [Example((typed(3, dtype=dtype), typed(3, dtype=dtype)), {}) for dtype in (F32, I32)]
        for name in ("eq_to", "lt_to", "le_to")
    },
}
