"""The element of an array at the maximum or minimum of each window of another array, and the transpose.

    select_and_gather_add  : (a[*s], b[*s]) -> a[*w]        from each window the element of `a` where `b` is extreme
    select_and_scatter_add : (a[*w], b[*s]) -> a[*s]        each element of `a` added where `b` is extreme in its window

`select` is "ge" for the maximum and "le" for the minimum; the first of equals is selected, or the first NaN, in
row-major order. Padding counts as the least (greatest) value; a value selected there is dropped. They are the
derivatives of maxima and minima of windows, linear in the first operand; the second operand only decides.
Source: StableHLO, `select_and_scatter`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, as_array, get_aval, move_batch_axis
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import Ints
from corejax_lax_basic._base.derivatives import linear_in
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS
from corejax_lax_basic._base.type_rules import REAL, check_equal_dtypes, check_kind
from corejax_lax_basic.reductions._family import greatest, least
from corejax_lax_basic.shape.rearranging import reshape
from corejax_lax_basic.shape.slicing import pad, slice
from corejax_lax_basic.windows._on_host import offsets, padded, selected
from corejax_lax_basic.windows.geometry import Pads, count_windows, windowed_shape, with_axis

__all__ = ["select_and_gather_add_p", "select_and_scatter_add_p"]


def worst(select: str, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the value of padding, to which every element is preferred."""
    return least(dtype) if select == "ge" else greatest(dtype)


def _check(name: str, values: ShapedArray, keys: ShapedArray, select: str) -> None:
    check_equal_dtypes(name, (values, keys))
    check_kind(name, keys, REAL, "second")
    if select not in ("ge", "le"):
        raise ValueError(f"{name}: select must be 'ge' or 'le', got {select!r}")


def _ones(params: dict[str, Any]) -> Ints:
    return (1,) * len(params["window_dimensions"])


# -- select_and_gather_add -----------------------------------------------------------------------------------------


def _gather_impl(
    values: Any,
    keys: Any,
    *,
    select: str,
    window_dimensions: Ints,
    window_strides: Ints,
    padding: Pads,
    base_dilation: Ints,
    window_dilation: Ints,
) -> Any:
    keys = padded(keys, worst(select, keys.dtype), padding, base_dilation)
    values = padded(values, np.zeros((), values.dtype), padding, base_dilation)
    windows = (window_dimensions, window_strides, window_dilation)
    places = selected(keys, *windows, select == "ge")
    out = np.zeros(places.shape, values.dtype)
    for k, there in enumerate(offsets(keys.shape, *windows)):
        np.copyto(out, values[there], where=places == k)
    return out


@takes("select_and_gather_add", 2)
def _gather_abstract_eval(values: ShapedArray, keys: ShapedArray, *, select: str, **params: Any) -> ShapedArray:
    name = "select_and_gather_add"
    _check(name, values, keys, select)
    if values.shape != keys.shape:
        raise TypeError(f"{name}: operands {values.str_short()} and {keys.str_short()} must have the same shape")
    return ShapedArray(windowed_shape(name, keys, **params), values.dtype, values.weak_type)


def _gather_transpose(ct: Any, values: Any, keys: Any, *, select: str, **params: Any) -> list[Any]:
    if not get_aval(ct).size:
        return [None, None]
    return [_scattered(ct, keys, select, **params), None]


def _scattered(
    ct: Any,
    keys: Any,
    select: str,
    window_dimensions: Ints,
    window_strides: Ints,
    padding: Pads,
    base_dilation: Ints,
    window_dilation: Ints,
) -> Any:
    """Scatter as `select_and_scatter_add` with dilation: of the array by padding, of windows by `_by_turns`."""
    ones = (1,) * len(padding)
    if base_dilation == ones and window_dilation == ones:
        return select_and_scatter_add_p.bind(
            ct,
            keys,
            select=select,
            window_dimensions=window_dimensions,
            window_strides=window_strides,
            padding=padding,
        )
    shape = get_aval(keys).shape
    config = [(low, high, d - 1) for (low, high), d in zip(padding, base_dilation, strict=True)]
    keys = pad(keys, as_array(worst(select, get_aval(keys).dtype)), config)
    out = _by_turns(ct, keys, select, window_dimensions, window_strides, window_dilation)
    config = [(-low, -high, 0) for low, high in padding]
    out = pad(out, as_array(np.zeros((), get_aval(ct).dtype)), config)
    return slice(out, (0,) * len(shape), get_aval(out).shape, base_dilation) if base_dilation != ones else out


def _by_turns(ct: Any, keys: Any, select: str, window: Ints, strides: Ints, dilation: Ints) -> Any:
    """Scatter with dilated windows: an axis is split into one of every d-th element and one of d residues."""
    padded_shape = get_aval(keys).shape
    turns = [-(-n // d) for n, d in zip(padded_shape, dilation, strict=True)]
    fill = [(0, m * d - n, 0) for m, d, n in zip(turns, dilation, padded_shape, strict=True)]
    keys = pad(keys, as_array(worst(select, get_aval(keys).dtype)), fill)
    both = [n for pair in zip(turns, dilation, strict=True) for n in pair]
    keys = reshape(keys, both)
    windows = [n for w in window for n in (w, 1)]
    counts = [count_windows(m, w, 1) for m, w in zip(turns, window, strict=True)]
    gaps = []
    for n, s, m, d in zip(get_aval(ct).shape, strides, counts, dilation, strict=True):
        gaps.append((0, m * d - ((n - 1) * s + 1), s - 1))
    ct = pad(ct, as_array(np.zeros((), get_aval(ct).dtype)), gaps)
    ct = reshape(ct, [n for pair in zip(counts, dilation, strict=True) for n in pair])
    out = select_and_scatter_add_p.bind(
        ct,
        keys,
        select=select,
        window_dimensions=tuple(windows),
        window_strides=(1,) * len(windows),
        padding=((0, 0),) * len(windows),
    )
    out = reshape(out, [m * d for m, d in zip(turns, dilation, strict=True)])
    return slice(out, (0,) * len(padded_shape), padded_shape)


# -- select_and_scatter_add ----------------------------------------------------------------------------------------


def _scatter_impl(
    source: Any, keys: Any, *, select: str, window_dimensions: Ints, window_strides: Ints, padding: Pads
) -> Any:
    ones = (1,) * len(padding)
    dtype = source.dtype
    if dtype in NARROW_FLOATS:  # several windows may select one element; their sum is computed in float32
        source, keys = source.astype(np.float32), keys.astype(np.float32)
    keys = padded(keys, worst(select, keys.dtype), padding, ones)
    places = selected(keys, window_dimensions, window_strides, ones, select == "ge")
    out = np.zeros(keys.shape, source.dtype)
    for k, there in enumerate(offsets(keys.shape, window_dimensions, window_strides, ones)):
        np.add(out[there], source, out=out[there], where=places == k)
    out = padded(out, out.dtype.type(0), tuple((-low, -high) for low, high in padding), ones)
    return out.astype(dtype, copy=False)


@takes("select_and_scatter_add", 2)
def _scatter_abstract_eval(source: ShapedArray, keys: ShapedArray, *, select: str, **params: Any) -> ShapedArray:
    name = "select_and_scatter_add"
    _check(name, source, keys, select)
    ones = _ones(params)
    windows = windowed_shape(name, keys, **params, base_dilation=ones, window_dilation=ones)
    if source.shape != windows:
        raise TypeError(
            f"{name}: source {source.str_short()} has to have an element for each window of {keys.str_short()}: "
            f"shape {windows}"
        )
    return ShapedArray(keys.shape, source.dtype, source.weak_type)


def _scatter_transpose(ct: Any, source: Any, keys: Any, **params: Any) -> list[Any]:
    ones = _ones(params)
    return [select_and_gather_add_p.bind(ct, keys, **params, base_dilation=ones, window_dilation=ones), None]


# -- both ----------------------------------------------------------------------------------------------------------


def _primitive(name: str, impl: Any, abstract_eval: Any, transpose: Any, doc: str) -> Primitive:
    def vmap(axis_size: int, vals: Any, dims: Any, **params: Any) -> Any:
        moved = [move_batch_axis(axis_size, d, 0, x) for x, d in zip(vals, dims, strict=True)]
        return primitive.bind(*moved, **with_axis(params, 0)), 0

    primitive = Primitive(
        name, linear_in=(0,), impl=impl, abstract_eval=abstract_eval, vmap=vmap, transpose=transpose, doc=doc
    )
    linear_in(primitive)
    return primitive


select_and_gather_add_p = _primitive(
    "select_and_gather_add",
    _gather_impl,
    _gather_abstract_eval,
    _gather_transpose,
    "Return the element of the first operand at the maximum or minimum of the second, for each window.",
)
select_and_scatter_add_p = _primitive(
    "select_and_scatter_add",
    _scatter_impl,
    _scatter_abstract_eval,
    _scatter_transpose,
    "Add each element of the first operand where the second has the maximum or minimum of its window.",
)
