"""Convolution by NumPy: windows are copied to rows of a matrix, which is multiplied by the kernel of each group."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from corejax.extend import ShapedArray
from corejax.extend.speed import HostCode
from corejax_lax_basic._base.axes import Ints
from corejax_lax_basic._speed import CONV_CHUNK
from corejax_lax_basic.convolution.dimension_numbers import ConvDimensionNumbers, unpermuted
from corejax_lax_basic.linear._on_host import as_integers, exact_in, sum_dtype
from corejax_lax_basic.windows._on_host import padded, windows_view
from corejax_lax_basic.windows.geometry import Pads

_REAL = frozenset(map(np.dtype, "fd"))
_SPEC = (0, 1, 2)
_ONE_SEQUENCE = ((1, 1), (1, 1), (1,), (1,), (1,), ConvDimensionNumbers(_SPEC, _SPEC, _SPEC))


def convolve(
    lhs: Any,
    rhs: Any,
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
) -> Any:
    """Compute `conv_general_dilated`. Comments use the letters of `dimension_numbers`, and G for groups."""
    if lhs.ndim == 3 and lhs.dtype in _REAL and lhs.dtype == rhs.dtype == preferred_element_type:
        shape = (lhs.shape[:2], rhs.shape[:2], window_strides, lhs_dilation, rhs_dilation, dimension_numbers)
        if shape == _ONE_SEQUENCE and (out := _correlated(lhs[0, 0], rhs[0, 0], *padding[0])) is not None:
            return out[None, None]
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    working = sum_dtype(preferred_element_type)
    exact = exact_in(lhs, rhs, rhs.size // max(1, rhs.shape[rhs_spec[0]])) if working.kind in "iu" else None
    working = exact or working
    nd = len(lhs_spec) - 2
    lhs = lhs.transpose((lhs_spec[0], *lhs_spec[2:], lhs_spec[1])).astype(working, copy=False)  # N ... C
    rhs = rhs.transpose((*rhs_spec[2:], rhs_spec[1], rhs_spec[0])).astype(working, copy=False)  # ... I O
    lhs = padded(lhs, working.type(0), ((0, 0), *padding, (0, 0)), (1, *lhs_dilation, 1))
    window, groups = rhs.shape[:nd], feature_group_count * batch_group_count
    if feature_group_count > 1:
        grouped = lhs.reshape((*lhs.shape[:-1], groups, lhs.shape[-1] // groups))
        grouped = np.moveaxis(grouped, -2, 0)
    else:
        grouped = lhs.reshape((groups, lhs.shape[0] // groups, *lhs.shape[1:]))
    if math.prod(window) > 1:
        grouped = np.ascontiguousarray(grouped)
    view = windows_view(grouped, 2, window, window_strides, rhs_dilation)  # G N counts... C window...
    view = view.transpose((*range(2 + nd), *range(3 + nd, 3 + 2 * nd), 2 + nd))
    kernel = rhs.reshape((*rhs.shape[:-1], groups, rhs.shape[-1] // groups))
    kernel = np.moveaxis(kernel, -2, 0).reshape((groups, math.prod(rhs.shape[:-1]), rhs.shape[-1] // groups))
    out = _products(view, kernel, nd)
    # From G N ... O to N ... (G O), and then to the order of `out_spec`.
    out = np.moveaxis(out, 0, -2)
    out = out.reshape((*out.shape[:-2], rhs.shape[-1]))
    out = out.transpose(unpermuted((0, 1 + nd, *range(1, 1 + nd)), out_spec))
    return as_integers(out, preferred_element_type) if exact else out.astype(preferred_element_type, copy=False)


def _correlated(x: Any, kernel: Any, low: int, high: int) -> Any:
    """Correlate a sequence with a kernel by `np.correlate`; None if the padding is longer than the kernel reaches."""
    mode_and_part = _correlation_mode(x.size, kernel.size, low, high)
    return None if mode_and_part is None else np.correlate(x, kernel, mode_and_part[0])[mode_and_part[1]]


def _correlation_mode(size: int, taps: int, low: int, high: int) -> tuple[Literal["valid", "full"], slice] | None:
    """Return the mode of `np.correlate` and the part of its result that is the convolution, or None."""
    reach = taps - 1
    if not (size and 0 <= low <= reach and 0 <= high <= reach) or size + low + high <= reach:
        return None
    if low == high == 0:
        return "valid", slice(None)
    return "full", slice(reach - low, size + reach - (reach - high))


def correlation_code(lhs: ShapedArray, rhs: ShapedArray, params: dict[str, Any]) -> HostCode | None:
    """Return code for one sequence and one kernel, equal to what `convolve` does; None for other operands."""
    if lhs.ndim != 3 or lhs.dtype not in _REAL or not lhs.dtype == rhs.dtype == params["preferred_element_type"]:
        return None
    names = ("window_strides", "lhs_dilation", "rhs_dilation", "dimension_numbers")
    if (lhs.shape[:2], rhs.shape[:2], *map(params.get, names)) != _ONE_SEQUENCE:
        return None
    mode_and_part = _correlation_mode(lhs.size, rhs.size, *params["padding"][0])
    if mode_and_part is None:
        return None
    text = "{out} = {correlate}({0}[0, 0], {1}[0, 0], {mode})[{key}][None, None]"
    return HostCode(text, correlate=np.correlate, mode=mode_and_part[0], key=mode_and_part[1])


def _products(view: Any, kernel: Any, nd: int) -> Any:
    """Multiply the windows `(G, N, counts..., window..., C)` by the kernel `(G, K, O)`: `(G, N, counts..., O)`."""
    groups, batch = view.shape[:2]
    counts = view.shape[2 : 2 + nd]
    rows, inner, features = math.prod(counts), kernel.shape[1], kernel.shape[2]
    at_once = max(1, CONV_CHUNK // max(1, groups * rows * inner))
    if at_once >= batch:
        return np.matmul(view.reshape((groups, batch * rows, inner)), kernel).reshape(
            (groups, batch, *counts, features)
        )
    out = np.empty((groups, batch, rows, features), kernel.dtype)
    for i in range(0, batch, at_once):
        part = view[:, i : i + at_once]
        flat = part.reshape((groups, part.shape[1] * rows, inner))
        out[:, i : i + at_once] = np.matmul(flat, kernel).reshape((groups, part.shape[1], rows, features))
    return out.reshape((groups, batch, *counts, features))
