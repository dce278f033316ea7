"""Examples of the primitives of this package, from which checks of their rules start. Data only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from corejax.extend import Example
from corejax_lax_basic._base.samples import one, typed

NAMED: dict[str, Callable[[], list[Example]]] = {
    "broadcast_in_dim": lambda: [
        one((typed(2, 3),), shape=(4, 2, 3), broadcast_dimensions=(1, 2)),
        one((typed(3),), shape=(3, 2), broadcast_dimensions=(0,)),
        one((typed(1, 3),), shape=(2, 3), broadcast_dimensions=(0, 1)),
        one((typed(),), shape=(2, 0), broadcast_dimensions=()),
    ],
    "reshape": lambda: [one((typed(2, 3),), lambda x, *, new_sizes: np.reshape(x, new_sizes), new_sizes=(3, 2))],
    "transpose": lambda: [
        one((typed(2, 3),), lambda x, *, permutation: np.transpose(x, permutation), permutation=(1, 0)),
        one((typed(2, 3, 4),), lambda x, *, permutation: np.transpose(x, permutation), permutation=(2, 0, 1)),
    ],
    "squeeze": lambda: [one((typed(1, 3, 1),), dimensions=(0, 2)), one((typed(2, 1),), dimensions=(1,))],
    "rev": lambda: [
        one((typed(5),), lambda x, *, dimensions: np.flip(x, dimensions), dimensions=(0,)),
        one((typed(2, 3),), lambda x, *, dimensions: np.flip(x, dimensions), dimensions=(0, 1)),
        one((typed(2, 3),), dimensions=(1,)),
    ],
    "concatenate": lambda: [
        one((typed(2, 3), typed(1, 3)), lambda *xs, dimension: np.concatenate(xs, dimension), dimension=0),
        one((typed(2, 3), typed(2, 1), typed(2, 2)), lambda *xs, dimension: np.concatenate(xs, dimension), dimension=1),
    ],
    "slice": lambda: [
        one((typed(2, 3),), start_indices=(0, 1), limit_indices=(2, 3), strides=None),
        one((typed(5),), start_indices=(1,), limit_indices=(5,), strides=(2,)),
        one((typed(6, 3),), start_indices=(1, 0), limit_indices=(6, 2), strides=(3, 1)),
    ],
    "pad": lambda: [
        one((typed(3), typed()), padding_config=((1, 2, 0),)),
        one((typed(4), typed()), padding_config=((-1, 1, 2),)),
        one((typed(2, 3), typed()), padding_config=((0, 1, 1), (2, -1, 0))),
    ],
    "split": lambda: [
        one((typed(5),), sizes=(2, 0, 3), axis=0),
        one((typed(2, 3),), lambda x, *, sizes, axis: np.split(x, [1], axis), sizes=(1, 2), axis=1),
    ],
    "stack": lambda: [
        one((typed(2, 3), typed(2, 3)), lambda *xs, axis: np.stack(xs, axis), axis=1),
        one((typed(), typed(), typed()), axis=0),
    ],
    "unstack": lambda: [one((typed(3),), axis=0), one((typed(2, 3),), axis=1)],
    "tile": lambda: [
        one((typed(2, 3),), lambda x, *, reps: np.tile(x, reps), reps=(2, 1)),
        one((typed(2),), reps=(3,)),
    ],
}
