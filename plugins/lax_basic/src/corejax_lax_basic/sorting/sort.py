"""`sort`: arrays sorted along an axis by one or more of them.

    sort : (a[*s], b[*s], ...) -> (a[*s], b[*s], ...)

Floats are in the order of numbers, with both zeros equal and every NaN after inf. Complex numbers are ordered by their
real parts, and by their imaginary parts if the real parts are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from corejax.extend import Array, Primitive, ShapedArray, get_aval, impl_rules, jvp_rules, move_batch_axis
from corejax.extend.speed import HostCode
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import canonical_axis, integer
from corejax_lax_basic.creation.iota import broadcasted_iota
from corejax_lax_basic.indexing.dimension_numbers import GatherDimensionNumbers
from corejax_lax_basic.indexing.gather import gather
from corejax_lax_basic.shape.broadcasting import expand_dims
from corejax_lax_basic.sorting._host_order import sorted_alone, sorting_order, sorts_stably

if TYPE_CHECKING:
    from corejax_lax_basic._base.prepared import Avals

__all__ = ["sort", "sort_key_val", "sort_p"]


@overload
def sort(operand: Array | np.ndarray, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Array: ...
@overload
def sort(
    operand: Sequence[Any], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> tuple[Array, ...]: ...
def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sort an array along an axis; or several arrays, by the first `num_keys` of them.

    Args:
        operand: an array, or a sequence of arrays of one shape.
        dimension: the axis to sort along; negative ones count from the end.
        is_stable: whether elements with equal keys stay in order.
        num_keys: the number of operands that are keys: elements are sorted by the first key, equal ones by the second,
            and so on. All operands are permuted alike.

    Returns:
        The sorted array, or a tuple of arrays.

    Raises:
        TypeError: `operand` is an empty sequence, or the shapes differ.
        ValueError: `num_keys` does not fit, or the operands do not have the axis.
    """
    if not isinstance(operand, tuple | list):
        if num_keys != 1:
            raise ValueError(f"sort: num_keys must be 1 for one operand, got {num_keys}")
        axis = canonical_axis(dimension, get_aval(operand).ndim, "sort: dimension")
        return sort_p.bind(operand, dimension=axis, is_stable=bool(is_stable), num_keys=1)[0]
    if not operand:
        raise TypeError("sort takes at least one operand, got none")
    axis = canonical_axis(dimension, get_aval(operand[0]).ndim, "sort: dimension")
    return tuple(
        sort_p.bind(*operand, dimension=axis, is_stable=bool(is_stable), num_keys=integer(num_keys, "num_keys"))
    )


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> tuple[Any, Any]:
    """Sort `keys` along an axis, and permute `values`, of the same shape, in the same way.

    Raises:
        TypeError: the shapes differ.
        ValueError: the operands do not have the axis.
    """
    first, second = sort((keys, values), dimension, is_stable)
    return first, second


def take_along(x: Any, places: Any, axis: int) -> Any:
    """Take elements of `x` at `places` along an axis, linearly in `x`.

    Args:
        x: the array.
        places: int32, of the shape of `x` except along `axis`; all different, and in bounds.
        axis: the axis to index.
    """
    ndim = get_aval(x).ndim
    batch = tuple(d for d in range(ndim) if d != axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), batch, batch)
    return gather(x, expand_dims(places, (ndim,)), numbers, (1,) * ndim, unique_indices=True)


# -- rules -------------------------------------------------------------------------------------------------------


def _impl(*arrays: Any, dimension: int, is_stable: bool, num_keys: int) -> list[Any]:
    if len(arrays) == 1:
        return [sorted_alone(arrays[0], dimension)]
    order = sorting_order(arrays[:num_keys], dimension, is_stable)
    if arrays[0].ndim == 1:
        return [x[order] for x in arrays]
    return [np.take_along_axis(x, order, dimension) for x in arrays]


def _prepared(avals: Avals, *, dimension: int, is_stable: bool, num_keys: int) -> HostCode | None:
    key = avals[0]
    if num_keys > 1 or not sorts_stably(key.dtype, key.size):
        return None
    if len(avals) == 1:
        lines = ["ordered = {0}.copy('K')", f"ordered.sort({dimension}, 'stable')", "{out} = [ordered]"]
    elif key.ndim == 1 and is_stable:
        taken = ", ".join(f"{{{i}}}.take(order)" for i in range(len(avals)))
        lines = ["order = {0}.argsort(0, 'stable')", f"{{out}} = [{taken}]"]
    else:
        return None
    return HostCode("\n".join(lines))


@takes("sort", 1, at_least=True)
def _abstract_eval(*avals: ShapedArray, dimension: int, is_stable: bool, num_keys: int) -> list[ShapedArray]:
    first = avals[0]
    for i, aval in enumerate(avals):
        if aval.shape != first.shape:
            raise TypeError(
                f"sort: operands must have the same shape; operand 0 is {first.str_short()}, "
                f"operand {i} is {aval.str_short()}"
            )
    if not 0 <= dimension < first.ndim:
        raise ValueError(f"sort: dimension {dimension} is not an axis of {first.str_short()}")
    if not 1 <= num_keys <= len(avals):
        raise ValueError(f"sort: num_keys must be between 1 and the number of operands, {len(avals)}; got {num_keys}")
    return list(avals)


def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    """Permute the tangents as the operands: by their positions, which are sorted along with the operands."""
    axis = params["dimension"]
    places = broadcasted_iota(np.int32, get_aval(primals[0]).shape, axis)
    *outs, order = sort_p.bind(*primals, places, **params)
    return outs, [None if t is None else take_along(t, order, axis) for t in tangents]


def _vmap(axis_size: int, vals: Any, dims: Any, *, dimension: int, **params: Any) -> Any:
    batch = next(d for d in dims if d is not None)
    moved = [move_batch_axis(axis_size, d, batch, x) for x, d in zip(vals, dims, strict=True)]
    return sort_p.bind(*moved, dimension=dimension + (dimension >= batch), **params), [batch] * len(moved)


sort_p = Primitive(
    "sort",
    multiple_results=True,
    abstract_eval=_abstract_eval,
    vmap=_vmap,
    doc="Sort arrays along an axis by the first `num_keys` of them; NaN last, zeros of both signs equal.",
)
impl_rules.register(sort_p, _impl, prepared=_prepared)
jvp_rules.register(sort_p, _jvp, symbolic_zeros=True)
