"""`dot_general`: sums of products over contracted axes, with batch axes; and products defined in terms of it.

The result's axes are the batch axes, then the free axes of the first operand, then those of the second.
"""

from __future__ import annotations

import functools
from typing import Any

from corejax.extend import (
    Primitive,
    ShapedArray,
    defjvp,
    dtypes,
    get_aval,
    impl_rules,
    is_undef_primal,
)
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import ints
from corejax_lax_basic._base.placing import place
from corejax_lax_basic._base.scalars import PYTHON_SCALARS
from corejax_lax_basic._promotion import convert_operand, promote_dtypes
from corejax_lax_basic.linear._on_host import DimensionNumbers, axes_of, prepared, product, result_shape, takes_long
from corejax_lax_basic.linear.precision import canonical_precision
from corejax_lax_basic.shape.broadcasting import broadcast_shapes, broadcast_to
from corejax_lax_basic.shape.rearranging import inverse_permutation, moveaxis, transpose

__all__ = ["batch_matmul", "canonical_numbers", "dot", "dot_general", "dot_general_p"]


def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Sum products over pairs of contracted axes, separately for each index of pairs of batch axes.

    Args:
        lhs: first operand.
        rhs: second operand. If the dtypes differ, the result has the wider one, or the floating-point one.
        dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`, sequences of axes.
        precision: a `lax.Precision` or its name (`"highest"`), a pair of these, or an algorithm; None for
            `config.default_matmul_precision` or, if that is None, the backend's default.
        preferred_element_type: dtype of sums and result; by default the operands'.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Returns:
        An array with the batch axes, then the free axes of `lhs`, then those of `rhs`.

    Raises:
        TypeError: the paired axes' sizes differ, an axis does not exist, or the dtypes cannot be combined.
        ValueError: `precision` is none of the above.
    """
    numbers = canonical_numbers("dot_general", dimension_numbers)
    if preferred_element_type is None:
        preferred = product_dtype("dot_general", get_aval(lhs), get_aval(rhs))
    else:
        preferred = dtypes.canonicalize_dtype(preferred_element_type)
    out = _bind(lhs, rhs, numbers, canonical_precision(precision), preferred)
    return place("dot_general", out, out_sharding)


def canonical_numbers(name: str, dimension_numbers: Any) -> DimensionNumbers:
    """Return dimension numbers as tuples of integers.

    Raises:
        TypeError: they are not two pairs of sequences of axes.
    """
    try:
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
        return (ints(lhs_contract), ints(rhs_contract)), (ints(lhs_batch), ints(rhs_batch))
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}: dimension_numbers must be ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)), "
            f"sequences of axes; got {dimension_numbers!r}"
        ) from None


def product_dtype(name: str, lhs: ShapedArray, rhs: ShapedArray) -> Any:
    """Return the dtype of products: complex before floating before integer, then the wider exponent, fraction, number.

    Raises:
        TypeError: neither dtype is the wider one.
    """
    if lhs.dtype is rhs.dtype or lhs.dtype == rhs.dtype:
        return lhs.dtype
    for aval in (lhs, rhs):
        if dtypes.is_extended(aval.dtype):
            raise dtypes.no_numbers(aval.dtype, name)
    ranks = [_dtype_rank(aval.dtype) for aval in (lhs, rhs)]
    if ranks[0] == ranks[1]:
        raise TypeError(
            f"{name}: lhs {lhs.str_short()} and rhs {rhs.str_short()} differ in dtype, and neither is the wider one; "
            "convert one of them"
        )
    return lhs.dtype if ranks[0] > ranks[1] else rhs.dtype


def _dtype_rank(dtype: Any) -> tuple[Any, ...]:
    """Return the rank of a dtype; products have the dtype of higher rank (XLA's `HigherPrecisionType`)."""
    if dtypes.is_inexact(dtype):
        info = dtypes.finfo(dtypes.real_dtype_of(dtype))
        return dtypes.is_complex(dtype), info.maxexp, info.nmant, info.bits, True
    bits = 1 if dtypes.is_bool(dtype) else dtypes.iinfo(dtype).bits
    return False, -1, -1, bits, not dtypes.is_unsigned(dtype)


def _bind(lhs: Any, rhs: Any, numbers: DimensionNumbers, precision: Any, preferred: Any) -> Any:
    if precision is None:
        return dot_general_p.bind(lhs, rhs, dimension_numbers=numbers, preferred_element_type=preferred)
    return dot_general_p.bind(
        lhs, rhs, dimension_numbers=numbers, precision=precision, preferred_element_type=preferred
    )


# -- rules -------------------------------------------------------------------------------------------------------


def _check_axes(name: str, aval: ShapedArray, batch: tuple[int, ...], contract: tuple[int, ...]) -> None:
    axes = (*batch, *contract)
    if any(not 0 <= d < aval.ndim for d in axes):
        raise TypeError(
            f"dot_general: {name} is {aval.str_short()}; not all of contracting axes {contract} "
            f"and batch axes {batch} are axes of it"
        )
    if len(set(axes)) != len(axes):
        raise TypeError(f"dot_general: contracting axes {contract} and batch axes {batch} of {name} name an axis twice")


@takes("dot_general", 2)
def _abstract_eval(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    dimension_numbers: DimensionNumbers,
    preferred_element_type: Any,
    precision: Any = None,
) -> ShapedArray:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    natural = product_dtype("dot_general", lhs, rhs)
    if dtypes.is_complex(natural) and not dtypes.is_complex(preferred_element_type):
        raise TypeError(
            f"dot_general: preferred_element_type {preferred_element_type} drops the imaginary parts of products of "
            f"lhs {lhs.str_short()} and rhs {rhs.str_short()}; take the real part of the result"
        )
    if dtypes.is_inexact(natural) and not dtypes.is_inexact(preferred_element_type):
        raise TypeError(
            f"dot_general: preferred_element_type {preferred_element_type} drops the fractions of lhs "
            f"{lhs.str_short()} and rhs {rhs.str_short()}; convert the operands, or the result"
        )
    integers = dtypes.is_integer(natural) and dtypes.is_integer(preferred_element_type)
    if integers and dtypes.iinfo(preferred_element_type).bits < dtypes.iinfo(natural).bits:
        raise TypeError(
            f"dot_general: preferred_element_type {preferred_element_type} is narrower than the products of lhs "
            f"{lhs.str_short()} and rhs {rhs.str_short()}; convert the result"
        )
    _check_axes("lhs", lhs, lhs_batch, lhs_contract)
    _check_axes("rhs", rhs, rhs_batch, rhs_contract)
    for word, left_axes, right_axes in (("contracting", lhs_contract, rhs_contract), ("batch", lhs_batch, rhs_batch)):
        sizes = tuple(lhs.shape[d] for d in left_axes), tuple(rhs.shape[d] for d in right_axes)
        if sizes[0] != sizes[1]:
            raise TypeError(
                f"dot_general: {word} axes {left_axes} of lhs {lhs.str_short()} have sizes {sizes[0]}, "
                f"{word} axes {right_axes} of rhs {rhs.str_short()} have sizes {sizes[1]}"
            )
    shape = result_shape(*axes_of(dimension_numbers, lhs.ndim, rhs.ndim), lhs.shape, rhs.shape)
    return ShapedArray(shape, preferred_element_type, lhs.weak_type and rhs.weak_type)


def _cotangent(ct: Any, other: Any, numbers: DimensionNumbers, aval: ShapedArray, first: bool, precision: Any) -> Any:
    """Return an operand's cotangent: the result's cotangent times the other operand, whose free axes are contracted."""
    ct_aval, other_aval = get_aval(ct), get_aval(other)
    other_first, pairs, order = _cotangent_axes(numbers, aval.ndim, other_aval.ndim, first)
    if type(precision) is tuple and other_first is first:
        precision = precision[::-1]  # a pair names the precisions of lhs and rhs; the cotangent replaces one of them
    dtype = product_dtype("dot_general", ct_aval, other_aval)
    out = _bind(other, ct, pairs, precision, dtype) if other_first else _bind(ct, other, pairs, precision, dtype)
    if order is not None:
        out = transpose(out, order)
    return out if dtype == aval.dtype else convert_operand(out, aval.dtype)


@functools.lru_cache(4096)
def _cotangent_axes(numbers: DimensionNumbers, ndim: int, other_ndim: int, first: bool) -> tuple[Any, ...]:
    """Return how a cotangent is multiplied with the other operand.

    Returns:
        Whether the other operand comes first, which saves a transposition if the contracted axes come first in the
        operand; the product's dimension numbers; the order of its axes for a final transposition, None for no change.
    """
    left, right = axes_of(numbers, *((ndim, other_ndim) if first else (other_ndim, ndim)))
    axes, other_axes = (left, right) if first else (right, left)
    batches, lefts = len(left.batch), len(left.free)
    ct_ndim = batches + lefts + len(right.free)
    ct_batch, ct_left, ct_right = range(batches), range(batches, batches + lefts), range(batches + lefts, ct_ndim)
    ct_axes = (tuple(ct_right if first else ct_left), tuple(ct_batch))
    # The product's axes: batch, the operand's free ones, and its contracted ones in the other operand's order.
    contracted = [
        axes.contract[i] for i in sorted(range(len(other_axes.contract)), key=other_axes.contract.__getitem__)
    ]
    layout, natural = (*axes.batch, *axes.free, *contracted), tuple(range(ndim))
    other_first = layout != natural and (*axes.batch, *contracted, *axes.free) == natural
    order = None if other_first or layout == natural else inverse_permutation(layout)
    pairs = (
        ((other_axes.free, other_axes.batch), ct_axes)
        if other_first
        else (ct_axes, (other_axes.free, other_axes.batch))
    )
    return other_first, tuple(zip(*pairs, strict=True)), order


def _transpose(
    ct: Any,
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: DimensionNumbers,
    preferred_element_type: Any,
    precision: Any = None,
) -> list[Any]:
    if is_undef_primal(lhs):
        return [_cotangent(ct, rhs, dimension_numbers, lhs.aval, True, precision), None]
    return [None, _cotangent(ct, lhs, dimension_numbers, rhs.aval, False, precision)]


def _vmap(
    axis_size: int,
    vals: Any,
    dims: Any,
    *,
    dimension_numbers: DimensionNumbers,
    preferred_element_type: Any,
    precision: Any = None,
) -> Any:
    lhs, rhs = vals
    d_lhs, d_rhs = dims
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs_contract, lhs_batch = _shifted(lhs_contract, d_lhs), _shifted(lhs_batch, d_lhs)
    rhs_contract, rhs_batch = _shifted(rhs_contract, d_rhs), _shifted(rhs_batch, d_rhs)
    free_before = len(lhs_batch)
    if d_lhs is not None and d_rhs is not None:
        lhs_batch, rhs_batch = (d_lhs, *lhs_batch), (d_rhs, *rhs_batch)
        dim_out = 0
    elif d_lhs is not None:
        dim_out = free_before + sum(d not in lhs_batch + lhs_contract for d in range(d_lhs))
    else:
        lhs_free = get_aval(lhs).ndim - len(lhs_batch) - len(lhs_contract)
        dim_out = free_before + lhs_free + sum(d not in rhs_batch + rhs_contract for d in range(d_rhs))
    numbers = ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))
    return _bind(lhs, rhs, numbers, precision, preferred_element_type), dim_out


def _shifted(axes: tuple[int, ...], dim: int | None) -> tuple[int, ...]:
    """Return axes renumbered for an operand with a batch axis at `dim`."""
    return axes if dim is None else tuple(a if a < dim else a + 1 for a in axes)


dot_general_p = Primitive(
    "dot_general",
    linear_in=(0, 1),
    tags=("bilinear",),
    abstract_eval=_abstract_eval,
    vmap=_vmap,
    transpose=_transpose,
    doc="Sum products over contracted axes, separately for each index of the batch axes.",
)


impl_rules.register(dot_general_p, product, large=takes_long, prepared=prepared)
defjvp(
    dot_general_p,
    lambda t, lhs, rhs, **params: dot_general_p.bind(t, rhs, **params),
    lambda t, lhs, rhs, **params: dot_general_p.bind(lhs, t, **params),
)


# -- in terms of dot_general ---------------------------------------------------------------------------------------


def dot(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Multiply vectors or matrices; with `dimension_numbers`, multiply arrays as `dot_general`.

    The other arguments are those of `dot_general`.

    Raises:
        TypeError: an operand is neither a vector nor a matrix, or the sizes do not match.
    """
    if dimension_numbers is None:
        a, b = get_aval(lhs), get_aval(rhs)
        if not (1 <= a.ndim <= 2 and 1 <= b.ndim <= 2) or a.shape[-1] != b.shape[0]:
            shown = f"{a.str_short()} and {b.str_short()}"
            raise TypeError(f"dot: {shown} are not vectors or matrices that can be multiplied")
        dimension_numbers = (((a.ndim - 1,), (0,)), ((), ()))
    return place("dot", dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type), out_sharding)


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Any:
    """Multiply two stacks of matrices, with stacks of one shape: `(..., m, k)` by `(..., k, n)`.

    Raises:
        TypeError: an operand has fewer than two axes, or the shapes do not match.
    """
    a, b = get_aval(lhs), get_aval(rhs)
    if min(a.ndim, b.ndim) < 2 or a.ndim != b.ndim:
        raise TypeError(
            f"batch_matmul: operands must have the same rank, at least 2, got {a.str_short()} and {b.str_short()}"
        )
    batch = tuple(range(a.ndim - 2))
    return dot_general(lhs, rhs, (((a.ndim - 1,), (b.ndim - 2,)), (batch, batch)), precision)


def _check_contraction(name: str, a: ShapedArray, b: ShapedArray, axis: int) -> None:
    if a.shape[-1] != b.shape[axis]:
        raise TypeError(
            f"{name}: the last axis of {a.str_short()} has size {a.shape[-1]}, axis {axis} of {b.str_short()} "
            f"has size {b.shape[axis]}; they have to be equal"
        )


def matmul(x: Any, y: Any, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Multiply matrices in the last two axes, as `numpy.matmul`; leading axes broadcast.

    Raises:
        ValueError: an operand is a scalar, or the leading axes do not broadcast.
        TypeError: the contracted sizes differ.
    """
    if type(x) in PYTHON_SCALARS or type(y) in PYTHON_SCALARS or not x.ndim or not y.ndim:
        raise ValueError("matmul: operands must have at least one axis; use * to multiply by a scalar")
    x, y = promote_dtypes(x, y, name="matmul")
    _check_contraction("matmul", x.aval, y.aval, max(y.ndim - 2, 0))
    dtype = x.aval.dtype if preferred_element_type is None else dtypes.dtype(preferred_element_type)
    precision = canonical_precision(precision)
    last, inner = (x.ndim - 1,), (max(y.ndim - 2, 0),)
    if y.ndim <= 2:  # the leading axes of `x` stay where they are
        return _bind(x, y, ((last, inner), ((), ())), precision, dtype)
    if x.ndim <= 2:
        out = _bind(x, y, ((last, inner), ((), ())), precision, dtype)
        return moveaxis(out, 0, out.ndim - 2) if x.ndim == 2 else out
    return _stacked_matmul(x, y, precision, dtype)


def _stacked_matmul(x: Any, y: Any, precision: Any, dtype: Any) -> Any:
    try:
        shape = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        shown = f"{x.aval.str_short()} and {y.aval.str_short()}"
        raise ValueError(f"matmul: the leading axes of {shown} do not broadcast together") from None
    x = broadcast_to(x, (*shape, *x.shape[-2:]))
    y = broadcast_to(y, (*shape, *y.shape[-2:]))
    batch = tuple(range(len(shape)))
    return dot_general(x, y, (((x.ndim - 1,), (y.ndim - 2,)), (batch, batch)), precision, dtype)
