"""`select_and_scatter_p`: values scattered to the element of each window that a comparison selects.

    select_and_scatter : (a[*s], a[*w], a[]) -> a[*s]        operand, source, initial value

In each window of the operand, the program `select_jaxpr` decides for two elements whether the first is kept. The
source's element for the window is combined into the result at the selected element, by the program `scatter_jaxpr`.
Source: StableHLO, `select_and_scatter`.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    Primitive,
    ShapedArray,
    dtypes,
    get_aval,
    jvp_flat,
    jvp_rules,
    move_batch_axis,
    vmap_rules,
)
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import Ints
from corejax_lax_basic._base.type_rules import check_equal_dtypes
from corejax_lax_basic.creation.filled import full_like
from corejax_lax_basic.elementwise.comparison import eq
from corejax_lax_basic.elementwise.logical import bitwise_and, bitwise_not, bitwise_or
from corejax_lax_basic.elementwise.select import select as lax_select
from corejax_lax_basic.reductions._program import combined, refuse_effects
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim
from corejax_lax_basic.shape.slicing import pad, slice
from corejax_lax_basic.windows.geometry import Pads, windowed_shape, with_axis

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
        raise ValueError(f"{name}: padding must be nonnegative, got {padding}")
    scalar = ShapedArray((), operand.dtype)
    for argument, program, dtype in (
        ("select_jaxpr", select_jaxpr, dtypes.bool_),
        ("scatter_jaxpr", scatter_jaxpr, operand.dtype),
    ):
        refuse_effects(name, program)
        out = ShapedArray((), dtype)
        if list(program.in_avals) != [scalar, scalar] or [a.strip_weak_type() for a in program.out_avals] != [out]:
            raise TypeError(
                f"{name}: {argument} must take two scalars {scalar.str_short()} and return {out.str_short()}"
            )
    return ShapedArray(operand.shape, operand.dtype)


select_and_scatter_p = Primitive(
    "select_and_scatter",
    tags=("higher_order",),
    abstract_eval=_abstract_eval,
    doc="Scatter values to the element of each window that a program selects; another program combines them.",
)


@vmap_rules.register(select_and_scatter_p)
def _vmap(axis_size: int, vals: Any, dims: Any, **params: Any) -> Any:
    (operand, source, initial), (d_operand, d_source, d_initial) = vals, dims
    if d_initial is not None:
        return vmap_rules.derived(select_and_scatter_p)(axis_size, vals, dims, **params)
    operand = move_batch_axis(axis_size, d_operand, 0, operand)
    source = move_batch_axis(axis_size, d_source, 0, source)
    return select_and_scatter_p.bind(operand, source, initial, **with_axis(params, 0)), 0


# -- derivatives -------------------------------------------------------------------------------------------------


def _by_places(select: ClosedJaxpr, scatter: ClosedJaxpr, params: dict[str, Any], *operands: Any) -> list[Any]:
    """Compute the primitive by elementwise operations for each position in a window, which are differentiable."""
    operand, source, initial = operands
    padding, window, strides = params["padding"], params["window_dimensions"], params["window_strides"]
    config = [(low, high, 0) for low, high in padding]
    outside = pad(full_like(operand, 0, dtypes.bool_), np.True_, config)
    operand = pad(operand, initial, config)
    counts = get_aval(source).shape

    def at_place(x: Any, place: Ints) -> Any:
        ends = [k + (n - 1) * s + 1 for k, n, s in zip(place, counts, strides, strict=True)]
        return slice(x, place, ends, strides)

    places = list(itertools.product(*map(range, window)))
    best, chosen, all_padding = (
        at_place(operand, places[0]),
        full_like(source, 0, np.int32),
        at_place(outside, places[0]),
    )
    for k, place in enumerate(places[1:], 1):
        candidate, void = at_place(operand, place), at_place(outside, place)
        keep = bitwise_or(combined(select, [best], [candidate])[0], void)  # padding is never selected
        keep = bitwise_and(keep, bitwise_not(all_padding))
        best, chosen = lax_select(keep, best, candidate), lax_select(keep, chosen, full_like(chosen, k))
        all_padding = bitwise_and(all_padding, void)
    out = broadcast_in_dim(initial, get_aval(operand).shape, ())
    zero, false = np.zeros((), get_aval(source).dtype)[()], np.False_
    for k, place in enumerate(places):
        config_of_place = [
            (a, size - (a + (n - 1) * s + 1), s - 1)
            for a, n, s, size in zip(place, counts, strides, get_aval(operand).shape, strict=True)
        ]
        is_chosen = pad(eq(chosen, full_like(chosen, k)), false, config_of_place)
        out = lax_select(is_chosen, combined(scatter, [out], [pad(source, zero, config_of_place)])[0], out)
    return [pad(out, zero, [(-low, -high, 0) for low, high in padding])]


def _jvp(
    primals: Any, tangents: Any, *, select_jaxpr: ClosedJaxpr, scatter_jaxpr: ClosedJaxpr, **params: Any
) -> tuple[Any, Any]:
    if not get_aval(primals[0]).size or not get_aval(primals[1]).size:
        initial, t = primals[2], tangents[2]
        shape = get_aval(primals[0]).shape
        return broadcast_in_dim(initial, shape, ()), None if t is None else broadcast_in_dim(t, shape, ())
    outs, ts = jvp_flat(lambda *xs: _by_places(select_jaxpr, scatter_jaxpr, params, *xs), primals, tangents)
    return outs[0], ts[0]


jvp_rules.register(select_and_scatter_p, _jvp, symbolic_zeros=True)
