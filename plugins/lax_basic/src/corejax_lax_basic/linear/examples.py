"""Applications of the primitives of this package, for whoever checks their rules. Data only."""

from __future__ import annotations

from collections.abc import Callable

from corejax.extend import Example
from corejax_lax_basic._base.samples import C64, F32, I32, typed

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
        )
    ],
}
