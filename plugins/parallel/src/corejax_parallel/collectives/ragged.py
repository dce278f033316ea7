"""`ragged_all_to_all`: each element sends ranges of rows, of different lengths, to the other elements.

    ragged_all_to_all : a[m, *s], a[k, *s], i[n], i[n], i[n], i[n] -> a[k, *s]

The decomposition gathers the operands of all elements and selects the rows that the element receives. All rules are
derived from it.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, as_array, dtypes
from corejax.extend.transforms import named_axes
from corejax_lax_basic import lax
from corejax_parallel.collectives._axes import Groups, groups_of, names_of, size_of
from corejax_parallel.collectives.gathers import all_gather, all_to_all
from corejax_parallel.types.vma import vary


def ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: Any,
    axis_index_groups: Any = None,
) -> Any:
    """Send ranges of rows, of different lengths, to the other elements along a named axis.

    With n elements along the axis, element i sends `operand[input_offsets[j] :][: send_sizes[j]]` to element j, which
    stores them from row `output_offsets[j]` on.

    Args:
        operand: the rows to send, of shape (m, *s).
        output: array of shape (k, *s); rows that are not received keep its values.
        input_offsets: integers of shape (n,): the first row to send to each element.
        send_sizes: integers of shape (n,): the number of rows to send to each element.
        output_offsets: integers of shape (n,): the first row in each receiver's output.
        recv_sizes: integers of shape (n,): the number of rows to receive from each element, which must agree with the
            senders' `send_sizes`.
        axis_name: a bound name.
        axis_index_groups: groups of indices of the axis; rows are sent within each group.

    Returns:
        An array of the shape and dtype of `output`.

    Raises:
        NameError: the name is not bound.
        TypeError: dtypes differ, or offsets or sizes are not integers.
        ValueError: shapes do not fit.
    """
    names = names_of("ragged_all_to_all", axis_name)
    groups = groups_of("ragged_all_to_all", axis_index_groups, names)
    operand, output = as_array(operand), as_array(output)
    numbers = [as_array(x) for x in (input_offsets, send_sizes, output_offsets, recv_sizes)]
    sizes = tuple([size_of((name,)) for name in names])
    return ragged_all_to_all_p.bind(
        vary(operand, names),
        vary(output, names),
        *numbers,
        axis_name=names,
        axis_index_groups=groups,
        axis_sizes=sizes,
    )


_NUMBERS = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")


def _type(
    operand: ShapedArray,
    output: ShapedArray,
    *numbers: ShapedArray,
    axis_name: tuple[Any, ...],
    axis_index_groups: Groups,
    axis_sizes: tuple[int, ...],
) -> ShapedArray:
    if operand.dtype != output.dtype:
        raise TypeError(f"ragged_all_to_all: operand is {operand.dtype} and output {output.dtype}; both have one dtype")
    if not operand.ndim or operand.shape[1:] != output.shape[1:]:
        raise ValueError(
            "ragged_all_to_all: operand and output have rows of one shape, got shapes "
            f"{operand.shape} and {output.shape}"
        )
    size = math.prod(axis_sizes) if axis_index_groups is None else len(axis_index_groups[0])
    for name, value in zip(_NUMBERS, numbers, strict=True):
        if not dtypes.is_integer(value.dtype):
            raise TypeError(f"ragged_all_to_all: {name} are integers, got {value.dtype}")
        if value.dtype != numbers[0].dtype:
            raise TypeError(
                f"ragged_all_to_all: {' and '.join((_NUMBERS[0], name))} are of one dtype, got {numbers[0].dtype} and "
                f"{value.dtype}"
            )
        if value.shape != (size,):
            raise ValueError(f"ragged_all_to_all: {name} has the shape {(size,)} of the axis, got {value.shape}")
    return ShapedArray(output.shape, output.dtype, operand.weak_type and output.weak_type)


def _decomposed(*operands: Any, axis_name: tuple[Any, ...], axis_sizes: tuple[int, ...], **params: Any) -> Any:
    """Run the decomposition with its axes bound, because rules of programs inside `shard_map` run without them."""
    with named_axes(list(zip(axis_name, axis_sizes, strict=True))):
        return _exchanged(*operands, axis_name=axis_name, **params)


def _exchanged(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: tuple[Any, ...],
    axis_index_groups: Groups,
) -> Any:
    size = input_offsets.shape[0]
    exchange = functools.partial(
        all_to_all, axis_name=axis_name, split_axis=0, concat_axis=0, axis_index_groups=axis_index_groups
    )
    starts, begins = exchange(input_offsets), exchange(output_offsets)
    gathered = all_gather(operand, axis_name, axis_index_groups=axis_index_groups)
    rows = lax.broadcasted_iota(starts.dtype, (size, output.shape[0]), 1)
    within = lax.sub(rows, lax.broadcast_in_dim(begins, rows.shape, (0,)))
    lengths = lax.broadcast_in_dim(recv_sizes, rows.shape, (0,))
    is_sent = lax.bitwise_and(lax.ge(within, lax.full_like(within, 0)), lax.lt(within, lengths))
    sender = lax.argmax(lax.convert_element_type(is_sent, np.int32), 0, np.int32)
    chosen = lax.broadcasted_iota(np.int32, rows.shape, 0) == lax.broadcast_in_dim(sender, rows.shape, (1,))
    place = lax.add(within, lax.broadcast_in_dim(starts, rows.shape, (0,)))
    place = lax.reduce_sum(lax.select(chosen, place, lax.full_like(place, 0)), (0,))
    flat = lax.reshape(gathered, (size * operand.shape[0], *operand.shape[1:]))
    index = lax.add(lax.mul(sender, np.int32(operand.shape[0])), lax.convert_element_type(place, np.int32))
    selected = flat.at[index].get(mode="clip")
    is_received = lax.reduce_or(is_sent, (0,))
    return lax.select(lax.broadcast_in_dim(is_received, output.shape, (0,)), selected, output)


ragged_all_to_all_p = Primitive(
    "ragged_all_to_all",
    abstract_eval=_type,
    decomposition=_decomposed,
    linear_in=(0, 1),
    tags=("collective",),
    doc="Send ranges of rows, of different lengths, to the other elements along named axes.",
)
