"""`vmap` turns a function of one example into a function of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from corejax import tree
from corejax.arrays.array import Array, as_array
from corejax.arrays.cells import Cell, cells_among, with_cells
from corejax.core.avals import Dims, Operands, get_aval
from corejax.core.named_axes import MappedAxis
from corejax.core.trace import Tracer, in_scope
from corejax.interpreters.batching import axis_of_operands, batch_flat, move_batch_axis
from corejax.ir.debug_info import DebugInfo, fun_name, named_as
from corejax.messages.source_info import VMAP
from corejax.messages.tracebacks import api_boundary
from corejax.transforms.flattening import FlatFunction, Names, check_argument, check_function, float0, leaf_names

P = ParamSpec("P")
R = TypeVar("R")


def _is_axis(x: object) -> bool:
    return x is None or (isinstance(x, int) and not isinstance(x, bool))


def _checked_in_axes(in_axes: object) -> Any:
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not isinstance(in_axes, tuple) and not _is_axis(in_axes):
        raise TypeError(
            f"vmap in_axes must be an int, None, or a tuple with an entry for each positional argument, got {in_axes!r}"
        )
    _check_axes("in_axes", in_axes)
    return in_axes


def _check_axes(name: str, axes: object) -> None:
    for leaf in tree.tree_leaves(axes, is_leaf=lambda x: x is None):
        if not _is_axis(leaf):
            raise TypeError(f"vmap {name} must be an int, None, or a pytree of these, got {leaf!r} in {axes!r}")


def _leaf_axes(fun: object, in_axes: Any, args: Operands, kwargs: object, in_tree: Any) -> list[int | None]:
    """Return the axis of each leaf of `(args, kwargs)`; keyword arguments are mapped over axis 0."""
    if _is_axis(in_axes) and not kwargs:
        return [in_axes] * in_tree.num_leaves
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ValueError(
            f"vmap of {fun_name(fun)}: in_axes {in_axes!r} has {len(in_axes)} entries, the call {len(args)} "
            "positional arguments" + (" (keyword arguments are mapped over axis 0)" if kwargs else "")
        )
    return tree.flatten_axes("vmap in_axes", in_tree, (in_axes, 0 if kwargs else None))


def _mapped_axes(
    fun: object, leaves: Operands, axes: Sequence[int | None], axis_size: int | None, names: Names
) -> tuple[list[int | None], int]:
    """Return the mapped axes as non-negative numbers, and the size of the batch."""
    positive_axes: list[int | None] = []
    sizes: set[int] = set() if axis_size is None else {axis_size}
    for i, (x, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is None:
            positive_axes.append(None)
            continue
        if type(x) is not Array and not isinstance(x, Tracer):
            check_argument("vmap", fun, x, names, i)
        aval = get_aval(x)
        if not -aval.ndim <= axis < aval.ndim:
            raise ValueError(
                f"vmap of {fun_name(fun)}: argument {names()[i]} has type {aval.str_short(short_dtypes=False)}, "
                f"its axis {axis} (from in_axes) does not exist"
            )
        positive_axes.append(axis % aval.ndim)
        sizes.add(aval.shape[axis])
    if not sizes:
        raise ValueError(
            f"vmap of {fun_name(fun)}: no argument is mapped (all in_axes are None), so the batch has no size; "
            "map at least one argument or pass axis_size"
        )
    if len(sizes) > 1:
        lines = [
            f"  {name}: axis {a} of {get_aval(x).str_short(short_dtypes=False)} has size {get_aval(x).shape[a]}"
            for name, x, a in zip(names(), leaves, positive_axes, strict=True)
            if a is not None
        ]
        if axis_size is not None:
            lines.append(f"  axis_size: {axis_size}")
        where = f"of {fun_name(fun)}:\n" + "\n".join(lines)
        raise ValueError(f"vmap got inconsistent sizes for array axes to be mapped, {where}")
    return positive_axes, sizes.pop()


def _batched_outs(fun: object, axis_size: int, outs: Sequence[Any], dims: Dims, out_tree: Any, out_axes: Any) -> Any:
    """Move the mapped axis of each output to its place in `out_axes`, and unflatten the outputs."""
    axes = [out_axes] * len(outs) if _is_axis(out_axes) else tree.flatten_axes("vmap out_axes", out_tree, out_axes)
    moved = []
    for i, (x, d, a) in enumerate(zip(outs, dims, axes, strict=True)):
        if type(x) is not Array or d is None or d != a:  # an array with the axis in its place needs no call
            x = _batched_out(fun, axis_size, x, d, a, out_tree, i)
        moved.append(x)
    return out_tree.unflatten(moved)


def _batched_out(fun: Any, axis_size: int, x: Any, dim: int | None, axis: int | None, out_tree: Any, i: int) -> Any:
    """Return output number `i` with the mapped axis at `axis`."""
    if axis is None:
        if dim is None:
            return x if getattr(x, "dtype", None) == float0 else as_array(x)
        raise ValueError(
            f"vmap of {fun_name(fun)}: output {leaf_names(out_tree)[i] or 'of the function'} differs along the mapped "
            "axis, so its out_axes cannot be None; give an axis"
        )
    no_tangent = getattr(x, "dtype", None) == float0
    ndim = (x.ndim if no_tangent else get_aval(x).ndim) + (dim is None)
    if not -ndim <= axis < ndim:
        raise ValueError(
            f"vmap of {fun_name(fun)}: output {leaf_names(out_tree)[i] or 'of the function'} has {ndim} axes with the "
            f"mapped one; out_axes {axis} does not exist"
        )
    if no_tangent:
        return np.repeat(np.expand_dims(x, axis % ndim), axis_size, axis % ndim)
    return as_array(move_batch_axis(axis_size, dim, axis % ndim, x))


def _axis_names(name: object, spmd: object) -> MappedAxis | None:
    """Return the axis with its names, or None if both names are None."""
    for argument, value in (("axis_name", name), ("spmd_axis_name", spmd)):
        try:
            hash(value)
        except TypeError:
            raise TypeError(
                f"vmap: {argument} must be a string or another hashable value, got {value!r} of type "
                f"{type(value).__name__}"
            ) from None
    spmd = () if spmd is None else spmd if isinstance(spmd, tuple) else (spmd,)
    if len(set(spmd)) != len(spmd):
        raise ValueError(f"vmap: spmd_axis_name has an axis twice: {spmd}")
    return MappedAxis(name, spmd) if spmd or name is not None else None


def vmap(
    fun: Callable[P, R],
    in_axes: Any = 0,
    out_axes: object = 0,
    axis_name: object = None,
    axis_size: int | None = None,
    spmd_axis_name: object = None,
) -> Callable[P, R]:
    """Vectorise a function over an axis of its arguments.

    Args:
        fun: function of one element of the batch.
        in_axes: the axis of each argument to map over: an integer, None (the same for all elements), or a tuple with
            one entry for each positional argument, each entry a prefix of that argument's pytree. Keyword arguments
            are mapped over axis 0. Arguments that are not mapped are passed to `fun` unchanged and need not be arrays.
        out_axes: position of the mapped axis in the outputs: an integer, or a prefix of the output's pytree; None for
            outputs that are the same for all elements.
        axis_name: name of the mapped axis for collectives.
        axis_size: size of the batch; needed only if no argument is mapped.
        spmd_axis_name: mesh axis, or tuple of mesh axes, over which the mapped axis is sharded. Sharding constraints
            and `shard_map`s in `fun`, which describe one element, are extended by it.

    Returns:
        The batched function.

    Raises:
        TypeError: `in_axes` is not an integer, None, tuple or list, a mapped argument is not an array, or a name is not
            hashable.
        ValueError: a mapped axis does not exist, the mapped axes have unequal sizes (the message lists each with its
            path), or no argument is mapped and `axis_size` is None.
    """
    check_function("vmap", fun)
    in_axes = _checked_in_axes(in_axes)
    _check_axes("out_axes", out_axes)
    axis_names = _axis_names(axis_name, spmd_axis_name)

    @api_boundary
    @named_as(fun)
    def batched(*args: object, **kwargs: object) -> Any:
        leaves, in_tree = tree.tree_flatten((args, kwargs))
        debug = DebugInfo(fun, "vmap", in_tree)
        leaf_axes = _leaf_axes(fun, in_axes, args, kwargs, in_tree)
        cells: list[Cell] = []
        for cell, cell_axis in cells_among((args, kwargs), (in_axes, 0)):
            if cell_axis is not None:
                cells.append(cell)
                leaves.append(cell.get())
                leaf_axes.append(cell_axis)
        axes, size = _mapped_axes(fun, leaves, leaf_axes, axis_size, lambda: [*debug.arg_names(), *map(repr, cells)])
        flat = FlatFunction(fun, in_tree, with_kwargs=True)
        axis = axis_of_operands(axis_names, leaves, axes)
        outs, dims = batch_flat(in_scope(VMAP, with_cells(flat, cells)), size, leaves, axes, axis, debug)
        while cells:
            x, dim, to = outs.pop(), dims.pop(), axes.pop()
            cells.pop().set(as_array(move_batch_axis(size, dim, to, x)))  # type: ignore[arg-type]  # `to` is not None
        return _batched_outs(fun, size, outs, dims, flat.out_tree, out_axes)

    batched.__doc__ = f"{fun_name(fun)} vectorised over in_axes={in_axes!r}.\n\n{fun.__doc__ or ''}"
    return batched
