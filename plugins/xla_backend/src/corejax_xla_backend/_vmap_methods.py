"""How a function that nobody can look into takes a batch: the values of `vmap_method`, for kernels and callbacks."""

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
    """`sequential`, `sequential_unrolled`: apply a primitive to each element of a batch, in their order.

    `bind` applies it to operands of one element, whose results have `out_types`; `unrolled` writes no loop in programs.
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
    """`expand_dims`, `broadcast_all`, `legacy_vectorized`: apply a primitive once, to operands with a leading batch.

    An operand without a batch gets an axis of size 1, or copies, or stays as it is. `bind(*operands, out_types=...)`
    applies the primitive; `out_types` here are those of one element.
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
