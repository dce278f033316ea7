"""Shapes of convolutions' results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from corejax_lax_basic._base.axes import canonical_shape
from corejax_lax_basic.convolution.dimension_numbers import conv_general_permutations
from corejax_lax_basic.windows.geometry import Ints, count_windows, integers, padtype_to_pads, pairs

__all__ = ["conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose_shape_tuple"]


def permuted(shape: Sequence[int], spec: Sequence[int]) -> Ints:
    """Sizes of the axes that a spec names, in its order."""
    return tuple(shape[i] for i in spec)


def unpermuted(shape: Sequence[int], spec: Sequence[int]) -> Ints:
    """The shape whose sizes in a spec's order are `shape`."""
    return tuple(shape[spec.index(i)] for i in range(len(spec)))


def _shapes(name: str, shapes: Any, ndim: int | None = None) -> list[Ints]:
    """Shapes of two operands, of one length: `ndim`, if that is given.

    Raises:
        TypeError: one is no shape, or has another length.
    """
    found = [canonical_shape(shape) for shape in shapes]
    count = len(found[0]) if ndim is None else ndim
    if count < 2 or any(len(shape) != count for shape in found):
        wanted = "two or more sizes, as many of each" if ndim is None else f"{ndim} sizes each"
        raise TypeError(f"{name}: shapes of lhs and rhs have {wanted}, got {found[0]} and {found[1]}")
    return found


def conv_shape_tuple(lhs_shape: Any, rhs_shape: Any, strides: Any, pads: Any, batch_group_count: int = 1) -> Ints:
    """Shape of a convolution of operands `(N, C, ...)` and `(O, I, ...)`, dilation included: `(N, O, ...)`.

    Raises:
        TypeError: there is not a pair of padding for each spatial axis.
        ValueError: negative padding drops more than there is.
    """
    lhs_shape, rhs_shape = _shapes("conv_shape_tuple", (lhs_shape, rhs_shape))
    count = len(lhs_shape) - 2
    strides = integers("conv_shape_tuple", "strides", strides, count, 1)
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    pads = pairs("conv_shape_tuple", pads)
    if len(pads) != count:
        raise TypeError(f"convolution: padding {pads} has to have a pair for each of {count} axes")
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
    lhs_shape, rhs_shape = _shapes("conv_general_shape_tuple", (lhs_shape, rhs_shape), len(lhs_spec))
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
    name = "conv_transpose_shape_tuple"
    lhs_shape, rhs_shape = _shapes(name, (lhs_shape, rhs_shape), len(lhs_spec))
    lhs, rhs = permuted(lhs_shape, lhs_spec), permuted(rhs_shape, rhs_spec)
    strides = integers(name, "window_strides", window_strides, len(lhs) - 2, 1)
    if isinstance(padding, str):
        pads = tuple(transposed_padding(k, s, padding) for k, s in zip(rhs[2:], strides, strict=True))
    else:
        pads = pairs(name, padding)
    if len(pads) != len(strides):
        raise TypeError(f"{name}: padding {pads} has to have a pair for each of {len(strides)} axes")
    spatial = (
        (n - 1) * s - k + 2 + low + high for n, k, s, (low, high) in zip(lhs[2:], rhs[2:], strides, pads, strict=True)
    )
    return unpermuted((lhs[0], rhs[0], *spatial), out_spec)
