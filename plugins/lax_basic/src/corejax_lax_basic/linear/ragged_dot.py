"""`ragged_dot_general`: products in groups of unequal sizes along an axis; the sizes are data.

    group_sizes : i32[g]    lengths of g consecutive runs along the axis; elements after the last run count as zero

By the role of the ragged axis in the first operand (m free, k contracted, b batch):

    free        [b,m,k], [g,b,k,n] -> [b,m,n]      the rows of a group are multiplied by the group's matrix
    contracted  [b,m,k], [b,k,n]   -> [g,b,m,n]    the sums over a group are a matrix of the result
    batch       [b,m,k], [b,k,n]   -> [b,m,n]      as `dot_general`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, abstract_eval_rules, dtypes, get_aval
from corejax.extend.programs import register_param_type
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import Ints
from corejax_lax_basic._base.placing import place
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.creation.filled import full_like
from corejax_lax_basic.creation.iota import broadcasted_iota
from corejax_lax_basic.elementwise.arithmetic import sub
from corejax_lax_basic.elementwise.comparison import ge, lt
from corejax_lax_basic.elementwise.logical import bitwise_and
from corejax_lax_basic.elementwise.select import select
from corejax_lax_basic.linear.dot import canonical_numbers, dot_general, dot_general_p, product_dtype
from corejax_lax_basic.linear.precision import canonical_precision
from corejax_lax_basic.reductions.cumulative import cumsum
from corejax_lax_basic.shape.broadcasting import broadcast, broadcast_in_dim
from corejax_lax_basic.shape.rearranging import transpose

__all__ = ["RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general", "ragged_dot_general_p"]


@register_param_type
@dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """The axes of a ragged product.

    Attributes:
        dot_dimension_numbers: contracted and batch axes, as in `dot_general`.
        lhs_ragged_dimensions: the one ragged axis of the first operand.
        rhs_group_dimensions: the axis of the second operand that counts groups, if the ragged axis is free; else empty.
    """

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]

    def __post_init__(self) -> None:
        numbers = canonical_numbers("RaggedDotDimensionNumbers", self.dot_dimension_numbers)
        object.__setattr__(self, "dot_dimension_numbers", numbers)
        object.__setattr__(self, "lhs_ragged_dimensions", tuple(self.lhs_ragged_dimensions))
        object.__setattr__(self, "rhs_group_dimensions", tuple(self.rhs_group_dimensions))


_MATRICES = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Multiply each row of a matrix by the matrix of the row's group.

    Args:
        lhs: the rows, `(m, k)`.
        rhs: a matrix for each group, `(g, k, n)`.
        group_sizes: the number of rows of each group, integers `(g,)`.
        precision: as in `dot_general`.
        preferred_element_type: as in `dot_general`.
        group_offset: not implemented, in JAX neither.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Returns:
        An array `(m, n)`; rows after the last group are zero.

    Raises:
        TypeError: the shapes do not fit, or the sizes are not integers.
        NotImplementedError: `group_offset` is not None.
    """
    out = ragged_dot_general(lhs, rhs, group_sizes, _MATRICES, precision, preferred_element_type, group_offset)
    return place("ragged_dot", out, out_sharding)


def ragged_dot_general(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Multiply in groups of unequal sizes along an axis of the first operand.

    If the ragged axis is free in `lhs`, the rows of a group are multiplied by the group's matrix; if it is contracted,
    the sums over each group are a matrix of the result; if it is a batch axis, the product is that of `dot_general`.

    Args:
        lhs: first operand.
        rhs: second operand.
        group_sizes: integers `(g,)`, or with leading axes: the batch axes of `lhs`, then the free (or contracted) axes
            before the ragged one.
        ragged_dot_dimension_numbers: the roles of the axes.
        precision: as in `dot_general`.
        preferred_element_type: as in `dot_general`.
        group_offset: not implemented, in JAX neither.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: the shapes do not fit, or the sizes are not integers.
        NotImplementedError: `group_offset` is not None.
    """
    if group_offset is not None:
        raise NotImplementedError("ragged_dot_general: group_offset is not implemented")
    if not isinstance(ragged_dot_dimension_numbers, RaggedDotDimensionNumbers):
        raise TypeError(
            "ragged_dot_general: ragged_dot_dimension_numbers must be RaggedDotDimensionNumbers, got "
            f"{ragged_dot_dimension_numbers!r}"
        )
    if preferred_element_type is None:
        preferred = product_dtype("ragged_dot_general", get_aval(lhs), get_aval(rhs))
    else:
        preferred = dtypes.canonicalize_dtype(preferred_element_type)
    out = ragged_dot_general_p.bind(
        lhs,
        rhs,
        group_sizes,
        ragged_dot_dimension_numbers=ragged_dot_dimension_numbers,
        precision=canonical_precision(precision),
        preferred_element_type=preferred,
    )
    return place("ragged_dot_general", out, out_sharding)


# -- axes --------------------------------------------------------------------------------------------------------


def _mode(numbers: RaggedDotDimensionNumbers) -> str:
    (contract, _), (batch, _) = numbers.dot_dimension_numbers
    (ragged,) = numbers.lhs_ragged_dimensions
    return "contracted" if ragged in contract else "batch" if ragged in batch else "free"


def _prefix(mode: str, ndim: int, ragged: int, batch: Ints, contract: Ints) -> Ints:
    """Return the axes along which group sizes may vary: batch axes, and axes of the ragged axis' kind before it."""
    if mode == "batch":
        return batch[: batch.index(ragged)]
    kind = contract if mode == "contracted" else tuple(d for d in range(ndim) if d not in (*batch, *contract))
    return (*batch, *kind[: kind.index(ragged)])


def _check(lhs: ShapedArray, rhs: ShapedArray, sizes: ShapedArray, numbers: RaggedDotDimensionNumbers) -> None:
    name = "ragged_dot_general"
    ragged = numbers.lhs_ragged_dimensions
    if len(ragged) != 1:
        raise TypeError(f"{name} expects exactly one lhs ragged dimension, got lhs_ragged_dimensions {ragged}")
    if not 0 <= ragged[0] < lhs.ndim:
        raise TypeError(f"{name}: lhs_ragged_dimensions must be one axis of lhs {lhs.str_short()}, got {ragged}")
    if not dtypes.is_integer(sizes.dtype) or not sizes.ndim:
        raise TypeError(f"{name}: group_sizes must be integers along an axis, got {sizes.str_short()}")
    mode = _mode(numbers)
    (contract, rhs_contract), (batch, rhs_batch) = numbers.dot_dimension_numbers
    expected = (*(lhs.shape[d] for d in _prefix(mode, lhs.ndim, ragged[0], batch, contract)), sizes.shape[-1])
    if sizes.ndim > 1 and sizes.shape != expected:
        raise TypeError(f"{name}: expected group_sizes to have shape {expected}, got {sizes.shape}; or a vector")
    groups = numbers.rhs_group_dimensions
    if len(groups) != (mode == "free"):
        wanted = "exactly one rhs group dimension" if mode == "free" else "zero group dimensions in the rhs"
        kind = "noncontracting" if mode == "free" else "contracting or batch"
        raise TypeError(
            f"{name} requires {wanted} when lhs ragged dimension is {kind}, got rhs_group_dimensions {groups}"
        )
    if not groups:
        return
    if not 0 <= groups[0] < rhs.ndim or groups[0] in (*rhs_contract, *rhs_batch):
        raise TypeError(
            f"{name} requires rhs group dimension numbers to be distinct from contracting and batch dimensions of "
            f"rhs {rhs.str_short()}, got {groups}"
        )
    if rhs.shape[groups[0]] != sizes.shape[-1]:
        raise TypeError(
            f"{name}: expected rhs group dimension size to be {sizes.shape[-1]}, got {rhs.shape[groups[0]]}: "
            f"that of axis {groups[0]} of rhs {rhs.str_short()}"
        )


# -- the primitive -----------------------------------------------------------------------------------------------


def _expanded(x: Any, axis: int, sizes: Any, prefix: Ints) -> Any:
    """Return a copy of `x` for each group, zero outside of the group; `sizes` has the axes `prefix`, then groups."""
    if get_aval(sizes).dtype.itemsize < 4:
        sizes = convert_element_type(sizes, np.int32)
    ends = cumsum(sizes, get_aval(sizes).ndim - 1)
    shape = (get_aval(sizes).shape[-1], *get_aval(x).shape)
    order = sorted(range(len(prefix)), key=prefix.__getitem__)
    dims = (0, *(prefix[i] + 1 for i in order))

    def spread(bounds: Any) -> Any:
        return broadcast_in_dim(transpose(bounds, (len(prefix), *order)), shape, dims)

    place = broadcasted_iota(get_aval(sizes).dtype, shape, axis + 1)
    inside = bitwise_and(ge(place, spread(sub(ends, sizes))), lt(place, spread(ends)))
    copies = broadcast_in_dim(x, shape, tuple(range(1, len(shape))))
    return select(inside, copies, full_like(copies, 0))


def _decomposition(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    *,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any,
    preferred_element_type: Any,
) -> Any:
    numbers = ragged_dot_dimension_numbers
    (contract, rhs_contract), (batch, rhs_batch) = numbers.dot_dimension_numbers
    mode, (ragged,) = _mode(numbers), numbers.lhs_ragged_dimensions
    if mode == "batch":
        return dot_general(lhs, rhs, numbers.dot_dimension_numbers, precision, preferred_element_type)
    prefix = _prefix(mode, get_aval(lhs).ndim, ragged, batch, contract)
    if get_aval(group_sizes).ndim == 1:
        group_sizes = broadcast(group_sizes, tuple(get_aval(lhs).shape[d] for d in prefix))
    lhs = _expanded(lhs, ragged, group_sizes, prefix)
    contract, batch = (tuple(d + 1 for d in axes) for axes in (contract, batch))
    if mode == "free":
        (group,) = numbers.rhs_group_dimensions
        pairs = (((*contract, 0), (*rhs_contract, group)), (batch, rhs_batch))
        return dot_general(lhs, rhs, pairs, precision, preferred_element_type)
    other = rhs_contract[contract.index(ragged + 1)]
    rhs_prefix = _prefix(mode, get_aval(rhs).ndim, other, rhs_batch, rhs_contract)
    rhs = _expanded(rhs, other, group_sizes, rhs_prefix)
    rhs_contract, rhs_batch = (tuple(d + 1 for d in axes) for axes in (rhs_contract, rhs_batch))
    pairs = ((contract, rhs_contract), ((0, *batch), (0, *rhs_batch)))
    return dot_general(lhs, rhs, pairs, precision, preferred_element_type)


ragged_dot_general_p = Primitive(
    "ragged_dot_general",
    decomposition=_decomposition,
    doc="Multiply in groups of unequal sizes, which are data, along an axis of the first operand.",
)


@abstract_eval_rules.register(ragged_dot_general_p)
@takes("ragged_dot_general", 3)
def _abstract_eval(
    lhs: ShapedArray,
    rhs: ShapedArray,
    group_sizes: ShapedArray,
    *,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any,
    preferred_element_type: Any,
) -> ShapedArray:
    numbers = ragged_dot_dimension_numbers
    _check(lhs, rhs, group_sizes, numbers)
    pairs = numbers.dot_dimension_numbers
    if numbers.rhs_group_dimensions:  # contracted with the axis of groups that the first operand gets
        (contract, rhs_contract), batch = pairs
        lhs = lhs.update(shape=(*lhs.shape, group_sizes.shape[-1]))
        pairs = (((*contract, lhs.ndim - 1), (*rhs_contract, *numbers.rhs_group_dimensions)), batch)
    params = {"dimension_numbers": pairs, "preferred_element_type": preferred_element_type, "precision": precision}
    out = dot_general_p.abstract((lhs, rhs), params)[0]
    if _mode(numbers) == "contracted":
        return out.update(shape=(group_sizes.shape[-1], *out.shape))
    return out
