"""Sums, maxima and minima of windows: reduce_window_sum_p reduce_window_max_p reduce_window_min_p.

    reduce_window_sum : a[*s] -> a[*(s - window + 1)]        without strides, padding, dilation

Padding is the operation's neutral element. Dtype and weak type are the operand's. The primitives take params in their
canonical form; users call `general.reduce_window`. Source: StableHLO, `reduce_window`.
"""

from __future__ import annotations

from typing import Any

from corejax.extend import Primitive, ShapedArray, defjvp, deflinear, get_aval, impl_rules, vmap_rules
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import Ints
from corejax_lax_basic._base.type_rules import NUMERIC, ORDERED, Kinds, check_kind
from corejax_lax_basic.reductions._family import ADD, MAXIMUM, MINIMUM, Fold
from corejax_lax_basic.windows._on_host import has_small_windows, padded, reduce_windows
from corejax_lax_basic.windows.geometry import (
    Pads,
    dilated_shape,
    transposed_pads,
    windowed_shape,
    with_axis,
)
from corejax_lax_basic.windows.selection import select_and_gather_add_p

__all__ = ["reduce_window_max_p", "reduce_window_min_p", "reduce_window_sum_p"]


WINDOWED: dict[Primitive, Fold] = {}  # for translations


def _windowed(name: str, fold: Fold, accepts: Kinds, doc: str, linear_in: Ints = ()) -> Primitive:
    """Define the primitive of a reduction over windows, with all rules but its derivative."""

    def impl(x: Any, neutral: Any, *, padding: Pads, base_dilation: Ints, **params: Any) -> Any:
        x = padded(x, neutral(), padding, base_dilation)
        return reduce_windows(
            x, fold.ufunc, params["window_dimensions"], params["window_strides"], params["window_dilation"]
        )

    @takes(name, 1)
    def abstract_eval(x: ShapedArray, **params: Any) -> ShapedArray:
        check_kind(name, x, accepts)
        return ShapedArray(windowed_shape(name, x, **params), x.dtype, x.weak_type)

    def vmap(axis_size: int, vals: Any, dims: Any, **params: Any) -> Any:
        return primitive.bind(vals[0], **with_axis(params, dims[0])), dims[0]

    primitive = Primitive(name, abstract_eval=abstract_eval, linear_in=linear_in, doc=doc)
    impl_rules.register(primitive, fold.on_host(impl), large=has_small_windows)
    vmap.__name__ = f"{name}_vmap"
    vmap_rules.register(primitive, vmap)
    WINDOWED[primitive] = fold
    return primitive


reduce_window_sum_p = _windowed(
    "reduce_window_sum",
    ADD,
    NUMERIC,
    "Sum the elements of each window; integer, floating-point or complex.",
    linear_in=(0,),
)
reduce_window_max_p = _windowed(
    "reduce_window_max",
    MAXIMUM,
    ORDERED,
    "Return the maximum of each window, NaN if it has a NaN; boolean, integer or floating-point.",
)
reduce_window_min_p = _windowed(
    "reduce_window_min",
    MINIMUM,
    ORDERED,
    "Return the minimum of each window, NaN if it has a NaN; boolean, integer or floating-point.",
)


# -- derivatives -------------------------------------------------------------------------------------------------


def _sum_transpose(
    ct: Any,
    x: Any,
    *,
    window_dimensions: Ints,
    window_strides: Ints,
    padding: Pads,
    base_dilation: Ints,
    window_dilation: Ints,
) -> list[Any]:
    """Sum the cotangents of the windows that contained an element; strides become dilation and dilation strides."""
    if not get_aval(ct).size:
        return [None]
    pads = transposed_pads(
        dilated_shape(x.aval.shape, base_dilation),
        dilated_shape(window_dimensions, window_dilation),
        dilated_shape(get_aval(ct).shape, window_strides),
        padding,
    )
    return [
        reduce_window_sum_p.bind(
            ct,
            window_dimensions=window_dimensions,
            window_strides=base_dilation,
            padding=pads,
            base_dilation=window_strides,
            window_dilation=window_dilation,
        )
    ]


deflinear(reduce_window_sum_p, _sum_transpose)
defjvp(reduce_window_max_p, lambda t, x, **params: select_and_gather_add_p.bind(t, x, select="ge", **params))
defjvp(reduce_window_min_p, lambda t, x, **params: select_and_gather_add_p.bind(t, x, select="le", **params))
