"""`top_k`: the greatest elements along an axis and their positions; `approx_max_k` and `approx_min_k`.

    top_k : a[*s] -> (a[*s with k], i32[*s with k])

Floats are in their total order, as in XLA: NaN is greater than inf, and 0.0 than -0.0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, get_aval, impl_rules, jvp_rules, vmap_rules
from corejax.extend.types import SymbolicDim
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import canonical_axis, integer
from corejax_lax_basic._base.rows import named
from corejax_lax_basic._base.type_rules import FLOAT, ORDERED, check_kind
from corejax_lax_basic.sorting._host_order import greatest
from corejax_lax_basic.sorting.sort import take_along

if TYPE_CHECKING:
    from corejax_lax_basic._base.prepared import Avals

__all__ = ["approx_max_k", "approx_min_k", "approx_top_k_p", "top_k", "top_k_p"]

_INDEX = np.dtype(np.int32)


def top_k(operand: Any, k: int, *, axis: int = -1) -> tuple[Any, Any]:
    """Return the `k` greatest elements along an axis in descending order, and their positions; ties stay in order.

    Args:
        operand: boolean, integer or floating-point array.
        k: the number of elements, static; at most the size of the axis.
        axis: the axis to search; negative ones count from the end.

    Returns:
        The elements and, as int32, their indices.

    Raises:
        TypeError: the array is complex, or `k` is not a static integer.
        ValueError: `k` is negative or exceeds the axis, or the array does not have the axis.
    """
    along = canonical_axis(axis, get_aval(operand).ndim, "top_k: axis")
    values, indices = top_k_p.bind(operand, k=integer(k, "k"), axis=along)
    return values, indices


def _places(x: Any, k: int, axis: int) -> Any:
    return np.moveaxis(greatest(np.moveaxis(x, axis, -1), k), -1, axis)


def _with_values(x: Any, places: Any, axis: int) -> list[Any]:
    values = x[places] if x.ndim == 1 else np.take_along_axis(x, places, axis)
    return [values, places.astype(_INDEX)]


def _impl(x: Any, *, k: int, axis: int) -> list[Any]:
    return _with_values(x, _places(x, k, axis), axis)


def _check(name: str, x: ShapedArray, k: int, axis: int) -> None:
    if not 0 <= axis < x.ndim:
        raise ValueError(f"{name}: axis {axis} is not an axis of {x.str_short()}")
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(f"{name}: k must be between 0 and the size of axis {axis} of {x.str_short()}; got k={k}")
    if not isinstance(x.shape[axis], SymbolicDim) and x.shape[axis] > 1 << 31:
        raise ValueError(f"{name}: top_k returns int32 indices, which will overflow for axis {axis} of {x.str_short()}")


def _resized(x: ShapedArray, axis: int, size: int) -> list[ShapedArray]:
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    return [x.update(shape=shape), ShapedArray(shape, _INDEX)]


@takes("top_k", 1)
def _abstract_eval(x: ShapedArray, *, k: int, axis: int) -> list[ShapedArray]:
    check_kind("top_k", x, ORDERED)
    _check("top_k", x, k, axis)
    return _resized(x, axis, k)


top_k_p = Primitive(
    "top_k",
    multiple_results=True,
    tags=("exact",),
    abstract_eval=_abstract_eval,
    doc="Return the `k` greatest elements along an axis in descending order, and their positions as int32.",
)


def _register_transformations(primitive: Primitive, axis: str) -> None:
    """Register the JVP and vmap rules of a primitive that returns elements along an axis and their positions.

    `axis` is the name of the param that holds the axis.
    """

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        values, places = primitive.bind(*primals, **params)
        return [values, places], [take_along(tangents[0], places, params[axis]), None]

    def vmap(axis_size: int, vals: Any, dims: Any, **params: Any) -> Any:
        params[axis] += params[axis] >= dims[0]
        return primitive.bind(vals[0], **params), [dims[0]] * 2

    jvp.__name__, vmap.__name__ = f"{primitive.name}_jvp", f"{primitive.name}_vmap"
    jvp_rules.register(primitive, jvp, symbolic_zeros=True)
    vmap_rules.register(primitive, vmap)


def _few_singles(avals: Avals, *, k: int, axis: int) -> bool:
    """Return whether a compiled program is faster, which it is for a few of many float32 elements."""
    [x] = avals
    return x.dtype == np.float32 and 8 * k <= x.shape[axis]


impl_rules.register(top_k_p, _impl, large=_few_singles)
_register_transformations(top_k_p, "axis")


# -- approximate -------------------------------------------------------------------------------------------------


_APPROX_MAX_K = """\
Return the `k` greatest elements along an axis and their positions; accelerators may miss some, CPUs are exact.

    Args:
        operand: floating-point array.
        k: the number of elements, static and positive.
        reduction_dimension: the axis to search; negative ones count from the end.
        recall_target: the share of the `k` greatest elements that has to be found, in (0, 1].
        reduction_input_size_override: size of the axis for which `recall_target` holds, if the array is only a part.
        aggregate_to_topk: whether to return exactly `k` elements, in order; else at least `k` candidates.

    Raises:
        TypeError: the array is not floating-point.
        ValueError: `k`, the axis or the target does not fit.
    """
_APPROX_MIN_K = "Return the `k` least elements along an axis and their positions; otherwise as `approx_max_k`."


def _approximate(name: str, is_max_k: bool, doc: str) -> Callable[..., tuple[Any, Any]]:
    def function(
        operand: Any,
        k: int,
        reduction_dimension: int = -1,
        recall_target: float = 0.95,
        reduction_input_size_override: int = -1,
        aggregate_to_topk: bool = True,
    ) -> tuple[Any, Any]:
        if not isinstance(recall_target, int | float | np.floating):
            shown = f"{recall_target!r} of type {type(recall_target).__name__}"
            raise TypeError(f"{name}: recall_target must be a number, got {shown}")
        axis = canonical_axis(reduction_dimension, get_aval(operand).ndim, f"{name}: reduction_dimension")
        values, indices = approx_top_k_p.bind(
            operand,
            k=integer(k, "k"),
            reduction_dimension=axis,
            recall_target=float(recall_target),
            is_max_k=is_max_k,
            reduction_input_size_override=integer(reduction_input_size_override, "reduction_input_size_override"),
            aggregate_to_topk=bool(aggregate_to_topk),
        )
        return values, indices

    return named(function, name, doc)


approx_max_k = _approximate("approx_max_k", True, _APPROX_MAX_K)
approx_min_k = _approximate("approx_min_k", False, _APPROX_MIN_K)

_LANES, _CHUNK = 128, 1024  # tile sizes of accelerators: along an axis of several, and of a vector


def candidates(size: int, ndim: int, k: int, recall: float, override: int) -> int:
    """Return the number of candidates along an axis if `aggregate_to_topk` is False.

    Chern et al., TPU-KNN (arXiv:2206.14286), section 5: `size` elements are put in `m` bins, and the greatest element
    of each bin is kept.
    """
    tile = _CHUNK if ndim == 1 else _LANES
    if size <= tile:
        return size
    if k == 1:
        return tile
    # The number of bins that the target needs, at least a tile and at most all elements.
    bins = size if recall == 1 else min(max(int((1 - k) / math.log(recall)), tile), size)
    halvings = int(math.log2((size if override < 0 else override) // bins))
    tiles = -(-size // tile)
    halvings = min(halvings, math.ceil(math.log2(tiles)))
    return size if halvings == 0 else -(-tiles // (1 << halvings)) * tile


@takes("approx_top_k", 1)
def _approx_abstract_eval(
    x: ShapedArray,
    *,
    k: int,
    reduction_dimension: int,
    recall_target: float,
    is_max_k: bool,
    reduction_input_size_override: int,
    aggregate_to_topk: bool,
) -> list[ShapedArray]:
    name, axis, override = "approx_top_k", reduction_dimension, reduction_input_size_override
    check_kind(name, x, FLOAT)
    _check(name, x, k, axis)
    if k == 0:
        raise ValueError(f"{name}: k has to be positive, got 0")
    if not 0 < recall_target <= 1:
        raise ValueError(f"{name}: recall_target must be in (0, 1], got {recall_target}")
    size = x.shape[axis]
    if 0 <= override < size:
        raise ValueError(f"{name}: reduction_input_size_override {override} is less than the axis, which has {size}")
    return _resized(x, axis, k if aggregate_to_topk else candidates(size, x.ndim, k, recall_target, override))


def _approx_impl(x: Any, *, reduction_dimension: int, is_max_k: bool, **params: Any) -> list[Any]:
    params |= {"reduction_dimension": reduction_dimension, "is_max_k": is_max_k}
    shape = approx_top_k_p.abstract((ShapedArray(x.shape, x.dtype),), params)[0].shape
    axis = reduction_dimension
    wide = x if x.dtype in (np.float32, np.float64) else x.astype(np.float32)
    if x.dtype.name.endswith("fnuz"):  # the format has one NaN, whose sign means nothing
        wide = np.where(np.isnan(wide), np.float32(np.nan), wide)
    return _with_values(x, _places(wide if is_max_k else -wide, shape[axis], axis), axis)


approx_top_k_p = Primitive(
    "approx_top_k",
    multiple_results=True,
    impl=_approx_impl,
    abstract_eval=_approx_abstract_eval,
    doc="Return the greatest or least elements along an axis and their positions; accelerators may miss some.",
)
_register_transformations(approx_top_k_p, "reduction_dimension")
