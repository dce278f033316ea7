"""Primitives that rearrange elements: `reshape`, `transpose`, `squeeze`, `rev`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from corejax.extend import Primitive, ShapedArray, UndefPrimal, as_array, deflinear, get_aval, impl_rules
from corejax.extend.speed import HostCode
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import canonical_axes, canonical_axis, canonical_shape, integer, ints
from corejax_lax_basic._base.placing import place
from corejax_lax_basic._base.prepared import part, reshaped

__all__ = ["collapse", "reshape", "reshape_p", "rev", "rev_p", "squeeze", "squeeze_p", "transpose", "transpose_p"]

# -- reshape -----------------------------------------------------------------------------------------------------


def reshape(
    operand: Any, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, *, out_sharding: Any = None
) -> Any:
    """Give an array another shape; its elements stay in row-major order.

    Args:
        operand: the array.
        new_sizes: the shape; one size may be -1, which is then computed from the number of elements.
        dimensions: the order in which the operand's axes are read; None for the natural order.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: the shape has a different number of elements, or is not made of concrete integers.
        ValueError: more than one size is -1.
    """
    if out_sharding is not None:
        return place("reshape", reshape(operand, new_sizes, dimensions), out_sharding)
    aval = get_aval(operand)
    if dimensions is not None and ints(dimensions, "reshape: dimensions") != tuple(range(aval.ndim)):
        operand = transpose(operand, dimensions)
    shape = fill_in_size(aval, canonical_shape(new_sizes))
    return as_array(operand) if shape == aval.shape else reshape_p.bind(operand, new_sizes=shape)


def fill_in_size(aval: ShapedArray, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Replace the -1 in a shape by the size that gives it as many elements as `aval`.

    Raises:
        ValueError: more than one size is -1.
        TypeError: the size would not be an integer.
    """
    unknown = shape.count(-1)
    if not unknown:
        return shape
    if unknown > 1:
        raise ValueError(f"reshape: at most one size may be -1, got shape {shape}")
    rest = math.prod(d for d in shape if d != -1)
    if rest == 0 or aval.size % rest:
        raise TypeError(f"reshape: {aval.str_short()} has {aval.size} elements, which do not fill shape {shape}")
    return tuple(aval.size // rest if d == -1 else d for d in shape)


@takes("reshape", 1)
def _reshape_abstract_eval(x: ShapedArray, *, new_sizes: tuple[int, ...]) -> ShapedArray:
    if any(d < 0 for d in new_sizes):
        raise TypeError(f"reshape: sizes must be nonnegative, got new_sizes {new_sizes} for operand {x.str_short()}")
    if math.prod(new_sizes) != x.size:
        raise TypeError(
            f"reshape: operand {x.str_short()} has {x.size} elements, new_sizes {new_sizes} has {math.prod(new_sizes)}"
        )
    return ShapedArray(new_sizes, x.dtype, x.weak_type)


def _reshape_vmap(axis_size: int, vals: Any, dims: Any, *, new_sizes: tuple[int, ...]) -> Any:
    return reshape_p.bind(moveaxis(vals[0], dims[0], 0), new_sizes=(axis_size, *new_sizes)), 0


def _transpose(ct: Any, x: UndefPrimal, **params: Any) -> list[Any]:
    """Give the cotangent the operand's shape."""
    return [reshape_p.bind(ct, new_sizes=x.aval.shape)]


reshape_p = Primitive(
    "reshape",
    linear_in=(0,),
    tags=("linear", "structural", "cheap"),
    abstract_eval=_reshape_abstract_eval,
    vmap=_reshape_vmap,
    doc="Give an array another shape; its elements stay in row-major order.",
)
impl_rules.register(
    reshape_p,
    lambda x, *, new_sizes: x.reshape(new_sizes),
    prepared=lambda avals, *, new_sizes: reshaped(new_sizes),
)
deflinear(reshape_p, _transpose)


# -- transpose ---------------------------------------------------------------------------------------------------


def transpose(operand: Any, permutation: Sequence[int]) -> Any:
    """Permute axes: axis `i` of the result is axis `permutation[i]` of the operand.

    Raises:
        TypeError: `permutation` is not a permutation of the operand's axes.
    """
    permutation = ints(permutation, "permutation")
    if permutation == tuple(range(get_aval(operand).ndim)):
        return as_array(operand)
    return transpose_p.bind(operand, permutation=permutation)


def moveaxis(x: Any, source: int, destination: int) -> Any:
    """Move one axis to another position; both positions count from the front."""
    if source == destination:
        return x
    order = list(range(get_aval(x).ndim))
    order.insert(destination, order.pop(source))
    return transpose_p.bind(x, permutation=tuple(order))


def inverse_permutation(permutation: Sequence[int]) -> tuple[int, ...]:
    """Return the inverse of a permutation."""
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


@takes("transpose", 1)
def _transpose_abstract_eval(x: ShapedArray, *, permutation: tuple[int, ...]) -> ShapedArray:
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError(
            f"transpose: permutation {permutation} is not a permutation of the {x.ndim} axes of operand {x.str_short()}"
        )
    return ShapedArray(tuple(x.shape[p] for p in permutation), x.dtype, x.weak_type)


def _transpose_vmap(axis_size: int, vals: Any, dims: Any, *, permutation: tuple[int, ...]) -> Any:
    d = dims[0]
    order = (d, *(p if p < d else p + 1 for p in permutation))
    if order == tuple(range(len(order))):
        return vals[0], 0
    return transpose_p.bind(vals[0], permutation=order), 0


def _transpose_transpose(ct: Any, x: UndefPrimal, *, permutation: tuple[int, ...]) -> list[Any]:
    return [transpose_p.bind(ct, permutation=inverse_permutation(permutation))]


transpose_p = Primitive(
    "transpose",
    linear_in=(0,),
    tags=("linear", "structural"),
    abstract_eval=_transpose_abstract_eval,
    vmap=_transpose_vmap,
    doc="Permute the axes of an array.",
)
impl_rules.register(
    transpose_p,
    lambda x, *, permutation: x.transpose(permutation),
    prepared=lambda avals, *, permutation: HostCode("{out} = {0}.transpose({axes})", axes=tuple(permutation)),
)
deflinear(transpose_p, _transpose_transpose)


# -- squeeze -----------------------------------------------------------------------------------------------------


def squeeze(array: Any, dimensions: int | Sequence[int] | None = None) -> Any:
    """Drop axes of size 1 (None for all of them).

    Raises:
        ValueError: an axis does not exist, is given twice, or has another size.
        InconclusiveDimensionOperation: `dimensions` is None, and a symbolic size may be 1.
    """
    aval = get_aval(array)
    if dimensions is None:
        # A symbolic size that may be 1 equals no integer, but compares with none: the order raises the error.
        axes = tuple(i for i, d in enumerate(aval.shape) if d < 2 and d == 1)
    else:
        axes = tuple(sorted(canonical_axes(dimensions, aval.ndim, "squeeze: axis")))
    return squeeze_p.bind(array, dimensions=axes) if axes else as_array(array)


def _without(shape: tuple[Any, ...], axes: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(d for i, d in enumerate(shape) if i not in axes)


@takes("squeeze", 1)
def _squeeze_abstract_eval(x: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
    for axis in dimensions:
        if not 0 <= axis < x.ndim:
            raise ValueError(f"squeeze: dimensions {dimensions} are not axes of operand {x.str_short()}")
        if x.shape[axis] != 1:
            raise ValueError(
                f"squeeze: cannot select an axis to squeeze out: axis {axis} of operand {x.str_short()} has size "
                f"{x.shape[axis]}; only axes of size 1 can be dropped"
            )
    if len(set(dimensions)) != len(dimensions):
        raise ValueError(f"squeeze: dimensions {dimensions} name an axis of operand {x.str_short()} twice")
    return ShapedArray(_without(x.shape, dimensions), x.dtype, x.weak_type)


def _squeeze_vmap(axis_size: int, vals: Any, dims: Any, *, dimensions: tuple[int, ...]) -> Any:
    d = dims[0]
    axes = tuple(a if a < d else a + 1 for a in dimensions)
    return squeeze_p.bind(vals[0], dimensions=axes), d - sum(a < d for a in axes)


squeeze_p = Primitive(
    "squeeze",
    linear_in=(0,),
    tags=("linear", "structural", "cheap"),
    abstract_eval=_squeeze_abstract_eval,
    vmap=_squeeze_vmap,
    doc="Drop axes of size 1.",
)
impl_rules.register(
    squeeze_p,
    lambda x, *, dimensions: x.reshape(_without(x.shape, dimensions)),
    prepared=lambda avals, *, dimensions: reshaped(_without(avals[0].shape, dimensions)),
)
deflinear(squeeze_p, _transpose)


# -- rev ---------------------------------------------------------------------------------------------------------


def rev(operand: Any, dimensions: Sequence[int]) -> Any:
    """Reverse the order of elements along some axes.

    Raises:
        ValueError: an axis does not exist or is given twice.
    """
    return rev_p.bind(operand, dimensions=ints(dimensions, "dimensions"))


def _rev_impl(x: Any, *, dimensions: tuple[int, ...]) -> Any:
    return x[_reversing(x.ndim, dimensions)]


def _reversing(rank: int, dimensions: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(None, None, -1 if i in dimensions else 1) for i in range(rank))


@takes("rev", 1)
def _rev_abstract_eval(x: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
    if len(set(dimensions)) != len(dimensions):
        raise ValueError(f"rev: dimensions {dimensions} name an axis of operand {x.str_short()} twice")
    if any(not 0 <= d < x.ndim for d in dimensions):
        raise ValueError(f"rev: dimensions {dimensions} are not all axes of operand {x.str_short()}")
    return x


def _rev_vmap(axis_size: int, vals: Any, dims: Any, *, dimensions: tuple[int, ...]) -> Any:
    d = dims[0]
    return rev_p.bind(vals[0], dimensions=tuple(a if a < d else a + 1 for a in dimensions)), d


rev_p = Primitive(
    "rev",
    linear_in=(0,),
    tags=("linear", "structural"),
    abstract_eval=_rev_abstract_eval,
    vmap=_rev_vmap,
    doc="Reverse the order of elements along some axes.",
)
impl_rules.register(
    rev_p,
    _rev_impl,
    prepared=lambda avals, *, dimensions: part(avals[0], _reversing(avals[0].ndim, dimensions)),
)
deflinear(rev_p, lambda ct, x, *, dimensions: [rev_p.bind(ct, dimensions=dimensions)])


# -- in terms of the primitives ------------------------------------------------------------------------------------


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Any:
    """Merge the axes from `start_dimension` to `stop_dimension` (exclusive; None for all that follow) into one."""
    shape = get_aval(operand).shape
    first = integer(start_dimension, "collapse: start_dimension")
    last = None if stop_dimension is None else integer(stop_dimension, "collapse: stop_dimension")
    start, stop, _ = slice(first, last).indices(len(shape))
    return reshape(operand, (*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))


def swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    """Exchange two axes; negative ones count from the end."""
    ndim = get_aval(x).ndim
    order = list(range(ndim))
    a, b = canonical_axis(axis1, ndim), canonical_axis(axis2, ndim)
    order[a], order[b] = order[b], order[a]
    return transpose(x, order)
