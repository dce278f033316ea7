"""`tile`: repetition of a whole array along its axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, UndefPrimal, deflinear, impl_rules
from corejax.extend.speed import HostCode
from corejax_lax_basic._base import by_name
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import Ints, ints
from corejax_lax_basic.shape.rearranging import reshape

if TYPE_CHECKING:
    from corejax_lax_basic._base.prepared import Avals

__all__ = ["tile", "tile_p"]


def tile(operand: Any, reps: Sequence[int]) -> Any:
    """Repeat a whole array along its axes.

    Args:
        operand: the array.
        reps: the number of copies along each axis, not negative.

    Raises:
        TypeError: `reps` does not have one integer for each axis.
        ValueError: a number of copies is negative.
    """
    return tile_p.bind(operand, reps=ints(reps, "reps"))


@takes("tile", 1)
def _abstract_eval(x: ShapedArray, *, reps: Ints) -> ShapedArray:
    if len(reps) != x.ndim:
        raise TypeError(f"tile: reps must have an entry for each axis of {x.str_short()}, got {reps}")
    if any(r < 0 for r in reps):
        raise ValueError(f"tile: reps must be nonnegative, got {reps} for {x.str_short()}")
    return x.update(shape=tuple(map(math.prod, zip(x.shape, reps, strict=True))))


def _transpose(ct: Any, x: UndefPrimal, *, reps: Ints) -> list[Any]:
    """Sum the cotangent over the copies."""
    split = reshape(ct, tuple(d for pair in zip(reps, x.aval.shape, strict=True) for d in pair))
    return [by_name.reduce_sum(split, tuple(range(0, 2 * len(reps), 2)))]


def _vmap(axis_size: int, vals: Any, dims: Any, *, reps: Ints) -> Any:
    (x,), (d,) = vals, dims
    return tile_p.bind(x, reps=(*reps[:d], 1, *reps[d:])), d


def _prepared(avals: Avals, *, reps: Ints) -> HostCode:
    [x] = avals
    unit = tuple(size for n in x.shape for size in (1, n))
    whole = tuple(size for n, r in zip(x.shape, reps, strict=True) for size in (r, n))
    shape = tuple(map(math.prod, zip(x.shape, reps, strict=True)))
    lines = ["{out} = {empty}({whole}, {dtype})", "{out}[...] = {0}.reshape({unit})", "{out} = {out}.reshape({shape})"]
    return HostCode("\n".join(lines), empty=np.empty, whole=whole, dtype=x.dtype, unit=unit, shape=shape)


tile_p = Primitive(
    "tile",
    linear_in=(0,),
    tags=("linear", "structural"),
    abstract_eval=_abstract_eval,
    vmap=_vmap,
    doc="Repeat a whole array along its axes.",
)
impl_rules.register(tile_p, lambda x, *, reps: np.tile(x, reps), prepared=_prepared)
deflinear(tile_p, _transpose)
