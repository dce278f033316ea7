"""Functions said in terms of `conv_general_dilated`."""

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
    """Convolution of `(N, C, ...)` with `(O, C, ...)`; arguments and errors are those of `conv_general_dilated`."""
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
    """`conv` with pairs of padding and dilation; arguments and errors are those of `conv_general_dilated`."""
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
    """A convolution with fractional strides: its result is about `strides` times as large as the operand.

    Args:
        lhs: the array.
        rhs: the kernel.
        strides: those of the convolution that this is the transpose of; here they dilate `lhs`.
        padding: "SAME" or "VALID", of that convolution; or a pair for each spatial axis, of this one.
        rhs_dilation: how far apart the kernel's elements are put; by default 1.
        dimension_numbers: which axes are what; by default `("NHWC", "HWIO", "NHWC")` and the like: channels last.
        transpose_kernel: turn the kernel round and exchange its input and output features: the transpose of a
            convolution by that kernel, as other libraries have it.
        precision: see `conv_general_dilated`.
        preferred_element_type: dtype of sums and result; by default the operands'.
        use_consistent_padding: pairs of padding, too, are those of the convolution that this is the transpose of.

    Raises:
        TypeError, ValueError: as `conv_general_dilated`; or there is no default for operands of that rank.
    """
    x, kernel = get_aval(lhs), get_aval(rhs)
    if dimension_numbers is None:
        if x.ndim not in _CHANNELS_LAST:
            raise ValueError(f"conv_transpose: lhs {x.str_short()} has no default dimension_numbers; give them")
        dimension_numbers = _CHANNELS_LAST[x.ndim]
    numbers = conv_dimension_numbers(x.shape, kernel.shape, dimension_numbers)
    nd = x.ndim - 2
    strides = integers("conv_transpose", "strides", strides, nd, 1)
    rhs_dilation = ones_unless("conv_transpose", "rhs_dilation", rhs_dilation, nd)
    if isinstance(padding, str) or use_consistent_padding:
        sizes = permuted(kernel.shape, numbers.rhs_spec)[2:]
        of_each = [padding] * nd if isinstance(padding, str) else padding
        padding = [
            transposed_padding(dilated(k, d), s, p)
            for k, d, s, p in zip(sizes, rhs_dilation, strides, of_each, strict=True)
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
    """The elements of each window, as features: for each channel, those of its window in row-major order.

    Args:
        lhs: the array, `(N, C, ...)` unless `dimension_numbers` says otherwise.
        filter_shape: the window's size along each spatial axis.
        window_strides: see `conv_general_dilated`, as for the other arguments.
        padding: see there.
        lhs_dilation: see there.
        rhs_dilation: how far apart a window's elements are.
        dimension_numbers: see there; the kernel's part says the order of `filter_shape`.
        precision: see there.
        preferred_element_type: dtype of the result.

    Returns:
        `(N, C * prod(filter_shape), ...)`, or as `dimension_numbers` says.

    Raises:
        TypeError, ValueError: as `conv_general_dilated`.
    """
    x = get_aval(lhs)
    window = integers("conv_general_dilated_patches", "filter_shape", filter_shape, x.ndim - 2, 0)
    numbers = conv_dimension_numbers(x.shape, (1, 1, *window), dimension_numbers)
    size, channels = math.prod(window), x.shape[numbers.lhs_spec[1]]
    # A kernel for each place in the window, 1 there and else 0, the same ones for each channel.
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
    """A convolution with a kernel of its own for each window.

    Args:
        lhs: the array, `(N, C, ...)` unless `dimension_numbers` says otherwise.
        rhs: the kernels, `(O, C * prod(filter_shape), ...)`, whose last axes are the result's spatial ones.
        window_strides: see `conv_general_dilated`, as for the other arguments.
        padding: see there.
        filter_shape: the window's size along each spatial axis.
        lhs_dilation: see there.
        rhs_dilation: how far apart a window's elements are.
        dimension_numbers: see there.
        precision: of the products; a pair is that of `lhs` and `rhs`.

    Returns:
        `(N, O, ...)`, or as `dimension_numbers` says.

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
