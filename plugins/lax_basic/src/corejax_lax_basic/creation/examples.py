"""Applications of the primitives of this package, for whoever checks their rules. Data only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from corejax.extend import Example
from corejax_lax_basic._base.samples import one

NAMED: dict[str, Callable[[], list[Example]]] = {
    "iota": lambda: [
        one((), dtype=np.dtype(dtype), shape=shape, dimension=len(shape) - 1)
        for dtype in (np.int32, np.float32, np.uint8)
        for shape in ((4,), (2, 3))
    ],
}
