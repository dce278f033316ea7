"""Blocks of arrays: what one element of a mesh's axes has of an array that a `PartitionSpec` splits."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import ShapedArray, move_batch_axis, tree
from corejax.extend.transforms import batch_flat
from corejax_lax_basic import lax
from corejax_parallel.partition_spec import PartitionSpec
from corejax_parallel.types.refinement import with_sharding, with_vma

Names = tuple[Any, ...]


def for_leaves(what: str, argument: str, given: Any, structure: Any, is_leaf: Callable[[Any], bool]) -> list[Any]:
    """What an argument that is a prefix of a pytree says of each leaf.

    Raises:
        ValueError: it is no prefix.
    """
    try:
        return tree.broadcast_prefix(given, structure, is_leaf)  # type: ignore[no-any-return]
    except ValueError as error:
        raise ValueError(f"{what}: {argument} is no prefix of what it is for: {error}") from None


def names_in(spec: PartitionSpec) -> Names:
    """The axes that a spec names, in its order."""
    return tuple([name for axes in spec.axes() for name in axes or ()])


def counts(spec: PartitionSpec, sizes: dict[Any, int], ndim: int) -> list[int]:
    """Into how many blocks each dimension is split."""
    found = [math.prod(sizes[name] for name in axes or ()) for axes in spec.axes()]
    return found + [1] * (ndim - len(found))


def block_type(aval: ShapedArray, spec: PartitionSpec, sizes: dict[Any, int]) -> ShapedArray:
    """The type of a block of an array."""
    parts = counts(spec, sizes, aval.ndim)
    return with_sharding(aval, None).update(shape=tuple([n // k for n, k in zip(aval.shape, parts, strict=True)]))


def whole_type(aval: ShapedArray, spec: PartitionSpec, sizes: dict[Any, int]) -> ShapedArray:
    """The type of an array of whose blocks this is the type."""
    parts = counts(spec, sizes, aval.ndim)
    whole = aval.update(shape=tuple([n * k for n, k in zip(aval.shape, parts, strict=True)]))
    return with_vma(whole, whole.vma.difference(sizes))


def with_dimension(spec: PartitionSpec, position: int | None, names: Names = ()) -> PartitionSpec:
    """The spec with one more dimension at a position, split over the axes `names`; as it is for None."""
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
    """`fun` of all blocks at once, as `vmap` along each axis: what `shard_map` means, on one device.

    Args:
        fun: `(*blocks) -> blocks`, which may use the names of the axes.
        sizes: of the axes that are mapped, by name.
        in_specs, out_specs: how arguments and results are split.
        args: the whole arguments.

    Returns:
        The whole results; of what is said to be the same for all elements of an axis, that of the first.
    """
    names = tuple(sizes)
    stacked = [_cut(x, spec, sizes) for x, spec in zip(args, in_specs, strict=True)]
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
    return x if dim is None else lax.index_in_dim(x, 0, dim, keepdims=False)


def _cut(x: Any, spec: PartitionSpec, sizes: dict[Any, int]) -> Any:
    """Blocks along leading axes, in the order of `sizes`."""
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
    """The array of which `_cut` gives these blocks."""
    used = [name for name in sizes if name in names_in(spec)]
    ndim = x.ndim - len(used)
    order: list[int] = []
    shape: list[int] = []
    for d, names in enumerate([*spec.axes(), *[()] * (ndim - len(spec))]):
        order += [used.index(name) for name in names or ()]
        order.append(len(used) + d)
        shape.append(math.prod(sizes[name] for name in names or ()) * x.shape[len(used) + d])
    return lax.reshape(lax.transpose(x, order), tuple(shape))
