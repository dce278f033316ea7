"""Blocks of arrays: the parts that a `PartitionSpec` assigns to the elements of a mesh's axes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from corejax.extend import ShapedArray, get_aval, move_batch_axis, tree
from corejax.extend.transforms import batch_flat, structural
from corejax.extend.types import ValueType
from corejax_lax_basic import lax
from corejax_parallel.partition_spec import PartitionSpec
from corejax_parallel.types.refinement import with_sharding, with_vma

Names = tuple[Any, ...]


def for_leaves(what: str, argument: str, prefix: Any, structure: Any, is_leaf: Callable[[Any], bool]) -> list[Any]:
    """Broadcast an argument that is a prefix of a pytree to the leaves.

    Raises:
        ValueError: the argument is not a prefix.
    """
    try:
        return tree.broadcast_prefix(prefix, structure, is_leaf)
    except ValueError as error:
        raise ValueError(f"{what}: {argument} is not a prefix of the pytree that it describes: {error}") from None


def names_in(spec: PartitionSpec) -> Names:
    """Return the axes that a spec names, in order."""
    return tuple([name for axes in spec.axes() for name in axes or ()])


def counts(spec: PartitionSpec, sizes: dict[Any, int], ndim: int) -> list[int]:
    """Return the number of blocks along each dimension."""
    leading = [math.prod(sizes[name] for name in axes or ()) for axes in spec.axes()]
    return leading + [1] * (ndim - len(leading))


def block_type(aval: ShapedArray, spec: PartitionSpec, sizes: dict[Any, int]) -> ShapedArray:
    """Return the type of a block of an array."""
    parts = counts(spec, sizes, aval.ndim)
    return with_sharding(aval, None).update(shape=tuple([n // k for n, k in zip(aval.shape, parts, strict=True)]))


def whole_type(aval: ShapedArray, spec: PartitionSpec, sizes: dict[Any, int]) -> ShapedArray:
    """Return the type of an array from the type of its blocks."""
    parts = counts(spec, sizes, aval.ndim)
    whole = aval.update(shape=tuple([n * k for n, k in zip(aval.shape, parts, strict=True)]))
    return with_vma(whole, whole.vma.difference(sizes))


def specs_of_parts(
    specs: Sequence[PartitionSpec], avals: Sequence[ShapedArray], blocks: Sequence[ShapedArray], sizes: dict[Any, int]
) -> Iterator[tuple[int, PartitionSpec]]:
    """Yield the rank and the spec of each array that stores a value, from the specs and the types of the values.

    Raises:
        NotImplementedError: a value's blocks are not stored in blocks of the arrays.
    """
    for spec, aval, block in zip(specs, avals, blocks, strict=True):
        if aval.parts() == (aval,):
            yield aval.ndim, spec
            continue
        named = [(names, aval.part_axes(axis)) for axis, names in enumerate(spec) if names is not None]
        for i, (part, part_of_block) in enumerate(zip(aval.parts(), block.parts(), strict=True)):
            entries: list[Any] = [None] * part.ndim
            for names, axes in named:
                entries[axes[i] : axes[i] + 1] = [names]
            split = PartitionSpec(*entries)
            if len(entries) != part.ndim or whole_type(part_of_block, split, sizes).shape != part.shape:
                raise NotImplementedError(
                    f"shard_map: a value of type {aval.str_short()} is split as {spec}, but part {i} of it, "
                    f"{part.str_short()}, does not consist of the parts of the blocks, {part_of_block.str_short()}: "
                    "split other axes, or pass the arrays (corejax.lax.unpack)"
                )
            yield part.ndim, split


def with_dimension(spec: PartitionSpec, position: int | None, names: Names = ()) -> PartitionSpec:
    """Insert a dimension that is split over `names` into a spec; return the spec unchanged for None."""
    if position is None:
        return spec
    entries = list(spec) + [None] * max(0, position - len(spec))
    return PartitionSpec(*entries[:position], names or None, *entries[position:])


def over_blocks(
    fun: Callable[..., Sequence[Any]],
    sizes: dict[Any, int],
    in_specs: Sequence[PartitionSpec],
    out_specs: Sequence[PartitionSpec],
    args: Sequence[Any],
) -> list[Any]:
    """Apply `fun` to all blocks at once by `vmap` along each axis: the meaning of `shard_map` on one device.

    Args:
        fun: `(*blocks) -> blocks`, which may use the names of the axes.
        sizes: dict from name to size of the mapped axes.
        in_specs: specs of the arguments.
        out_specs: specs of the results.
        args: the whole arguments.

    Returns:
        The whole results. For a result that is the same along an axis by its spec, the first element's value is taken.
    """
    names = tuple(sizes)
    stacked = [_split(x, spec, sizes) for x, spec in zip(args, in_specs, strict=True)]
    used_in = [names_in(spec) for spec in in_specs]
    used_out = [names_in(spec) for spec in out_specs]

    def level(k: int, *vals: Any) -> list[Any]:
        if k == len(names):
            return list(fun(*vals))
        name, size = names[k], sizes[names[k]]
        dims = [0 if name in used else None for used in used_in]
        outs, dims_out = batch_flat(functools.partial(level, k + 1), size, vals, dims, axis_name=name)
        return [
            move_batch_axis(size, d, 0, x) if name in used else _first(x, d)
            for x, d, used in zip(outs, dims_out, used_out, strict=True)
        ]

    outs = level(0, *stacked)
    return [_joined(x, spec, sizes) for x, spec in zip(outs, out_specs, strict=True)]


def _first(x: Any, dim: int | None) -> Any:
    return x if dim is None else structural.index_axis(x, 0, dim)


def _split(x: Any, spec: PartitionSpec, sizes: dict[Any, int]) -> Any:
    """Split an array into blocks, which are stacked along leading axes in the order of `sizes`."""
    if isinstance(whole := get_aval(x), ValueType):
        block = block_type(whole, spec, sizes)
        specs = specs_of_parts([spec], [whole], [block], sizes)
        stacked = block.update(shape=(*(n for name, n in sizes.items() if name in names_in(spec)), *block.shape))
        return lax.pack(stacked, *(_split(part, s, sizes) for part, (_, s) in zip(lax.unpack(x), specs, strict=True)))
    shape: list[int] = []
    place: dict[Any, int] = {}
    kept: list[int] = []
    axes = [*spec.axes(), *[()] * (x.ndim - len(spec))]
    for n, names in zip(x.shape, axes, strict=True):
        for name in names or ():
            place[name] = len(shape)
            shape.append(sizes[name])
        kept.append(len(shape))
        shape.append(n // math.prod(sizes[name] for name in names or ()))
    order = [place[name] for name in sizes if name in place] + kept
    return lax.transpose(lax.reshape(x, tuple(shape)), order)


def _joined(x: Any, spec: PartitionSpec, sizes: dict[Any, int]) -> Any:
    """Join stacked blocks to the whole array; the inverse of `_split`."""
    used = [name for name in sizes if name in names_in(spec)]
    if isinstance(stacked := get_aval(x), ValueType):
        block = stacked.update(shape=stacked.shape[len(used) :])
        whole = whole_type(block, spec, sizes)
        specs = specs_of_parts([spec], [whole], [block], sizes)
        return lax.pack(whole, *(_joined(part, s, sizes) for part, (_, s) in zip(lax.unpack(x), specs, strict=True)))
    ndim = x.ndim - len(used)
    order: list[int] = []
    shape: list[int] = []
    for d, names in enumerate([*spec.axes(), *[()] * (ndim - len(spec))]):
        order += [used.index(name) for name in names or ()]
        order.append(len(used) + d)
        shape.append(math.prod(sizes[name] for name in names or ()) * x.shape[len(used) + d])
    return lax.reshape(lax.transpose(x, order), tuple(shape))
