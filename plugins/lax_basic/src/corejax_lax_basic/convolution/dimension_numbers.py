"""Which axis of a convolution's operands and result is what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from corejax.extend.programs import register_param_type
from corejax_lax_basic._base.axes import ints

__all__ = [
    "ConvDimensionNumbers",
    "ConvGeneralDilatedDimensionNumbers",
    "conv_dimension_numbers",
    "conv_general_permutations",
]

Spec = tuple[int, ...]


@register_param_type
class ConvDimensionNumbers(NamedTuple):
    """The axes of operands and result, in one order.

    Attributes:
        lhs_spec: axes of the first operand: batch, feature, spatial ones.
        rhs_spec: axes of the kernel: output feature, input feature, spatial ones.
        out_spec: axes of the result: batch, feature, spatial ones.
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None

_WHAT = ("lhs", "rhs", "the result")
_LETTERS = (("N", "C"), ("O", "I"), ("N", "C"))


def conv_dimension_numbers(lhs_shape: Any, rhs_shape: Any, dimension_numbers: Any) -> ConvDimensionNumbers:
    """Dimension numbers in their numeric form.

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
            f"convolution: lhs of shape {tuple(lhs_shape)} and rhs of shape {tuple(rhs_shape)} have different ranks"
        )
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return _checked(ConvDimensionNumbers(*map(ints, dimension_numbers)), ndim)
    if dimension_numbers is None:
        if ndim < 2:
            raise TypeError(f"convolution: operands have a batch and a feature axis, got shape {tuple(lhs_shape)}")
        return ConvDimensionNumbers(*(tuple(range(ndim)),) * 3)
    if not isinstance(dimension_numbers, list | tuple) or len(dimension_numbers) != 3:
        raise TypeError(
            "convolution: dimension_numbers is None, three strings such as ('NHWC', 'HWIO', 'NHWC'), or "
            f"ConvDimensionNumbers, got {dimension_numbers!r}"
        )
    for i, spec in enumerate(dimension_numbers):
        if not isinstance(spec, str) or len(spec) != ndim:
            raise TypeError(
                f"convolution: dimension_numbers[{i}] is a string with a letter for each of the {ndim} axes of "
                f"{_WHAT[i]}, got {spec!r} for lhs {tuple(lhs_shape)} and rhs {tuple(rhs_shape)}"
            )
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def _checked(numbers: ConvDimensionNumbers, ndim: int) -> ConvDimensionNumbers:
    for field, spec in zip(numbers._fields, numbers, strict=True):
        if sorted(spec) != list(range(ndim)):
            raise TypeError(f"convolution: {field} {tuple(spec)} does not name each of {ndim} axes once")
    return numbers


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[Spec, Spec, Spec]:
    """For three strings, the axes in the order batch (output feature), feature (input feature), spatial as in `rhs`.

    Raises:
        TypeError: a string lacks a letter, has one twice, or the spatial letters differ.
    """
    given = dimension_numbers if isinstance(dimension_numbers, list | tuple) else ()
    if len(given) != 3 or not all(isinstance(spec, str) for spec in given):
        raise TypeError(f"convolution: dimension_numbers are three strings, got {dimension_numbers!r}")
    lhs, rhs, out = given
    for i, (spec, letters) in enumerate(zip((lhs, rhs, out), _LETTERS, strict=True)):
        if any(spec.count(letter) != 1 for letter in letters):
            raise TypeError(
                f"convolution: dimension_numbers[{i}] has each of the letters {letters[0]!r} and {letters[1]!r} once, "
                f"got {spec!r}"
            )
        if len(set(spec)) != len(spec):
            raise TypeError(f"convolution: dimension_numbers[{i}] has a letter twice: {spec!r}")
    spatial = [c for c in rhs if c not in _LETTERS[1]]
    if not set(lhs) - set(_LETTERS[0]) == set(spatial) == set(out) - set(_LETTERS[2]):
        raise TypeError(f"convolution: the spatial letters of dimension_numbers {tuple(dimension_numbers)} differ")
    found = [
        (*(spec.index(letter) for letter in letters), *(spec.index(c) for c in spatial))
        for spec, letters in zip((lhs, rhs, out), _LETTERS, strict=True)
    ]
    return found[0], found[1], found[2]
