"""Examples of the primitives of this package, from which checks of their rules start. Data only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from corejax.extend import Example
from corejax_lax_basic._base.samples import BOOL, one, typed

NAMED: dict[str, Callable[[], list[Example]]] = {
    "iota": lambda: [
        one((), dtype=np.dtype(dtype), shape=shape, dimension=len(shape) - 1)
        for dtype in (np.int32, np.float32, np.uint8)
        for shape in ((4,), (2, 3))
    ],
    "empty": lambda: [one((), dtype=np.dtype(np.float32), shape=(2, 3)), one((), dtype=np.dtype(np.int8), shape=())],
    "create_token": lambda: [one(())],
    "after_all": lambda: [one((typed(0, dtype=BOOL), typed(0, dtype=BOOL))), one(())],
}
