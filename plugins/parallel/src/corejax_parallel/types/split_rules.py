"""Split rules of the primitives of corejax-lax-basic and corejax-fft, by name.

A rule takes the types of the operands and returns the axes of each dimension of the result, or a list of these for
several results.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from corejax.extend import ShapedArray

Axes = tuple[Any, ...]


def split_axes(aval: ShapedArray) -> tuple[Axes | None, ...]:
    """Return the axes that split each dimension of a type; None for a dimension that is left to the compiler."""
    return ((),) * aval.ndim if aval.explicit_sharding is None else aval.explicit_sharding.dimension_axes(aval.ndim)


def either_axes(x: Axes | None, y: Axes | None) -> Axes | None:
    """Return the axes of the first of two values that splits a common dimension."""
    return x or (y if y or x == () else x)


def _of_first_operand(x: ShapedArray, *others: ShapedArray, **params: Any) -> Any:
    return split_axes(x)


def _without(x: ShapedArray, dimensions: Any) -> list[Any]:
    return [axes for d, axes in enumerate(split_axes(x)) if d not in dimensions]


def _reduce(x: ShapedArray, *, axes: Any) -> list[Any]:
    return _without(x, axes)


def _combined(avals: Any) -> list[Any]:
    return [functools.reduce(either_axes, column) for column in zip(*map(split_axes, avals), strict=True)]


def _broadcast_in_dim(x: ShapedArray, *, shape: Any, broadcast_dimensions: Any) -> list[Any]:
    found: list[Any] = [() for _ in shape]
    for axes, size, d in zip(split_axes(x), x.shape, broadcast_dimensions, strict=True):
        found[d] = axes if size == shape[d] else ()
    return found


def _reshape(x: ShapedArray, *, new_sizes: tuple[int, ...]) -> list[Any]:
    """Match groups of dimensions of `x` with groups of the result of equal size, so that each device keeps its block.

    Both shapes are scanned from the left. A group is extended until the product of its sizes equals that of the other.
    """
    axes = split_axes(x)
    found: list[Any] = [() for _ in new_sizes]
    before = [d for d, n in enumerate(x.shape) if n != 1]
    after = [d for d, n in enumerate(new_sizes) if n != 1]
    while x.size and before and after:
        inner, outer = [before.pop(0)], [after.pop(0)]
        sizes = [x.shape[inner[0]], new_sizes[outer[0]]]
        while sizes[0] != sizes[1]:
            if sizes[0] < sizes[1]:
                inner.append(before.pop(0))
                sizes[0] *= x.shape[inner[-1]]
            else:
                outer.append(after.pop(0))
                sizes[1] *= new_sizes[outer[-1]]
        counts = {} if x.explicit_sharding is None else dict(x.explicit_sharding.mesh.shape_tuple)
        names = _merged([(x.shape[d], axes[d]) for d in inner], counts)
        for d, taken in zip(outer, _distributed(names, [new_sizes[d] for d in outer], counts), strict=True):
            found[d] = taken
    return found


def _merged(dimensions: list[tuple[int, Axes | None]], counts: dict[Any, int]) -> Axes | None:
    """Return the axes of the dimension that several dimensions are merged to; none if a block would not be a range."""
    (_, merged), *rest = dimensions
    is_fully_split = _parts(merged, counts) == dimensions[0][0]
    for size, names in rest:
        if names and (merged is None or not is_fully_split):
            return ()
        merged = (*merged, *names) if merged is not None and names else merged
        is_fully_split = is_fully_split and _parts(names, counts) == size
    return merged


def _distributed(names: Axes | None, sizes: list[int], counts: dict[Any, int]) -> list[Axes | None]:
    """Return the axes of the dimensions that one dimension is split to.

    A dimension gets axes only if the dimensions before it are fully split. If axes remain, the first gets all.
    """
    outermost: list[Axes | None] = [names, *[() for _ in sizes[1:]]]
    remaining, distributed = list(names or ()), []
    for size in sizes:
        own: list[Any] = []
        while remaining and size % _parts((*own, remaining[0]), counts) == 0:
            own.append(remaining.pop(0))
        distributed.append(tuple(own))
        if _parts(own, counts) != size:
            break
    return outermost if remaining or names is None else [*distributed, *outermost[len(distributed) :]]


def _parts(names: Any, counts: dict[Any, int]) -> int:
    return math.prod(counts[name] for name in names or ())


def _stack(*avals: ShapedArray, axis: int) -> list[Any]:
    combined = _combined(avals)
    return [*combined[:axis], (), *combined[axis:]]


def _dot_general(lhs: ShapedArray, rhs: ShapedArray, *, dimension_numbers: Any, **params: Any) -> list[Any]:
    """Keep the axes of batch and free dimensions; if both operands have an axis, the left operand's dimension keeps it.

    Contracted dimensions disappear: partial results along their axes are summed.
    """
    contract, batch = dimension_numbers
    sides = split_axes(lhs), split_axes(rhs)
    shared = [either_axes(sides[0][i], sides[1][k]) for i, k in zip(*batch, strict=True)]
    gone = [{*c, *b} for c, b in zip(contract, batch, strict=True)]
    free = [axes for side, away in zip(sides, gone, strict=True) for d, axes in enumerate(side) if d not in away]
    return [*shared, *free]


def _convolution(lhs: ShapedArray, rhs: ShapedArray, *, dimension_numbers: Any, **params: Any) -> list[Any]:
    """Keep the axes of the left operand's batch and spatial dimensions, and of the kernel's output features."""
    axes, features = split_axes(lhs), split_axes(rhs)[dimension_numbers.rhs_spec[0]]
    batch, _, *positions = (axes[d] for d in dimension_numbers.lhs_spec)
    found: list[Any] = [()] * lhs.ndim
    for d, names in zip(dimension_numbers.out_spec, (batch, features, *positions), strict=True):
        found[d] = names
    return found


def _gather(x: ShapedArray, indices: ShapedArray, *, dimension_numbers: Any, slice_sizes: Any, **others: Any) -> Any:
    """Keep the operand's axes for window dimensions of full size, and the indices' axes for batch dimensions."""
    numbers, axes = dimension_numbers, split_axes(x)
    batch = list(split_axes(indices)[:-1])
    for of_operand, of_indices in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
        batch[of_indices] = either_axes(batch[of_indices], axes[of_operand])
    removed = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    window = [a if slice_sizes[d] == x.shape[d] else () for d, a in enumerate(axes) if d not in removed]
    sides = {True: iter(window), False: iter(batch)}
    return [next(sides[d in numbers.offset_dims]) for d in range(len(window) + len(batch))]


SPLIT_RULES: dict[str, Callable[..., Any]] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "reshape": _reshape,
    "transpose": lambda x, *, permutation: [split_axes(x)[d] for d in permutation],
    "squeeze": lambda x, *, dimensions: _without(x, dimensions),
    "concatenate": lambda *avals, dimension: _combined(avals),
    "split": lambda x, *, sizes, axis: [split_axes(x)] * len(sizes),
    "unstack": lambda x, *, axis: [_without(x, (axis,))] * x.shape[axis],
    "stack": _stack,
    "tile": lambda x, *, reps: [a if n == 1 else () for a, n in zip(split_axes(x), reps, strict=True)],
    "sort": lambda *avals, **params: [_combined(avals)] * len(avals),
    "top_k": lambda x, **params: [split_axes(x)] * 2,
    "approx_top_k": lambda x, **params: [split_axes(x)] * 2,
    "dot_general": _dot_general,
    "conv_general_dilated": _convolution,
    "gather": _gather,
    **dict.fromkeys(("rev", "slice", "pad", "fft", "dynamic_slice", "dynamic_update_slice"), _of_first_operand),
    **dict.fromkeys(("scatter", "scatter-add", "scatter-sub", "scatter-mul"), _of_first_operand),
    **dict.fromkeys(("scatter-min", "scatter-max"), _of_first_operand),
    **dict.fromkeys(("reduce_window_sum", "reduce_window_max", "reduce_window_min"), _of_first_operand),
    **dict.fromkeys((f"reduce_{name}" for name in ("sum", "prod", "max", "min", "and", "or", "xor")), _reduce),
}
