"""`scaled_dot`: a product of narrow operands with a scale for each block of contracted elements."""

from __future__ import annotations

from typing import Any

from corejax.extend import Primitive, ShapedArray, abstract_eval_rules, defjvp, dtypes, get_aval, nondifferentiable
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.type_rules import REAL, check_kind, position
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.creation.filled import full
from corejax_lax_basic.elementwise.arithmetic import mul
from corejax_lax_basic.linear.dot import canonical_numbers, dot_general, dot_general_p
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim
from corejax_lax_basic.shape.rearranging import reshape

__all__ = ["scaled_dot", "scaled_dot_p"]

_WORKING = dtypes.dtype("bfloat16")


def scaled_dot(
    lhs: Any,
    rhs: Any,
    *,
    lhs_scale: Any = None,
    rhs_scale: Any = None,
    dimension_numbers: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Multiply `lhs * lhs_scale` by `rhs * rhs_scale` in bfloat16.

    Args:
        lhs: first operand, float8 often.
        rhs: second operand, of the rank of `lhs`.
        lhs_scale: scales of `lhs`; each element scales a block. It has the shape of `lhs`, except that contracted axes
            are shorter by a factor of at least 2. None is 1.
        rhs_scale: scales of `rhs`, as `lhs_scale`.
        dimension_numbers: as in `dot_general`; by default the matrices in the last two axes are multiplied.
        preferred_element_type: dtype of sums and result, bfloat16 by default.

    Raises:
        TypeError: the shapes do not fit.
    """
    ndim = get_aval(lhs).ndim
    if dimension_numbers is None:
        if ndim < 2:
            raise TypeError(f"scaled_dot: operands must have at least two axes, got {get_aval(lhs).str_short()}")
        batch = tuple(range(ndim - 2))
        dimension_numbers = (((ndim - 1,), (ndim - 2,)), (batch, batch))
    numbers = canonical_numbers("scaled_dot", dimension_numbers)
    preferred = _WORKING if preferred_element_type is None else dtypes.canonicalize_dtype(preferred_element_type)
    return scaled_dot_p.bind(
        lhs,
        rhs,
        _ones_for(lhs, numbers[0][0]) if lhs_scale is None else lhs_scale,
        _ones_for(rhs, numbers[0][1]) if rhs_scale is None else rhs_scale,
        dimension_numbers=numbers,
        preferred_element_type=preferred,
    )


def _ones_for(operand: Any, contract: tuple[int, ...]) -> Any:
    shape = tuple(1 if d in contract else n for d, n in enumerate(get_aval(operand).shape))
    return full(shape, 1, "float8_e8m0fnu")


def _scaled(operand: Any, scale: Any) -> Any:
    """Multiply an operand by its scales, each of which belongs to a block."""
    shape, sizes = get_aval(operand).shape, get_aval(scale).shape
    scale = convert_element_type(scale, _WORKING)
    blocks = tuple(d for n, size in zip(shape, sizes, strict=True) for d in ((size, n // size) if size else (0, 1)))
    spread = broadcast_in_dim(scale, blocks, tuple(range(0, 2 * len(shape), 2)))
    return mul(convert_element_type(operand, _WORKING), reshape(spread, shape))


def _decomposition(
    lhs: Any, rhs: Any, lhs_scale: Any, rhs_scale: Any, *, dimension_numbers: Any, preferred_element_type: Any
) -> Any:
    x, y = _scaled(lhs, lhs_scale), _scaled(rhs, rhs_scale)
    return dot_general(x, y, dimension_numbers, preferred_element_type=preferred_element_type)


scaled_dot_p = Primitive(
    "scaled_dot",
    decomposition=_decomposition,
    doc="Multiply operands with a scale for each block of contracted elements.",
)
defjvp(scaled_dot_p, *[nondifferentiable("operands and scales are rounded to bfloat16")] * 4)


def _check_scale(name: str, operand: ShapedArray, scale: ShapedArray, contract: tuple[int, ...]) -> None:
    what = f"scaled_dot: {name}_scale {scale.str_short()} of {name} {operand.str_short()}"
    if scale.ndim != operand.ndim:
        raise TypeError(f"{what}: they must have the same rank")
    for d, (n, size) in enumerate(zip(operand.shape, scale.shape, strict=True)):
        if d not in contract and n != size:
            raise TypeError(f"{what}: axis {d} is not contracted, so its sizes must be equal")
        if d in contract and n and (size == 0 or n % size or n // size < 2):
            raise TypeError(f"{what}: contracted axis {d} must have a scale for each block of at least 2 elements")


@abstract_eval_rules.register(scaled_dot_p)
@takes("scaled_dot", 4)
def _abstract_eval(
    lhs: ShapedArray,
    rhs: ShapedArray,
    lhs_scale: ShapedArray,
    rhs_scale: ShapedArray,
    *,
    dimension_numbers: Any,
    preferred_element_type: Any,
) -> ShapedArray:
    for i, aval in enumerate((lhs, rhs, lhs_scale, rhs_scale)):
        check_kind("scaled_dot", aval, REAL, position(i))
    if lhs.ndim != rhs.ndim:
        raise TypeError(
            f"scaled_dot: operands must have the same rank, got lhs {lhs.str_short()} and rhs {rhs.str_short()}"
        )
    (lhs_contract, rhs_contract), _ = dimension_numbers
    params = {"dimension_numbers": dimension_numbers, "preferred_element_type": preferred_element_type}
    avals = tuple(ShapedArray(x.shape, _WORKING) for x in (lhs, rhs))
    out = dot_general_p.abstract(avals, params)[0]
    _check_scale("lhs", lhs, lhs_scale, lhs_contract)
    _check_scale("rhs", rhs, rhs_scale, rhs_contract)
    return out
