"""Examples of the primitives of this package, from which checks of their rules start. Data only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from corejax.extend import Example, dtypes
from corejax_lax_basic._base.samples import C64, F32, I32, typed
from corejax_lax_basic.linear.ragged_dot import RaggedDotDimensionNumbers

F8, SCALE = dtypes.dtype("float8_e4m3fn"), dtypes.dtype("float8_e8m0fnu")
_ROWS = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def _ragged(lhs: tuple[int, ...], rhs: tuple[int, ...], numbers: RaggedDotDimensionNumbers) -> Example:
    params = {"ragged_dot_dimension_numbers": numbers, "precision": None, "preferred_element_type": F32}
    return Example((typed(*lhs), typed(*rhs), np.array([2, 3], I32)), params)


NAMED: dict[str, Callable[[], list[Example]]] = {
    "dot_general": lambda: [
        Example(
            (typed(*a, dtype=dtype), typed(*b, dtype=dtype)),
            {"dimension_numbers": numbers, "preferred_element_type": dtype},
        )
        for dtype in (F32, C64, I32)
        for numbers, a, b in (
            ((((1,), (0,)), ((), ())), (2, 3), (3, 4)),
            ((((0,), (0,)), ((), ())), (3,), (3,)),
            ((((2,), (1,)), ((0,), (0,))), (2, 3, 4), (2, 4, 5)),
            ((((), ()), ((), ())), (2,), (3,)),
            *([((((1, 2), (2, 1)), ((), ())), (2, 3, 3), (4, 3, 3))] if dtype == F32 else []),
        )
    ],
    "ragged_dot_general": lambda: [
        _ragged((6, 3), (2, 3, 2), _ROWS),
        _ragged((3, 6), (6, 2), RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), (1,), ())),
    ],
    "scaled_dot": lambda: [
        Example(
            (typed(2, 4, dtype=F8), typed(4, 3, dtype=F8), typed(2, 2, dtype=SCALE), typed(1, 3, dtype=SCALE)),
            {"dimension_numbers": (((1,), (0,)), ((), ())), "preferred_element_type": F32},
            low=0.25,
        )
    ],
}
