"""Applications of the primitives of this package, for whoever checks their rules. Data only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from corejax.extend import Example
from corejax_lax_basic._base.samples import I32, one, typed

NAMED: dict[str, Callable[[], list[Example]]] = {
    "dynamic_slice": lambda: [
        *(one((typed(5), np.asarray(start, I32)), slice_sizes=(2,)) for start in (0, 2, 9, -9)),
        one((typed(3, 4), np.asarray(1, I32), np.asarray(2, I32)), slice_sizes=(2, 2)),
    ],
    "dynamic_update_slice": lambda: [
        *(one((typed(5), typed(2), np.asarray(start, I32))) for start in (0, 2, 9, -9)),
        one((typed(3, 4), typed(2, 2), np.asarray(1, I32), np.asarray(2, I32))),
    ],
}
