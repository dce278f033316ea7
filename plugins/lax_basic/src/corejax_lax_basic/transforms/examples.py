"""Examples of the primitives of this package, from which checks of their rules start."""

from __future__ import annotations

from collections.abc import Callable

from corejax.extend import Example
from corejax_lax_basic._base.samples import typed

_OF = {"primitive": "polynomial", "params": (), "axis_size": 3}

NAMED: dict[str, Callable[[], list[Example]]] = {
    "batched": lambda: [
        Example((typed(3, 2), typed(3), typed(3)), {**_OF, "dims": (0, 0, 0)}),
        Example((typed(2, 3), typed(3), typed()), {**_OF, "dims": (1, 0, None)}),
    ],
}
