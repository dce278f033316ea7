"""`conv_general_dilated`: sums of products of a kernel with the windows of an array, and its rules.

    conv_general_dilated : a[N, C, *s], a[O, C, *k] -> a[N, O, *(s - k + 1)]        without strides, padding, dilation

The kernel is not reversed: mathematically it is a correlation. Source: StableHLO, `convolution`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import (
    Array,
    Primitive,
    ShapedArray,
    as_array,
    defjvp,
    dtypes,
    get_aval,
    host_value,
    impl_rules,
    is_undef_primal,
)
from corejax.extend.devices import is_spread
from corejax.extend.speed import HostCode, engine
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import Ints
from corejax_lax_basic._base.placing import place
from corejax_lax_basic._base.type_rules import check_equal_dtypes
from corejax_lax_basic._speed import CONV_PRODUCTS
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.convolution._on_host import convolve, correlation_code
from corejax_lax_basic.convolution.dimension_numbers import (
    ConvDimensionNumbers,
    conv_dimension_numbers,
    conv_shape_tuple,
    permuted,
    unpermuted,
)
from corejax_lax_basic.linear.precision import operands_precision
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim
from corejax_lax_basic.shape.rearranging import moveaxis, reshape, rev
from corejax_lax_basic.windows.geometry import (
    Pads,
    dilated_shape,
    integers,
    ones_unless,
    padtype_to_pads,
    pairs,
    transposed_pads,
)

if TYPE_CHECKING:
    from corejax_lax_basic._base.prepared import Avals

__all__ = ["conv_general_dilated", "conv_general_dilated_p"]

_NAME = "conv_general_dilated"
Params = dict[str, Any]


def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Sum products of a kernel with all windows of an array, over the features and the window.

    Args:
        lhs: the array, `(N, C, ...)` unless `dimension_numbers` says otherwise.
        rhs: the kernel, `(O, I, ...)`, of the same dtype; I is C over the number of feature groups.
        window_strides: distances between windows along each spatial axis.
        padding: zeros before and after each spatial axis, negative to drop elements: a sequence of `(low, high)`,
            "VALID" for no padding, "SAME" or "SAME_LOWER" for ceil(size / stride) windows.
        lhs_dilation: distances to which the array's elements are spread, with zeros between; by default 1.
        rhs_dilation: distances to which the kernel's elements are spread; by default 1.
        dimension_numbers: the roles of the axes, see `conv_dimension_numbers`.
        feature_group_count: number of groups of features: group g of the C input features gives group g of the O
            output features.
        batch_group_count: number G of groups of the batch: group g of the N examples gives group g of the O features,
            and the result has N / G examples.
        precision: a `Precision`, its name (`"highest"`), or a pair of these; None for
            `config.default_matmul_precision` or, if that is None, the backend's default.
        preferred_element_type: dtype of sums and result; by default the operands'.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Returns:
        An array `(N, O, ...)` unless `dimension_numbers` says otherwise, weakly typed if both operands are.

    Raises:
        TypeError: dtypes or ranks differ, or `dimension_numbers` or the lengths of other arguments do not fit.
        ValueError: sizes, groups, padding or precision do not fit, or `padding` is a word and `lhs_dilation` is not 1.
    """
    x, kernel = get_aval(lhs), get_aval(rhs)
    numbers = conv_dimension_numbers(x.shape, kernel.shape, dimension_numbers)
    nd = x.ndim - 2
    strides = integers(_NAME, "window_strides", window_strides, nd, 1)
    lhs_dilation = ones_unless(_NAME, "lhs_dilation", lhs_dilation, nd)
    rhs_dilation = ones_unless(_NAME, "rhs_dilation", rhs_dilation, nd)
    if isinstance(padding, str):
        _refuse_dilated(padding, lhs_dilation)
        spans = dilated_shape(permuted(kernel.shape, numbers.rhs_spec)[2:], rhs_dilation)
        padding = padtype_to_pads(permuted(x.shape, numbers.lhs_spec)[2:], spans, strides, padding)
    preferred = x.dtype if preferred_element_type is None else dtypes.dtype(preferred_element_type)
    out = _bind(
        lhs,
        rhs,
        operands_precision(_NAME, precision),
        window_strides=strides,
        padding=pairs(_NAME, padding),
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=numbers,
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
        preferred_element_type=preferred,
    )
    return place(_NAME, out, out_sharding)


def _refuse_dilated(padding: str, lhs_dilation: Ints) -> None:
    if any(d != 1 for d in lhs_dilation):
        raise ValueError(
            f"{_NAME}: padding {padding!r} is not defined with lhs_dilation {lhs_dilation}; pass (low, high) pairs, "
            "or call conv_transpose"
        )


def _bind(lhs: Any, rhs: Any, precision: Any = None, **params: Any) -> Any:
    if precision is None:
        return conv_general_dilated_p.bind(lhs, rhs, **params)
    return conv_general_dilated_p.bind(lhs, rhs, precision=precision, **params)


# -- types -------------------------------------------------------------------------------------------------------


def _check_groups(lhs: Ints, rhs: Ints, feature_groups: int, batch_groups: int) -> None:
    """Refuse numbers of groups that do not divide sizes; shapes are `(N, C, ...)` and `(O, I, ...)`."""
    for word, count in (("feature_group_count", feature_groups), ("batch_group_count", batch_groups)):
        if type(count) is not int or count < 1:
            raise ValueError(f"{_NAME}: {word} must be a positive integer, got {count!r}")
        if rhs[0] % count:
            raise ValueError(f"{_NAME}: {word} {count} does not divide the {rhs[0]} output features of rhs")
    if feature_groups > 1 and batch_groups > 1:
        raise ValueError(
            f"{_NAME}: one of feature_group_count {feature_groups} and batch_group_count {batch_groups} has to be 1"
        )
    if lhs[1] % feature_groups:
        raise ValueError(f"{_NAME}: feature_group_count {feature_groups} does not divide the {lhs[1]} features of lhs")
    if lhs[0] % batch_groups:
        raise ValueError(f"{_NAME}: batch_group_count {batch_groups} does not divide the batch {lhs[0]} of lhs")
    if lhs[1] // feature_groups != rhs[1]:
        raise ValueError(
            f"{_NAME}: lhs has {lhs[1]} features in {feature_groups} groups, and rhs takes {rhs[1]} in each; "
            f"these have to be {lhs[1] // feature_groups}"
        )


def check_result_dtype(name: str, dtype: np.dtype[Any], preferred: np.dtype[Any]) -> None:
    """Refuse a dtype of sums that drops parts of the products.

    Raises:
        TypeError: fractions or imaginary parts would be dropped.
    """
    if dtypes.is_complex(dtype) and not dtypes.is_complex(preferred):
        raise TypeError(f"{name}: preferred_element_type {preferred} drops the imaginary parts of {dtype} products")
    if dtypes.is_inexact(dtype) and not dtypes.is_inexact(preferred):
        raise TypeError(f"{name}: preferred_element_type {preferred} drops the fractions of {dtype} products")


@takes(_NAME, 2)
def _abstract_eval(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    window_strides: Ints,
    padding: Pads,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    preferred_element_type: np.dtype[Any],
    precision: Any = None,
) -> ShapedArray:
    check_equal_dtypes(_NAME, (lhs, rhs))
    check_result_dtype(_NAME, lhs.dtype, preferred_element_type)
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    nd = lhs.ndim - 2
    for argument, values in (
        ("window_strides", window_strides),
        ("lhs_dilation", lhs_dilation),
        ("rhs_dilation", rhs_dilation),
    ):
        integers(_NAME, argument, values, nd, 1)
    x, kernel = permuted(lhs.shape, numbers.lhs_spec), permuted(rhs.shape, numbers.rhs_spec)
    _check_groups(x, kernel, feature_group_count, batch_group_count)
    x = (*x[:2], *dilated_shape(x[2:], lhs_dilation))
    kernel = (*kernel[:2], *dilated_shape(kernel[2:], rhs_dilation))
    out = conv_shape_tuple(x, kernel, window_strides, padding, batch_group_count)
    return ShapedArray(unpermuted(out, numbers.out_spec), preferred_element_type, lhs.weak_type and rhs.weak_type)


# -- derivatives -------------------------------------------------------------------------------------------------


def _swap_first_axes(spec: Sequence[int]) -> Ints:
    """Exchange batch and features in a spec, or output and input features of the kernel."""
    return (spec[1], spec[0], *spec[2:])


def _as(x: Any, dtype: np.dtype[Any]) -> Any:
    return x if get_aval(x).dtype == dtype else convert_element_type(x, dtype)


def _spans(lhs: ShapedArray, rhs: ShapedArray, ct: ShapedArray, params: Params) -> tuple[Ints, Ints, Ints]:
    """Return the spans of the spatial axes of both operands and the result, each with its dilation or stride."""
    numbers = params["dimension_numbers"]
    return (
        dilated_shape(permuted(lhs.shape, numbers.lhs_spec)[2:], params["lhs_dilation"]),
        dilated_shape(permuted(rhs.shape, numbers.rhs_spec)[2:], params["rhs_dilation"]),
        dilated_shape(permuted(ct.shape, numbers.out_spec)[2:], params["window_strides"]),
    )


def _lhs_cotangent(ct: Any, lhs: ShapedArray, rhs: Any, params: Params) -> Any:
    """Convolve the cotangent with the reversed kernel; strides become dilation, and dilation strides.

    Groups of features stay groups, and their kernels exchange input and output; groups of the batch become groups of
    features.
    """
    numbers = params["dimension_numbers"]
    groups = params["feature_group_count"] * params["batch_group_count"]
    spans = _spans(lhs, get_aval(rhs), get_aval(ct), params)
    kernel = rev(rhs, numbers.rhs_spec[2:]) if len(numbers.rhs_spec) > 2 else rhs
    if groups > 1:
        kernel, at = _split_axis(kernel, numbers.rhs_spec[0], groups)
        kernel = _merge_axes(kernel, at, numbers.rhs_spec[1])
    ct_lhs = _bind(
        ct,
        _as(kernel, get_aval(ct).dtype),
        params.get("precision"),
        window_strides=params["lhs_dilation"],
        padding=transposed_pads(*spans, params["padding"]),
        lhs_dilation=params["window_strides"],
        rhs_dilation=params["rhs_dilation"],
        dimension_numbers=ConvDimensionNumbers(numbers.out_spec, _swap_first_axes(numbers.rhs_spec), numbers.lhs_spec),
        feature_group_count=groups,
        batch_group_count=1,
        preferred_element_type=get_aval(ct).dtype,
    )
    if params["batch_group_count"] > 1:
        ct_lhs, at = _split_axis(ct_lhs, numbers.lhs_spec[1], groups)
        ct_lhs = _merge_axes(ct_lhs, at, numbers.lhs_spec[0])
    return _as(ct_lhs, lhs.dtype)


def _rhs_cotangent(ct: Any, lhs: Any, rhs: ShapedArray, params: Params) -> Any:
    """Convolve the array with the cotangent; batch and features are exchanged, and so are their groups."""
    numbers = params["dimension_numbers"]
    spans = _spans(get_aval(lhs), rhs, get_aval(ct), params)
    lows = [lo for lo, _ in params["padding"]]
    highs = [m + k - 1 - n - lo for n, k, m, lo in zip(*spans, lows, strict=True)]
    ct_rhs = _bind(
        _as(lhs, get_aval(ct).dtype),
        ct,
        params.get("precision"),
        window_strides=params["rhs_dilation"],
        padding=tuple(zip(lows, highs, strict=True)),
        lhs_dilation=params["lhs_dilation"],
        rhs_dilation=params["window_strides"],
        dimension_numbers=ConvDimensionNumbers(
            *map(_swap_first_axes, (numbers.lhs_spec, numbers.out_spec, numbers.rhs_spec))
        ),
        feature_group_count=params["batch_group_count"],
        batch_group_count=params["feature_group_count"],
        preferred_element_type=get_aval(ct).dtype,
    )
    return _as(ct_rhs, rhs.dtype)


def _transpose(ct: Any, lhs: Any, rhs: Any, **params: Any) -> list[Any]:
    other = rhs if is_undef_primal(lhs) else lhs
    if not get_aval(ct).size or not get_aval(other).size:
        return [None, None]
    if is_undef_primal(lhs):
        return [_lhs_cotangent(ct, lhs.aval, rhs, params), None]
    return [None, _rhs_cotangent(ct, lhs, rhs.aval, params)]


# -- batches -----------------------------------------------------------------------------------------------------


def _merge_axes(x: Any, source: int, axis: int, groups: int = 1) -> Any:
    """Merge one axis into another.

    Args:
        x: the array.
        source: the axis to merge, of size B.
        axis: the axis that it becomes part of, counted without `source`; of size `groups` times n.
        groups: the number of groups of `axis`.

    Returns:
        The array, with `axis` of size `groups` times B times n, in this order.
    """
    x = moveaxis(x, source, 0)
    size, *shape = get_aval(x).shape
    rest = shape[axis] // groups if shape[axis] else 0
    if groups == 1:
        x = moveaxis(x, 0, axis)
    else:
        x = reshape(x, (size, *shape[:axis], groups, rest, *shape[axis + 1 :]))
        x = moveaxis(x, 0, axis + 1)
    shape[axis] = groups * size * rest
    return reshape(x, shape)


def _split_axis(x: Any, axis: int, size: int, groups: int = 1) -> tuple[Any, int]:
    """Undo `_merge_axes`: return the array with an axis of size B before `axis`, and the position of the new axis."""
    shape = get_aval(x).shape
    rest = shape[axis] // (groups * size)
    if groups == 1:
        return reshape(x, (*shape[:axis], size, rest, *shape[axis + 1 :])), axis
    x = reshape(x, (*shape[:axis], groups, size, rest, *shape[axis + 1 :]))
    x = moveaxis(x, axis + 1, axis)
    return reshape(x, (*shape[:axis], size, groups * rest, *shape[axis + 1 :])), axis


def _vmap(axis_size: int, vals: Any, dims: Any, **params: Any) -> Any:
    (lhs, rhs), (d_lhs, d_rhs) = vals, dims
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    features, batches = params["feature_group_count"], params["batch_group_count"]
    if not axis_size:
        return _empty_batch(lhs, rhs, d_lhs, d_rhs, params), 0
    if d_rhs is None:
        lhs = _merge_axes(lhs, d_lhs, lhs_spec[0], batches)
        return _split_axis(conv_general_dilated_p.bind(lhs, rhs, **params), out_spec[0], axis_size)
    if d_lhs is None:
        rhs = _merge_axes(rhs, d_rhs, rhs_spec[0], features * batches)
        out = conv_general_dilated_p.bind(lhs, rhs, **params)
        return _split_axis(out, out_spec[1], axis_size, features * batches)
    rhs = _merge_axes(rhs, d_rhs, rhs_spec[0])
    if batches > 1:
        lhs = _merge_axes(lhs, d_lhs, lhs_spec[0])
        params["batch_group_count"] = batches * axis_size
    else:
        lhs = _merge_axes(lhs, d_lhs, lhs_spec[1])
        params["feature_group_count"] = features * axis_size
    return _split_axis(conv_general_dilated_p.bind(lhs, rhs, **params), out_spec[1], axis_size)


def _empty_batch(lhs: Any, rhs: Any, d_lhs: int | None, d_rhs: int | None, params: Params) -> Any:
    """Return the result for a batch of size 0."""
    avals = []
    for x, d in ((lhs, d_lhs), (rhs, d_rhs)):
        aval = get_aval(x)
        shape = aval.shape if d is None else (*aval.shape[:d], *aval.shape[d + 1 :])
        avals.append(ShapedArray(shape, aval.dtype))
    out = conv_general_dilated_p.abstract(tuple(avals), params)[0]
    return broadcast_in_dim(as_array(np.zeros((), out.dtype)), (0, *out.shape), ())


conv_general_dilated_p = Primitive(
    _NAME,
    linear_in=(0, 1),
    tags=("bilinear",),
    abstract_eval=_abstract_eval,
    vmap=_vmap,
    transpose=_transpose,
    doc="Sum products of a kernel with all windows of an array, over the features and the window.",
)
defjvp(
    conv_general_dilated_p,
    lambda t, lhs, rhs, **params: conv_general_dilated_p.bind(t, rhs, **params),
    lambda t, lhs, rhs, **params: conv_general_dilated_p.bind(lhs, t, **params),
)


# -- values ------------------------------------------------------------------------------------------------------


def _is_small(lhs: ShapedArray, rhs: ShapedArray, params: dict[str, Any]) -> bool:
    """Return whether NumPy is faster than a compiled program."""
    out = conv_general_dilated_p.abstract((lhs, rhs), params)[0]
    products = rhs.size // max(1, rhs.shape[params["dimension_numbers"].rhs_spec[0]])
    return out.size * products <= CONV_PRODUCTS or not dtypes.is_inexact(out.dtype)


def _prepared(avals: Avals, **params: Any) -> HostCode | None:
    lhs, rhs = avals
    return correlation_code(lhs, rhs, params) if _is_small(lhs, rhs, params) else None


@impl_rules.register(conv_general_dilated_p, device=True, prepared=_prepared)
def _impl(lhs: Array, rhs: Array, **params: Any) -> Array:
    """Compute small convolutions, and all if nothing compiles, by NumPy; others by a compiled program of one equation.

    Operands that are sharded over several devices are compiled, so that the result is on these devices as well.
    """
    if not _is_small(lhs.aval, rhs.aval, params) or is_spread(lhs) or is_spread(rhs):
        out: Array | None = engine().run_compiled(conv_general_dilated_p, (lhs, rhs), params)
        if out is not None:
            return out
    with np.errstate(all="ignore"):
        [aval] = conv_general_dilated_p.abstract((lhs.aval, rhs.aval), params)
        return Array(convolve(host_value(lhs), host_value(rhs), **params), aval)
