"""Functions defined in terms of `conv_general_dilated`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import as_array, get_aval
from corejax_lax_basic.convolution.conv import conv_general_dilated
from corejax_lax_basic.convolution.dimension_numbers import conv_dimension_numbers, permuted, transposed_padding
from corejax_lax_basic.linear.dot import dot_general
from corejax_lax_basic.shape.rearranging import rev, swapaxes, transpose
from corejax_lax_basic.windows.geometry import dilated, integers, ones_unless

__all__ = [
    "conv",
    "conv_general_dilated_local",
    "conv_general_dilated_patches",
    "conv_transpose",
    "conv_with_general_padding",
]


def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Convolve `(N, C, ...)` with `(O, C, ...)`; arguments and errors are those of `conv_general_dilated`."""
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Convolve as `conv`, with pairs of padding and with dilation; see `conv_general_dilated`."""
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


_CHANNELS_LAST = {
    2: ("NC", "IO", "NC"),
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: Any,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Any:
    """Convolve with fractional strides: the result is about `strides` times as large as the operand.

    Args:
        lhs: the array.
        rhs: the kernel.
        strides: strides of the convolution of which this is the transpose; here they dilate `lhs`.
        padding: "SAME" or "VALID" for that convolution, or a pair for each spatial axis for this one.
        rhs_dilation: distances to which the kernel's elements are spread; by default 1.
        dimension_numbers: the roles of the axes; by default channels last, such as `("NHWC", "HWIO", "NHWC")`.
        transpose_kernel: reverse the kernel and exchange its input and output features. The result is then the
            transpose of a convolution by that kernel, as in other libraries.
        precision: see `conv_general_dilated`.
        preferred_element_type: dtype of sums and result; by default the operands'.
        use_consistent_padding: interpret pairs of padding as those of the convolution of which this is the transpose.

    Raises:
        TypeError, ValueError: as `conv_general_dilated`; or operands of that rank have no default dimension numbers.
    """
    x, kernel = get_aval(lhs), get_aval(rhs)
    if dimension_numbers is None:
        if x.ndim not in _CHANNELS_LAST:
            raise ValueError(
                f"conv_transpose: lhs {x.str_short()} has no default dimension_numbers; pass dimension_numbers"
            )
        dimension_numbers = _CHANNELS_LAST[x.ndim]
    numbers = conv_dimension_numbers(x.shape, kernel.shape, dimension_numbers)
    nd = x.ndim - 2
    strides = integers("conv_transpose", "strides", strides, nd, 1)
    rhs_dilation = ones_unless("conv_transpose", "rhs_dilation", rhs_dilation, nd)
    if isinstance(padding, str) or use_consistent_padding:
        sizes = permuted(kernel.shape, numbers.rhs_spec)[2:]
        pads = [padding] * nd if isinstance(padding, str) else padding
        padding = [
            transposed_padding(dilated(k, d), s, p)
            for k, d, s, p in zip(sizes, rhs_dilation, strides, pads, strict=True)
        ]
    if transpose_kernel:
        rhs = swapaxes(rev(rhs, numbers.rhs_spec[2:]), *numbers.rhs_spec[:2])
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * nd,
        padding,
        strides,
        rhs_dilation,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Return the elements of each window as features: for each channel, those of its window in row-major order.

    Args:
        lhs: the array, `(N, C, ...)` unless `dimension_numbers` says otherwise.
        filter_shape: the window's size along each spatial axis.
        window_strides: as in `conv_general_dilated`.
        padding: as in `conv_general_dilated`.
        lhs_dilation: as in `conv_general_dilated`.
        rhs_dilation: distances between a window's elements.
        dimension_numbers: as in `conv_general_dilated`; the kernel's part gives the order of `filter_shape`.
        precision: as in `conv_general_dilated`.
        preferred_element_type: dtype of the result.

    Returns:
        `(N, C * prod(filter_shape), ...)`, unless `dimension_numbers` says otherwise.

    Raises:
        TypeError, ValueError: as `conv_general_dilated`.
    """
    x = get_aval(lhs)
    window = integers("conv_general_dilated_patches", "filter_shape", filter_shape, x.ndim - 2, 0)
    numbers = conv_dimension_numbers(x.shape, (1, 1, *window), dimension_numbers)
    size, channels = math.prod(window), x.shape[numbers.lhs_spec[1]]
    # A kernel for each position in the window, 1 there and 0 elsewhere, repeated for each channel.
    one_hot = np.tile(np.eye(size, dtype=x.dtype).reshape((size, 1, *window)), (channels, *[1] * (x.ndim - 1)))
    kernel = one_hot.transpose(np.argsort(numbers.rhs_spec))
    return conv_general_dilated(
        lhs,
        as_array(kernel),
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        feature_group_count=channels,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_local(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Any:
    """Convolve with a separate kernel for each window.

    Args:
        lhs: the array, `(N, C, ...)` unless `dimension_numbers` says otherwise.
        rhs: the kernels, `(O, C * prod(filter_shape), ...)`, whose last axes are the result's spatial axes.
        window_strides: as in `conv_general_dilated`.
        padding: as in `conv_general_dilated`.
        filter_shape: the window's size along each spatial axis.
        lhs_dilation: as in `conv_general_dilated`.
        rhs_dilation: distances between a window's elements.
        dimension_numbers: as in `conv_general_dilated`.
        precision: precision of the products; a pair is for `lhs` and `rhs`.

    Returns:
        `(N, O, ...)`, unless `dimension_numbers` says otherwise.

    Raises:
        TypeError, ValueError: as `conv_general_dilated` and `dot_general`.
    """
    numbers = conv_dimension_numbers(get_aval(lhs).shape, get_aval(rhs).shape, dimension_numbers)
    lhs_precision = precision[0] if isinstance(precision, tuple) else precision
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers, lhs_precision
    )
    _, rhs_spec, out_spec = numbers
    contract, batch = ((out_spec[1],), (rhs_spec[1],)), (out_spec[2:], rhs_spec[2:])
    out = dot_general(patches, rhs, (contract, batch), precision)  # spatial axes, N, O
    nd = len(out_spec) - 2
    order = {out_spec[0]: nd, out_spec[1]: nd + 1, **{axis: i for i, axis in enumerate(out_spec[2:])}}
    return transpose(out, tuple(order[axis] for axis in range(nd + 2)))
