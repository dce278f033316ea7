"""The roles of the axes of a convolution's operands and result, and the size of the result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from corejax.extend.programs import register_param_type
from corejax_lax_basic._base.axes import Ints, canonical_shape, ints
from corejax_lax_basic.windows.geometry import count_windows, integers, padtype_to_pads, pairs

__all__ = [
    "ConvDimensionNumbers",
    "ConvGeneralDilatedDimensionNumbers",
    "conv_dimension_numbers",
    "conv_general_permutations",
    "conv_general_shape_tuple",
    "conv_shape_tuple",
    "conv_transpose_shape_tuple",
]


@register_param_type
class ConvDimensionNumbers(NamedTuple):
    """The axes of operands and result, each in a fixed order.

    Attributes:
        lhs_spec: axes of the first operand: batch, feature, spatial axes.
        rhs_spec: axes of the kernel: output feature, input feature, spatial axes.
        out_spec: axes of the result: batch, feature, spatial axes.
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None

_WHAT = ("lhs", "rhs", "the result")
_LETTERS = (("N", "C"), ("O", "I"), ("N", "C"))


def conv_dimension_numbers(lhs_shape: Any, rhs_shape: Any, dimension_numbers: Any) -> ConvDimensionNumbers:
    """Return dimension numbers in their numeric form.

    Args:
        lhs_shape: shape of the first operand.
        rhs_shape: shape of the kernel.
        dimension_numbers: None for `("NC...", "OI...", "NC...")`; three strings such as `("NHWC", "HWIO", "NHWC")`, in
            which spatial axes have any other letters; or a `ConvDimensionNumbers`.

    Raises:
        TypeError: the ranks differ, or the dimension numbers do not fit them.
    """
    lhs_shape, rhs_shape = ints(lhs_shape, "lhs_shape"), ints(rhs_shape, "rhs_shape")
    ndim = len(lhs_shape)
    if ndim != len(rhs_shape):
        raise TypeError(
            f"convolution: lhs of shape {tuple(lhs_shape)} and rhs of shape {tuple(rhs_shape)} must have the same rank"
        )
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return _checked(ConvDimensionNumbers(*map(ints, dimension_numbers)), ndim)
    if dimension_numbers is None:
        if ndim < 2:
            raise TypeError(f"convolution: operands must have a batch and a feature axis, got shape {tuple(lhs_shape)}")
        return ConvDimensionNumbers(*(tuple(range(ndim)),) * 3)
    if not isinstance(dimension_numbers, list | tuple) or len(dimension_numbers) != 3:
        raise TypeError(
            "convolution: dimension_numbers must be None, three strings such as ('NHWC', 'HWIO', 'NHWC'), or "
            f"ConvDimensionNumbers, got {dimension_numbers!r}"
        )
    for i, spec in enumerate(dimension_numbers):
        if not isinstance(spec, str) or len(spec) != ndim:
            raise TypeError(
                f"convolution: dimension_numbers[{i}] must be a string with a letter for each of the {ndim} axes of "
                f"{_WHAT[i]}, got {spec!r} for lhs {tuple(lhs_shape)} and rhs {tuple(rhs_shape)}"
            )
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def _checked(numbers: ConvDimensionNumbers, ndim: int) -> ConvDimensionNumbers:
    for field, spec in zip(numbers._fields, numbers, strict=True):
        if sorted(spec) != list(range(ndim)):
            raise TypeError(f"convolution: {field} {tuple(spec)} does not name each of {ndim} axes once")
    return numbers


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[Ints, Ints, Ints]:
    """Return the axes that three strings name: batch (output feature), feature (input feature), spatial as in `rhs`.

    Raises:
        TypeError: a string lacks a letter, has one twice, or the spatial letters differ.
    """
    specs = dimension_numbers if isinstance(dimension_numbers, list | tuple) else ()
    if len(specs) != 3 or not all(isinstance(spec, str) for spec in specs):
        raise TypeError(f"convolution: dimension_numbers must be three strings, got {dimension_numbers!r}")
    lhs, rhs, out = specs
    for i, (spec, letters) in enumerate(zip((lhs, rhs, out), _LETTERS, strict=True)):
        if any(spec.count(letter) != 1 for letter in letters):
            raise TypeError(
                f"convolution: dimension_numbers[{i}] must have each of the letters {letters[0]!r} and {letters[1]!r} "
                f"once, got {spec!r}"
            )
        if len(set(spec)) != len(spec):
            raise TypeError(f"convolution: dimension_numbers[{i}] has a letter twice: {spec!r}")
    spatial = [c for c in rhs if c not in _LETTERS[1]]
    if not set(lhs) - set(_LETTERS[0]) == set(spatial) == set(out) - set(_LETTERS[2]):
        raise TypeError(f"convolution: the spatial letters of dimension_numbers {tuple(dimension_numbers)} differ")
    axes = [
        (*(spec.index(letter) for letter in letters), *(spec.index(c) for c in spatial))
        for spec, letters in zip((lhs, rhs, out), _LETTERS, strict=True)
    ]
    return axes[0], axes[1], axes[2]


def permuted(shape: Sequence[int], spec: Sequence[int]) -> Ints:
    """Return the sizes of the axes that a spec names, in its order."""
    return tuple(shape[i] for i in spec)


def unpermuted(shape: Sequence[int], spec: Sequence[int]) -> Ints:
    """Return the shape that has the sizes `shape` in the order of a spec."""
    return tuple(shape[spec.index(i)] for i in range(len(spec)))


def _shapes(name: str, shapes: Any, ndim: int | None = None) -> list[Ints]:
    """Return shapes of two operands of one length: `ndim`, unless that is None.

    Raises:
        TypeError: one is no shape, or has another length.
    """
    canonical = [canonical_shape(shape) for shape in shapes]
    count = len(canonical[0]) if ndim is None else ndim
    if count < 2 or any(len(shape) != count for shape in canonical):
        wanted = "two or more sizes, the same number each" if ndim is None else f"{ndim} sizes each"
        raise TypeError(f"{name}: shapes of lhs and rhs must have {wanted}, got {canonical[0]} and {canonical[1]}")
    return canonical


def conv_shape_tuple(lhs_shape: Any, rhs_shape: Any, strides: Any, pads: Any, batch_group_count: int = 1) -> Ints:
    """Return the shape of a convolution of operands `(N, C, ...)` and `(O, I, ...)`, dilated already: `(N, O, ...)`.

    Raises:
        TypeError: `pads` does not have a pair for each spatial axis.
        ValueError: negative padding drops more elements than the operand has.
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
        raise ValueError(
            f"convolution: padding {tuple(pads)} drops more elements than axes of sizes {tuple(lhs_shape[2:])} have"
        )
    spatial = (count_windows(n, k, s) for n, k, s in zip(padded, rhs_shape[2:], strides, strict=True))
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *spatial)


def conv_general_shape_tuple(
    lhs_shape: Any, rhs_shape: Any, window_strides: Any, padding: Any, dimension_numbers: Any
) -> Ints:
    """Return the shape of a convolution without dilation; `dimension_numbers` are three strings."""
    lhs_spec, rhs_spec, out_spec = conv_general_permutations(dimension_numbers)
    lhs_shape, rhs_shape = _shapes("conv_general_shape_tuple", (lhs_shape, rhs_shape), len(lhs_spec))
    out = conv_shape_tuple(permuted(lhs_shape, lhs_spec), permuted(rhs_shape, rhs_spec), window_strides, padding)
    return unpermuted(out, out_spec)


def transposed_padding(span: int, stride: int, padding: Any) -> tuple[int, int]:
    """Return the padding of a dilated axis that makes a convolution the transpose of another.

    Args:
        span: size of the kernel, dilation included.
        stride: stride of the convolution that is transposed.
        padding: padding of that convolution: "SAME", "VALID" or a pair.

    Raises:
        ValueError: `padding` is none of these.
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
        raise ValueError(f"conv_transpose: padding must be 'SAME', 'VALID' or a (low, high) pair, got {padding!r}")
    return low, total - low


def conv_transpose_shape_tuple(
    lhs_shape: Any, rhs_shape: Any, window_strides: Any, padding: Any, dimension_numbers: Any
) -> Ints:
    """Return the shape of `conv_transpose` with strides and no dilation; `dimension_numbers` are three strings."""
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
