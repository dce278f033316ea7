"""Examples of the primitives of this package, from which checks of their rules start. Data only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray, stage_closed
from corejax_lax_basic._base.samples import F32, typed

_ONE = {
    "window_dimensions": (3,),
    "window_strides": (2,),
    "padding": ((1, 2),),
    "base_dilation": (2,),
    "window_dilation": (2,),
}
_TWO = {
    "window_dimensions": (2, 3),
    "window_strides": (1, 2),
    "padding": ((0, 0), (1, -1)),
    "base_dilation": (1, 1),
    "window_dilation": (1, 1),
}


def _windows() -> list[Example]:
    return [Example((typed(5),), _ONE), Example((typed(3, 6),), _TWO)]


def _gathered() -> list[Example]:
    return [
        Example((typed(5), typed(5)), {**_ONE, "select": "ge"}),
        Example((typed(3, 6),) * 2, {**_TWO, "select": "le"}),
    ]


def _scattered() -> list[Example]:
    def one(source: Any, keys: Any, **params: Any) -> Example:
        return Example((typed(*source), typed(*keys)), params)

    return [
        one((3,), (5,), select="ge", window_dimensions=(3,), window_strides=(2,), padding=((1, 1),)),
        one((2, 2), (3, 5), select="le", window_dimensions=(2, 3), window_strides=(1, 2), padding=((0, 0), (1, -1))),
    ]


def _general() -> list[Example]:
    scalars = [ShapedArray((), F32)] * 2
    program = stage_closed(lambda x, y: [x + y - x * y], scalars)
    zero = np.zeros((), F32)
    return [
        Example((typed(5), zero), {**_ONE, "jaxpr": program}, low=-0.5, high=0.5),
        Example((typed(2, 6), zero), {**_TWO, "jaxpr": program}, low=-0.5, high=0.5),
    ]


def _selected() -> list[Example]:
    scalars = [ShapedArray((), F32)] * 2
    programs = {
        "select_jaxpr": stage_closed(lambda x, y: [x >= y], scalars),
        "scatter_jaxpr": stage_closed(lambda x, y: [x + y], scalars),
    }
    windows = {"window_dimensions": (3,), "window_strides": (2,), "padding": ((0, 0),)}
    return [Example((typed(5), typed(2), np.zeros((), F32)), {**programs, **windows})]


NAMED: dict[str, Callable[[], list[Example]]] = {
    "reduce_window": _general,
    "reduce_window_sum": _windows,
    "reduce_window_max": _windows,
    "reduce_window_min": _windows,
    "select_and_gather_add": _gathered,
    "select_and_scatter": _selected,
    "select_and_scatter_add": _scattered,
}
