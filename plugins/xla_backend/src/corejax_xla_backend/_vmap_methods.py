"""The values of `vmap_method`: ways to batch a kernel or callback, which vmap cannot trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import ShapedArray, move_batch_axis
from corejax.extend.transforms import for_each_element, structural, unmapped_aval

Dims = Sequence[int | None]


def one_by_one(
    bind: Callable[..., Sequence[Any]],
    axis_size: int,
    vals: Sequence[Any],
    dims: Dims,
    out_types: Sequence[ShapedArray],
    *,
    unrolled: bool = False,
) -> tuple[list[Any], list[int]]:
    """Apply a primitive to each element of a batch in order: `sequential` and `sequential_unrolled`.

    Args:
        bind: applies the primitive to the operands of one element.
        axis_size: size of the batch.
        vals: the operands.
        dims: batch dimension of each operand, or None.
        out_types: types of the results of one element.
        unrolled: whether programs have one application for each element in place of a loop.
    """
    if axis_size == 0:
        outs = [structural.zeros(unmapped_aval(0, 0, aval)) for aval in out_types]
    else:
        outs = for_each_element(bind, axis_size, vals, dims, unrolled=unrolled)
    return outs, [0] * len(outs)


def all_at_once(
    bind: Callable[..., Sequence[Any]],
    axis_size: int,
    vals: Sequence[Any],
    dims: Dims,
    out_types: Sequence[ShapedArray],
    method: str,
) -> tuple[list[Any], list[int]]:
    """Apply a primitive once to operands with a leading batch axis.

    Args:
        bind: `bind(*operands, out_types=...)` applies the primitive.
        axis_size: size of the batch.
        vals: the operands.
        dims: batch dimension of each operand, or None.
        out_types: types of the results of one element.
        method: what happens to an operand without a batch: it gets an axis of size 1 (`expand_dims`), is broadcast
            (`broadcast_all`), or stays unchanged (`legacy_vectorized`).
    """

    def leading(x: Any, d: int | None) -> Any:
        if d is not None:
            return move_batch_axis(axis_size, d, 0, x)
        if method == "legacy_vectorized":
            return x
        return structural.broadcast_axis(x, 1 if method == "expand_dims" else axis_size, 0)

    batched = tuple(unmapped_aval(axis_size, 0, aval) for aval in out_types)
    outs = list(bind(*map(leading, vals, dims), out_types=batched))
    return outs, [0] * len(outs)
