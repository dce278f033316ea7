"""`bcoo_gather`: slices of a BCOO array at positions in an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax_sparse import layout, structure
from corejax_sparse._base import sequence_of


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: Any,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> Any:
    """Take slices at positions, as `lax.gather`; the result is sparse, with a slice of each batch of positions.

    Args:
        operand: a BCOO array.
        start_indices: the positions, `[*batch, len(start_index_map)]`; those out of bounds are clamped.
        dimension_numbers: a `lax.GatherDimensionNumbers` without batching dimensions.
        slice_sizes: the size of the slice along each dimension.
        unique_indices: a hint, which is ignored.
        indices_are_sorted: a hint, which is ignored.
        mode: None or "promise_in_bounds".
        fill_value: used by other modes than that.

    Raises:
        NotImplementedError: another mode, or batching dimensions.
        ValueError: the dimension numbers do not fit, as in `lax.gather`.
    """
    if mode is not None and lax.GatherScatterMode.from_any(mode) != lax.GatherScatterMode.PROMISE_IN_BOUNDS:
        raise NotImplementedError(f"bcoo_gather: mode must be 'promise_in_bounds', got {mode!r}")
    if dimension_numbers.operand_batching_dims or dimension_numbers.start_indices_batching_dims:
        raise NotImplementedError("bcoo_gather: batching dimensions of dimension_numbers")
    start, sizes = jnp.asarray(start_indices), sequence_of(slice_sizes, "bcoo_gather: slice_sizes")
    checked = corejax.eval_shape(
        lambda x, i: lax.gather(x, i, dimension_numbers, sizes, mode="clip"),
        corejax.ShapeDtypeStruct(operand.shape, operand.dtype),
        corejax.ShapeDtypeStruct(start.shape, start.dtype),
    )
    batch, moved = start.shape[:-1], dimension_numbers.start_index_map

    def taken(position: Any) -> Any:
        starts: list[Any] = [0] * operand.ndim
        for k, d in enumerate(moved):
            starts[d] = position[k]
        out = structure.dynamic_slice(operand, starts, sizes)
        return structure.squeeze(out, dimensions=dimension_numbers.collapsed_slice_dims)

    for _ in batch:
        taken = corejax.vmap(taken)
    out, offset = taken(start), dimension_numbers.offset_dims
    # The batch dimensions of `start_indices` are first; `offset_dims` says where those of slices are in the result.
    others = [d for d in range(len(checked.shape)) if d not in offset]
    order = [[*others, *offset].index(d) for d in range(len(checked.shape))]
    if order[: out.n_batch] != list(range(out.n_batch)):
        out = layout.update_layout(out, n_batch=0, n_dense=0)
    return structure.transpose(out, permutation=order)
