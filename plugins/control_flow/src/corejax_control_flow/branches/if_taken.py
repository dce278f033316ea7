"""`if_taken`: a guard on an operand of a branch that runs for all elements of a batch but is taken for some.

    if_taken : a[n, ...] -> bool[n] -> a[n, ...]        linear in the first

The value is the first operand. Its cotangent is set to 0 for the elements that do not take the branch. Their results
are not selected, so their cotangent is 0 already; but 0 times an infinite derivative (a square root's at 0) is NaN,
and the guard replaces this NaN by 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import (
    Primitive,
    ShapedArray,
    jvp_rules,
    move_batch_axis,
    transpose_rules,
    vmap_rules,
    zeros_like,
)


def _abstract_eval(x: ShapedArray, taken: ShapedArray) -> ShapedArray:
    if taken.dtype != bool or x.shape[: taken.ndim] != taken.shape:
        raise TypeError(f"if_taken needs booleans for the leading axes of {x.str_short()}, got {taken.str_short()}")
    return x


if_taken_p = Primitive(
    "if_taken",
    impl=lambda x, taken: x,
    abstract_eval=_abstract_eval,
    decomposition=lambda x, taken: x,
    linear_in=(0,),
    doc="Return the first operand. Its cotangent is 0 for the elements for which the second operand is False.",
)


@jvp_rules.register(if_taken_p, symbolic_zeros=True)
def if_taken_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Guard the tangent as well: the transpose of this guard zeroes the cotangent."""
    x, taken = primals
    return if_taken_p.bind(x, taken), if_taken_p.bind(tangents[0], taken)


@transpose_rules.register(if_taken_p)
def if_taken_transpose(ct: Any, x: Any, taken: Any) -> list[Any]:
    """Return the cotangent for the elements that take the branch, and 0 for the others."""
    from corejax_lax_basic import lax

    return [lax.choose(taken, zeros_like(ct), ct), None]


@vmap_rules.register(if_taken_p)
def if_taken_vmap(axis_size: int, vals: Sequence[Any], dims: Sequence[Any]) -> tuple[Any, int]:
    """Move the batch axis of both operands to the front."""
    return if_taken_p.bind(*(move_batch_axis(axis_size, d, 0, x) for x, d in zip(vals, dims, strict=True))), 0
