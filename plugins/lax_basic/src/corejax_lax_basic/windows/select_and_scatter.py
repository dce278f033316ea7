"""`select_and_scatter_p`: values scattered to where any comparison selects an element of each window.

    select_and_scatter : (a[*s], a[*w], a[]) -> a[*s]        operand, source, initial value

For each window of the operand, the program `select_jaxpr` says of two elements whether the first is kept; the source's
element for that window is combined into the result there, by the program `scatter_jaxpr`. Source: StableHLO,
`select_and_scatter`.
"""

from __future__ import annotations

from typing import Any

from corejax.extend import ClosedJaxpr, Primitive, ShapedArray, dtypes, move_batch_axis, vmap_rules
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.type_rules import check_equal_dtypes
from corejax_lax_basic.reductions._program import refuse_effects
from corejax_lax_basic.windows.geometry import Ints, Pads, windowed_shape, with_axis

__all__ = ["select_and_scatter_p"]


@takes("select_and_scatter", 3)
def _abstract_eval(
    operand: ShapedArray,
    source: ShapedArray,
    initial: ShapedArray,
    *,
    select_jaxpr: ClosedJaxpr,
    scatter_jaxpr: ClosedJaxpr,
    window_dimensions: Ints,
    window_strides: Ints,
    padding: Pads,
) -> ShapedArray:
    name = "select_and_scatter"
    check_equal_dtypes(name, (operand, source, initial))
    ones = (1,) * operand.ndim
    windows = windowed_shape(name, operand, window_dimensions, window_strides, padding, ones, ones)
    if source.shape != windows or initial.ndim:
        raise TypeError(
            f"{name}: operand {operand.str_short()} has windows {windows}; the source has to be of that shape and the "
            f"initial value a scalar, got {source.str_short()} and {initial.str_short()}"
        )
    if any(low < 0 or high < 0 for low, high in padding):
        raise ValueError(f"{name}: padding is not negative, got {padding}")
    scalar = ShapedArray((), operand.dtype)
    for argument, program, dtype in (
        ("select_jaxpr", select_jaxpr, dtypes.bool_),
        ("scatter_jaxpr", scatter_jaxpr, operand.dtype),
    ):
        refuse_effects(name, program)
        out = ShapedArray((), dtype)
        if list(program.in_avals) != [scalar, scalar] or [a.strip_weak_type() for a in program.out_avals] != [out]:
            raise TypeError(f"{name}: {argument} takes two scalars {scalar.str_short()} and gives {out.str_short()}")
    return ShapedArray(operand.shape, operand.dtype)


select_and_scatter_p = Primitive(
    "select_and_scatter",
    tags=("higher_order",),
    abstract_eval=_abstract_eval,
    doc="Values scattered to where a program selects an element of each window, combined by another.",
)


@vmap_rules.register(select_and_scatter_p)
def _vmap(axis_size: int, vals: Any, dims: Any, **params: Any) -> Any:
    (operand, source, initial), (d_operand, d_source, d_initial) = vals, dims
    if d_initial is not None:
        return vmap_rules.derived(select_and_scatter_p)(axis_size, vals, dims, **params)
    operand = move_batch_axis(axis_size, d_operand, 0, operand)
    source = move_batch_axis(axis_size, d_source, 0, source)
    return select_and_scatter_p.bind(operand, source, initial, **with_axis(params, 0)), 0
