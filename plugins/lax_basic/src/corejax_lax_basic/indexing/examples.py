"""Examples of the primitives of this package, from which checks of their rules start. Data only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Example, stage_closed
from corejax_lax_basic._base.samples import I32, one, typed
from corejax_lax_basic.elementwise.arithmetic import mul_p
from corejax_lax_basic.indexing.dimension_numbers import (
    CLIP,
    FILL,
    PROMISE,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
)

# Rows of a matrix; windows on both axes, one index component each, the second beyond the end; rows paired with a batch.
_ROWS = ((3, 4), [[2], [0], [2]], ((1,), (0,), (0,)), (1, 4), (3, 4))
_WINDOWS = ((3, 4), [[1, 0], [0, 3]], ((1,), (0,), (1, 0)), (1, 2), (2, 2))
_BATCH = ((2, 3, 2), [[[2], [0]], [[-1], [5]]], ((2,), (1,), (1,), (0,), (0,)), (1, 1, 2), (2, 2, 2))


def _indices(values: Any, drawn: bool) -> Any:
    """Return the indices `values` or, if `drawn`, a type of that shape, so that some are drawn out of bounds."""
    return typed(*np.shape(values), dtype=I32) if drawn else np.asarray(values, I32)


def _gather(case: Any, mode: Any, fill_value: Any = None) -> Example:
    shape, indices, numbers, sizes, _ = case
    return one(
        (typed(*shape), _indices(indices, mode is not PROMISE)),
        dimension_numbers=GatherDimensionNumbers(*numbers),
        slice_sizes=sizes,
        unique_indices=False,
        indices_are_sorted=False,
        mode=mode,
        fill_value=fill_value,
    )


def _scatter(case: Any, mode: Any, unique: bool = False) -> Example:
    shape, indices, numbers, _, updates = case
    return one(
        (typed(*shape), _indices(indices, mode is not PROMISE and not unique), typed(*updates)),
        dimension_numbers=ScatterDimensionNumbers(*numbers),
        indices_are_sorted=False,
        unique_indices=unique,
        mode=mode,
    )


def _scatters() -> list[Example]:
    return [_scatter(_ROWS, PROMISE), _scatter(_WINDOWS, FILL, True), _scatter(_BATCH, CLIP)]


def _applied() -> list[Example]:
    def squared(x: Any) -> list[Any]:
        return [mul_p.bind(x, x)]

    shape, indices, numbers, _, updates = _ROWS
    return [
        one(
            (typed(*shape), np.asarray(indices, I32)),
            jaxpr=stage_closed(squared, [typed()]),
            update_shape=updates,
            dimension_numbers=ScatterDimensionNumbers(*numbers),
            indices_are_sorted=False,
            unique_indices=False,
            mode=mode,
        )
        for mode in (CLIP, FILL)
    ]


NAMED: dict[str, Callable[[], list[Example]]] = {
    "dynamic_slice": lambda: [
        *(one((typed(5), np.asarray(start, I32)), slice_sizes=(2,)) for start in (0, 2, 9, -9)),
        one((typed(3, 4), np.asarray(1, I32), np.asarray(2, I32)), slice_sizes=(2, 2)),
    ],
    "dynamic_update_slice": lambda: [
        *(one((typed(5), typed(2), np.asarray(start, I32))) for start in (0, 2, 9, -9)),
        one((typed(3, 4), typed(2, 2), np.asarray(1, I32), np.asarray(2, I32))),
    ],
    "from_front": lambda: [
        one((np.asarray(index, I32), np.asarray(5, I32)), lambda i, n: np.where(i < 0, i + n, i))
        for index in (-2, [[0, 4, 5], [-1, -5, -6]])
    ],
    "gather": lambda: [_gather(_ROWS, PROMISE), _gather(_WINDOWS, CLIP), _gather(_BATCH, FILL, 0)],
    "scatter": _scatters,
    "scatter-add": _scatters,
    "scatter_apply": _applied,
    "scatter-sub": _scatters,
    "scatter-mul": lambda: [_scatter(_WINDOWS, FILL, True)],
    "scatter-min": _scatters,
    "scatter-max": _scatters,
}
