"""Broadcasting: `broadcast_in_dim` and the functions defined in terms of it."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, UndefPrimal, as_array, deflinear, get_aval, impl_rules
from corejax.extend.messages import called_function, clears_cache
from corejax.extend.speed import HostCode
from corejax_lax_basic._base import by_name
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import canonical_axes, canonical_shape, ints, is_several
from corejax_lax_basic._base.placing import place
from corejax_lax_basic._speed import SMALL_COPY
from corejax_lax_basic.shape.rearranging import moveaxis, reshape_p, transpose

if TYPE_CHECKING:
    from corejax_lax_basic._base.prepared import Avals

__all__ = ["broadcast", "broadcast_in_dim", "broadcast_in_dim_p", "broadcast_shapes", "broadcast_to", "expand_dims"]


def broadcast_in_dim(
    operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int], *, out_sharding: Any = None
) -> Any:
    """Repeat an array along new axes and axes of size 1.

    Args:
        operand: the array.
        shape: shape of the result.
        broadcast_dimensions: for each axis of the operand, the axis of the result that it becomes.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Returns:
        An array of shape `shape`, with the operand's dtype and weak type.

    Raises:
        TypeError: `broadcast_dimensions` does not fit the operand or `shape`.
        ValueError: an axis of the operand has neither size 1 nor the size in `shape`.
    """
    if out_sharding is not None:
        return place("broadcast_in_dim", broadcast_in_dim(operand, shape, broadcast_dimensions), out_sharding)
    shape = canonical_shape(shape)
    dims = ints(broadcast_dimensions, "broadcast_dimensions")
    if get_aval(operand).shape == shape and dims == tuple(range(len(shape))):
        return as_array(operand)
    if len(dims) > 1 and len(dims) == get_aval(operand).ndim and any(a > b for a, b in itertools.pairwise(dims)):
        order = sorted(range(len(dims)), key=dims.__getitem__)
        operand, dims = transpose(operand, order), tuple(sorted(dims))
    return broadcast_in_dim_p.bind(operand, shape=shape, broadcast_dimensions=dims)


def _impl(x: Any, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]) -> Any:
    unit = _unit_axes(x, shape, broadcast_dimensions)
    if unit is not None:
        x = x.reshape(unit)
    if x.shape == shape:
        # Row-major, as repeated arrays are: products depend on the memory layout in their last bits.
        return x if x.flags.c_contiguous or x.size > SMALL_COPY else x.copy()
    if math.prod(shape) > SMALL_COPY:
        return np.broadcast_to(x, shape)  # a view, which costs more to make than a small copy
    out = np.empty(shape, x.dtype)
    out[...] = x
    return out


def _unit_axes(x: Any, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]) -> list[int] | None:
    """Return the operand's shape with 1 for each new axis; None if NumPy's broadcasting finds the axes by itself."""
    if not broadcast_dimensions or broadcast_dimensions[0] + x.ndim == len(shape):
        return None
    unit = [1] * len(shape)
    for size, d in zip(x.shape, broadcast_dimensions, strict=True):
        unit[d] = size
    return unit


def _prepared(avals: Avals, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]) -> Any:
    [x], size = avals, math.prod(shape)
    if x.size == size and size <= SMALL_COPY:
        lines = "{out} = {0}.reshape({shape})\nif not {out}.flags.c_contiguous:\n    {out} = {out}.copy()"
        return HostCode(lines, shape=shape)
    if size > SMALL_COPY:
        return None
    if not x.ndim:
        return HostCode(
            "{out} = {empty}({shape}, {dtype})\n{out}.fill({0})", empty=np.empty, shape=shape, dtype=x.dtype
        )
    unit = _unit_axes(x, shape, broadcast_dimensions)
    text = "{out} = {empty}({shape}, {dtype})\n{out}[...] = {0}" + ("" if unit is None else ".reshape({unit})")
    return HostCode(text, empty=np.empty, shape=shape, dtype=x.dtype, unit=unit)


@takes("broadcast_in_dim", 1)
def _abstract_eval(x: ShapedArray, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]) -> ShapedArray:
    dims = broadcast_dimensions
    where = f"broadcast_in_dim: operand {x.str_short()}, shape {shape}, broadcast_dimensions {dims}"
    if len(dims) != x.ndim:
        raise TypeError(f"{where}: broadcast_dimensions must have length equal to operand ndim {x.ndim}")
    if len(shape) < x.ndim:
        raise TypeError(f"{where}: target broadcast shape must have equal or higher rank to the operand shape")
    if any(not 0 <= d < len(shape) for d in dims):
        raise TypeError(f"{where}: broadcast_in_dim broadcast_dimensions must be a subset of output dimensions")
    if len(set(dims)) != len(dims):
        raise TypeError(f"{where}: broadcast_in_dim broadcast_dimensions must not contain duplicates")
    if any(a > b for a, b in itertools.pairwise(dims)):
        raise TypeError(f"{where}: broadcast_dimensions must be increasing")
    for axis, (size, d) in enumerate(zip(x.shape, dims, strict=True)):
        if size not in (1, shape[d]):
            raise ValueError(
                f"{where}: axis {axis} of the operand has size {size}, which is neither 1 nor {shape[d]}, "
                f"the size of axis {d} of the result"
            )
    return ShapedArray(shape, x.dtype, x.weak_type)


def _transpose(ct: Any, x: UndefPrimal, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]) -> list[Any]:
    kept = {d for size, d in zip(x.aval.shape, broadcast_dimensions, strict=True) if size == shape[d]}
    summed = tuple(d for d in range(len(shape)) if d not in kept)
    if summed:
        ct = by_name.reduce_sum(ct, summed)
    if get_aval(ct).shape != x.aval.shape:
        ct = reshape_p.bind(ct, new_sizes=x.aval.shape)
    return [ct]


def _vmap(
    axis_size: int, vals: Any, dims: Any, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> Any:
    (x,), (d,) = vals, dims
    if d:  # move the batch to the front, where it keeps `broadcast_dimensions` increasing
        x = moveaxis(x, d, 0)
    out_dims = (0, *(b + 1 for b in broadcast_dimensions))
    return broadcast_in_dim_p.bind(x, shape=(axis_size, *shape), broadcast_dimensions=out_dims), 0


broadcast_in_dim_p = Primitive(
    "broadcast_in_dim",
    linear_in=(0,),
    tags=("linear", "structural", "cheap"),
    abstract_eval=_abstract_eval,
    vmap=_vmap,
    doc="Repeat an array along new axes and axes of size 1.",
)
impl_rules.register(broadcast_in_dim_p, _impl, prepared=_prepared)
deflinear(broadcast_in_dim_p, _transpose)


# -- in terms of broadcast_in_dim ----------------------------------------------------------------------------------


def broadcast(operand: Any, sizes: Sequence[int], *, out_sharding: Any = None) -> Any:
    """Add leading axes of the given sizes to an array: the result has the shape `(*sizes, *operand.shape)`."""
    sizes = canonical_shape(sizes)
    shape = get_aval(operand).shape
    dims = range(len(sizes), len(sizes) + len(shape))
    return place("broadcast", broadcast_in_dim(operand, (*sizes, *shape), tuple(dims)), out_sharding)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape to which NumPy broadcasts arrays of these shapes.

    Raises:
        ValueError: the shapes do not broadcast together, or a size is negative; the message shows all of them.
    """
    canonical = [canonical_shape(shape) for shape in shapes]
    if any(type(n) is int and n < 0 for shape in canonical for n in shape):
        raise ValueError(f"broadcast_shapes: sizes must be nonnegative, got {' and '.join(map(str, canonical))}")
    return _joint_shape(*canonical)


@functools.lru_cache(maxsize=4096)
def _joint_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    rank = max(map(len, shapes), default=0)
    out = []
    for axis in range(-rank, 0):
        sizes = {s[axis] for s in shapes if len(s) >= -axis and s[axis] != 1}
        if len(sizes) > 1:
            shown = " and ".join(map(str, shapes))
            prefix = f"{name}: " if (name := called_function()) else ""
            raise ValueError(
                f"{prefix}Incompatible shapes for broadcasting: {shown}, axis {axis} has sizes {sorted(sizes)}"
            )
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


clears_cache(_joint_shape.cache_clear)


def broadcast_to(x: Any, shape: Sequence[int]) -> Any:
    """Broadcast an array to a shape by NumPy's rules, which match axes from the last one.

    Raises:
        ValueError: the array does not broadcast to the shape.
    """
    shape = canonical_shape(shape)
    aval = get_aval(x)
    if aval.shape == shape:
        return as_array(x)
    missing = len(shape) - aval.ndim
    if missing < 0 or any(a not in (1, b) for a, b in zip(aval.shape, shape[missing:], strict=True)):
        raise ValueError(
            f"{called_function() or 'broadcast_to'}: Incompatible shapes for broadcasting: {aval.str_short()} does not "
            f"broadcast to shape {shape}"
        )
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=tuple(range(missing, len(shape))))


def expand_dims(array: Any, dimensions: int | Sequence[int]) -> Any:
    """Insert axes of size 1 at the given positions of the result.

    Raises:
        ValueError: a position does not exist in the result, or is given twice.
    """
    aval = get_aval(array)
    if dimensions is None:
        raise TypeError("expand_dims: dimensions must be an integer or integers, got None")
    positions = tuple(dimensions) if is_several(dimensions) else (dimensions,)
    ndim = aval.ndim + len(positions)
    new = canonical_axes(positions, ndim, "expand_dims: dimension")
    if not new:
        return as_array(array)
    kept = tuple(d for d in range(ndim) if d not in new)
    shape = [1] * ndim
    for size, d in zip(aval.shape, kept, strict=True):
        shape[d] = size
    return broadcast_in_dim_p.bind(array, shape=tuple(shape), broadcast_dimensions=kept)
