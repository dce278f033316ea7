"""Interval rules of slices whose start indices may be intervals."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

from corejax.extend import get_aval
from corejax_interval_bounds.interpreter import interval_rules
from corejax_interval_bounds.interval import Bounds
from corejax_interval_bounds.rules.common import constant, join
from corejax_lax_basic import lax


@interval_rules.register(lax.dynamic_slice_p)
def dynamic_slice_interval(x: Bounds, *starts: Bounds, slice_sizes: tuple[int, ...]) -> Bounds:
    """Slice both bounds; if a start is an interval, join the bounds of all possible blocks."""
    shape = get_aval(x.lower).shape
    out = None
    for place, possible in _places(shape, slice_sizes, starts):
        block = Bounds(*(lax.dynamic_slice_p.bind(b, *place, slice_sizes=slice_sizes) for b in x))
        out = block if out is None else join(out, block, possible)
    assert out is not None
    return out


@interval_rules.register(lax.dynamic_update_slice_p)
def dynamic_update_slice_interval(x: Bounds, update: Bounds, *starts: Bounds) -> Bounds:
    """Update both bounds; if a start is an interval, join the results of all possible positions."""
    shape, sizes = get_aval(x.lower).shape, get_aval(update.lower).shape
    out = None
    for place, possible in _places(shape, sizes, starts):
        columns = zip(x, update, strict=True)
        updated = Bounds(*(lax.dynamic_update_slice_p.bind(b, u, *place) for b, u in columns))
        out = updated if out is None else join(out, updated, possible)
    assert out is not None
    return out


def _places(shape: Sequence[int], sizes: Sequence[int], starts: Sequence[Bounds]) -> Iterator[tuple[list[Any], Any]]:
    """Yield the start indices of each candidate block, with a mask of whether the block is possible.

    The first block is always possible; its mask is None.
    """
    yield [s.lower for s in starts], None
    open_axes = [i for i, s in enumerate(starts) if not s.is_point]
    ranges = [range(shape[i] - sizes[i] + 1) for i in open_axes]
    for place in itertools.product(*ranges) if open_axes else ():
        indices = [s.lower for s in starts]
        possible = []
        for axis, index in zip(open_axes, place, strict=True):
            lower, upper = starts[axis]
            indices[axis] = constant(index, lower)
            last = constant(shape[axis] - sizes[axis], lower)
            zero = constant(0, lower)
            lower, upper = lax.clamp(zero, lower, last), lax.clamp(zero, upper, last)
            possible += [lax.ge(indices[axis], lower), lax.le(indices[axis], upper)]
        yield indices, reduce(lax.bitwise_and, possible)
