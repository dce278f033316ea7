"""Shapes of convolutions' results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from corejax_lax_basic.convolution.dimension_numbers import conv_general_permutations
from corejax_lax_basic.windows.geometry import Ints, count_windows, padtype_to_pads

__all__ = ["conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose_shape_tuple"]


def permuted(shape: Sequence[int], spec: Sequence[int]) -> Ints:
    """Sizes of the axes that a spec names, in its order."""
    return tuple(shape[i] for i in spec)


def unpermuted(shape: Sequence[int], spec: Sequence[int]) -> Ints:
    """The shape whose sizes in a spec's order are `shape`."""
    return tuple(shape[spec.index(i)] for i in range(len(spec)))


def conv_shape_tuple(lhs_shape: Any, rhs_shape: Any, strides: Any, pads: Any, batch_group_count: int = 1) -> Ints:
    """Shape of a convolution of operands `(N, C, ...)` and `(O, I, ...)`, dilation included: `(N, O, ...)`.

    Raises:
        TypeError: there is not a pair of padding for each spatial axis.
        ValueError: negative padding drops more than there is.
    """
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    if len(pads) != len(lhs_shape) - 2:
        raise TypeError(f"convolution: padding {tuple(pads)} has to have a pair for each of {len(lhs_shape) - 2} axes")
    padded = [n + low + high for n, (low, high) in zip(lhs_shape[2:], pads, strict=True)]
    if any(n < 0 for n in padded):
        raise ValueError(f"convolution: padding {tuple(pads)} drops more than there is of axes {tuple(lhs_shape[2:])}")
    spatial = (count_windows(n, k, s) for n, k, s in zip(padded, rhs_shape[2:], strides, strict=True))
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *spatial)


def conv_general_shape_tuple(
    lhs_shape: Any, rhs_shape: Any, window_strides: Any, padding: Any, dimension_numbers: Any
) -> Ints:
    """Shape of a convolution without dilation; `dimension_numbers` are three strings."""
    lhs_spec, rhs_spec, out_spec = conv_general_permutations(dimension_numbers)
    out = conv_shape_tuple(permuted(lhs_shape, lhs_spec), permuted(rhs_shape, rhs_spec), window_strides, padding)
    return unpermuted(out, out_spec)


def transposed_padding(span: int, stride: int, padding: Any) -> tuple[int, int]:
    """What is put before and behind a dilated axis, so that a convolution is the transpose of one.

    Args:
        span: size of the kernel, dilation included.
        stride: of the convolution that is transposed.
        padding: of that convolution: "SAME", "VALID" or a pair.

    Raises:
        ValueError: other padding.
    """
    if padding == "SAME":
        total = span + stride - 2
        low = span - 1 if stride > span - 1 else math.ceil(total / 2)
    elif padding == "VALID":
        total = span + stride - 2 + max(span - stride, 0)
        low = span - 1
    elif isinstance(padding, tuple | list) and len(padding) == 2:
        low, high = (span - p - 1 for p in padding)
        total = low + high
    else:
        raise ValueError(f"conv_transpose: padding is 'SAME', 'VALID' or a (low, high) pair, got {padding!r}")
    return low, total - low


def conv_transpose_shape_tuple(
    lhs_shape: Any, rhs_shape: Any, window_strides: Any, padding: Any, dimension_numbers: Any
) -> Ints:
    """Shape of `conv_transpose` with strides and without dilation; `dimension_numbers` are three strings."""
    lhs_spec, rhs_spec, out_spec = conv_general_permutations(dimension_numbers)
    lhs, rhs = permuted(lhs_shape, lhs_spec), permuted(rhs_shape, rhs_spec)
    if isinstance(padding, str):
        padding = [transposed_padding(k, s, padding) for k, s in zip(rhs[2:], window_strides, strict=True)]
    spatial = (
        (n - 1) * s - k + 2 + low + high
        for n, k, s, (low, high) in zip(lhs[2:], rhs[2:], window_strides, padding, strict=True)
    )
    return unpermuted((lhs[0], rhs[0], *spatial), out_spec)
