"""`concatenate`: arrays joined along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    Primitive,
    ShapedArray,
    as_array,
    deflinear,
    get_aval,
    impl_rules,
    is_undef_primal,
    move_batch_axis,
)
from corejax.extend.speed import HostCode
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import canonical_axis, integer, sequence
from corejax_lax_basic.shape.slicing import slice_p

__all__ = ["concatenate", "concatenate_p"]


def concatenate(operands: Sequence[Any], dimension: int) -> Any:
    """Arrays joined along an existing axis.

    Args:
        operands: arrays of one dtype whose shapes differ at most in that axis.
        dimension: the axis.

    Raises:
        ValueError: there is no operand.
        TypeError: dtypes, ranks or other axes' sizes differ, or the axis does not exist.
    """
    operands = sequence(operands, "concatenate: operands")
    if not operands:
        raise ValueError("concatenate needs at least one operand, got none")
    if len(operands) == 1:
        canonical_axis(dimension, get_aval(operands[0]).ndim, "concatenate: dimension")
        return as_array(operands[0])
    return concatenate_p.bind(*operands, dimension=integer(dimension, "concatenate: dimension"))


@takes("concatenate", 1, at_least=True)
def _concatenate_abstract_eval(*avals: ShapedArray, dimension: int) -> ShapedArray:
    first = avals[0]
    shown = ", ".join(a.str_short() for a in avals[:8]) + (", ..." if len(avals) > 8 else "")
    if not 0 <= dimension < first.ndim:
        raise TypeError(f"concatenate: dimension {dimension} is not an axis of the operands {shown}")
    for i, aval in enumerate(avals):
        if aval.dtype != first.dtype:
            raise TypeError(
                f"concatenate: operands have one dtype; operand 0 is {first.str_short()}, "
                f"operand {i} is {aval.str_short()}"
            )
        if aval.ndim != first.ndim or any(
            a != b for d, (a, b) in enumerate(zip(aval.shape, first.shape, strict=True)) if d != dimension
        ):
            raise TypeError(
                f"concatenate: shapes may differ in dimension {dimension} only; operand 0 is {first.str_short()}, "
                f"operand {i} is {aval.str_short()}"
            )
    size = sum(a.shape[dimension] for a in avals)
    shape = (*first.shape[:dimension], size, *first.shape[dimension + 1 :])
    return ShapedArray(shape, first.dtype, all(a.weak_type for a in avals))


def _concatenate_transpose(ct: Any, *operands: Any, dimension: int) -> list[Any]:
    shape = get_aval(ct).shape
    cts: list[Any] = []
    start = 0
    for x in operands:
        size = (x.aval if is_undef_primal(x) else get_aval(x)).shape[dimension]
        if is_undef_primal(x):
            begin, end = [0] * len(shape), list(shape)
            begin[dimension], end[dimension] = start, start + size
            cts.append(slice_p.bind(ct, start_indices=tuple(begin), limit_indices=tuple(end), strides=None))
        else:
            cts.append(None)
        start += size
    return cts


def _concatenate_vmap(axis_size: int, vals: Any, dims: Any, *, dimension: int) -> Any:
    moved = [move_batch_axis(axis_size, d, 0, x) for x, d in zip(vals, dims, strict=True)]
    return concatenate_p.bind(*moved, dimension=dimension + 1), 0


def _concatenate_prepared(avals: Any, *, dimension: int) -> HostCode:
    operands = "".join(f"{{{i}}}, " for i in range(len(avals)))
    return HostCode(f"{{out}} = {{concatenate}}(({operands}), {dimension})", concatenate=np.concatenate)


concatenate_p = Primitive(
    "concatenate",
    tags=("linear", "structural"),
    abstract_eval=_concatenate_abstract_eval,
    vmap=_concatenate_vmap,
    doc="Arrays joined along an axis.",
)
impl_rules.register(
    concatenate_p, lambda *xs, dimension: np.concatenate(xs, axis=dimension), prepared=_concatenate_prepared
)
deflinear(concatenate_p, _concatenate_transpose)
