"""Examples of the primitives of this package, from which checks of their rules start. Data only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray, stage_closed
from corejax_lax_basic._base.samples import BOOL, F32, I32, typed


def _reduction(dtype: Any = F32, reference: Any = None, **more: Any) -> list[Example]:
    over = (((3,), (0,)), ((2, 3), (1,)), ((2, 3), (0, 1)), ((2, 2, 3), (0, 2)), ((2, 3), ()))
    numpy = reference and (lambda x, *, axes: reference(x, axis=axes))
    return [Example((typed(*s, dtype=dtype),), {"axes": axes}, reference=numpy, **more) for s, axes in over]


def _running(reference: Any) -> list[Example]:
    over = (((5,), 0, False), ((3, 4), 1, True), ((4, 2), 0, True), ((1, 3), 0, False))

    def numpy(x: Any, *, axis: int, reverse: bool) -> Any:
        return np.flip(reference(np.flip(x, axis), axis=axis), axis) if reverse else reference(x, axis=axis)

    return [Example((typed(*s),), {"axis": a, "reverse": r}, reference=numpy) for s, a, r in over]


def _index(reference: Any) -> list[Example]:
    over = (((4,), 0), ((2, 3), 1), ((3, 2), 0))
    return [
        Example((typed(*s),), {"axes": (a,), "index_dtype": I32}, reference=lambda x, *, axes, index_dtype: reference(
            x, axis=axes[0]).astype(index_dtype)) for s, a in over
    ]  # fmt: skip


def _general() -> list[Example]:
    """Return examples of `reduce` with `x + y - x y` (neutral element 0), and with a product beside a sum."""
    program = stage_closed(lambda x, y: [x + y - x * y], [ShapedArray((), F32)] * 2)
    pairs = stage_closed(lambda x, i, y, j: [x * y, i + j], [ShapedArray((), F32), ShapedArray((), I32)] * 2)
    zero, one, none = np.zeros((), F32), np.ones((), F32), np.zeros((), I32)
    return [
        Example((typed(2, 3), zero), {"jaxpr": program, "dimensions": (1,)}, low=-0.5, high=0.5),
        Example((typed(5), typed(5, dtype=I32), one, none), {"jaxpr": pairs, "dimensions": (0,)}),
    ]


NAMED: dict[str, Callable[[], list[Example]]] = {
    "reduce_sum": lambda: _reduction(reference=np.sum),
    "cumsum": lambda: _running(reference=np.cumsum),
    "cumprod": lambda: _running(reference=np.cumprod),
    "cummax": lambda: _running(reference=np.maximum.accumulate),
    "cummin": lambda: _running(reference=np.minimum.accumulate),
    "cumlogsumexp": lambda: _running(reference=np.logaddexp.accumulate),
    "reduce_prod": lambda: _reduction(reference=np.prod),
    "reduce_max": lambda: _reduction(reference=np.max),
    "reduce_min": lambda: _reduction(reference=np.min),
    "reduce_and": lambda: _reduction(BOOL, np.bitwise_and.reduce) + _reduction(I32),
    "reduce_or": lambda: _reduction(BOOL, np.bitwise_or.reduce) + _reduction(I32),
    "reduce_xor": lambda: _reduction(BOOL, np.bitwise_xor.reduce) + _reduction(I32),
    "reduce": _general,
    "argmax": lambda: _index(np.argmax),
    "argmin": lambda: _index(np.argmin),
}
