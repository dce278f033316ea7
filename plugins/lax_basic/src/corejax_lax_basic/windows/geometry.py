"""Geometry of windows: sizes of dilated and padded axes, numbers of windows, and the paddings "SAME" and "VALID".

A window of size w with dilation d spans (w - 1) d + 1 elements. An axis of n elements and p elements of padding has
(n + p - span) // stride + 1 windows, or 0 if that is negative. Source: StableHLO, `reduce_window` and `convolution`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import ShapedArray
from corejax.extend.messages import called_function
from corejax.extend.types import SymbolicDim, max_dim
from corejax_lax_basic._base.axes import Ints, ints

__all__ = ["padtype_to_pads", "reduce_window_shape_tuple"]

Pads = tuple[tuple[int, int], ...]

PADDINGS = ("SAME", "SAME_LOWER", "VALID")


def dilated(size: int, dilation: int) -> int:
    """Return the span of `size` elements at a distance of `dilation`; the span of 0 elements is 0."""
    if isinstance(size, SymbolicDim):
        span: int = max_dim((size - 1) * dilation + 1, 0)
        return span
    return (size - 1) * dilation + 1 if size else 0


def dilated_shape(shape: Sequence[int], dilation: Sequence[int]) -> Ints:
    """Return the spans of all axes."""
    return tuple(dilated(n, d) for n, d in zip(shape, dilation, strict=True))


def count_windows(size: int, span: int, stride: int) -> int:
    """Return how many windows of a span fit in `size` elements at a distance of `stride`."""
    count: int = max_dim((size - span) // stride + 1, 0)
    return count


def integers(name: str, argument: str, values: Any, count: int, least: int) -> Ints:
    """Return an argument with one integer for each of `count` axes as a tuple.

    Raises:
        TypeError: it is not a sequence of integers, has another length, or one is less than `least`.
    """
    try:
        out = ints(values)
    except TypeError:
        raise TypeError(f"{name}: {argument} must be a sequence of integers, got {values!r}") from None
    if len(out) != count:
        raise TypeError(
            f"{name}: {argument} {out} has length {len(out)}; it must have an entry for each of {count} axes"
        )
    if any(v < least for v in out):
        raise TypeError(f"{name}: {argument} must have every element be at least {least}, got {out}")
    return out


def ones_unless(name: str, argument: str, values: Any, count: int) -> Ints:
    """Return a positive integer for each axis; None is 1 for all axes."""
    return (1,) * count if values is None else integers(name, argument, values, count, 1)


def pairs(name: str, padding: Any) -> Pads:
    """Return explicit padding as tuples.

    Raises:
        ValueError: it is not a sequence of pairs of integers.
    """
    try:
        return tuple((low, high) for low, high in map(ints, padding))
    except (TypeError, ValueError):
        raise ValueError(
            f"{name}: padding argument is one of {', '.join(map(repr, PADDINGS))} or a sequence of (low, high) "
            f"pairs of integers, got {padding!r}"
        ) from None


def transposed_pads(size: Ints, span: Ints, ct: Ints, padding: Pads) -> Pads:
    """Return the padding of a cotangent; its windows are the windows that contained an element of the operand.

    Args:
        size: sizes of the operand's axes, dilation included.
        span: spans of the windows, dilation included.
        ct: sizes of the cotangent's axes, dilated by the strides.
        padding: the operand's padding.
    """
    out = []
    for n, k, m, (low, _) in zip(size, span, ct, padding, strict=True):
        before = k - low - 1
        out.append((before, n + k - 1 - m - before))
    return tuple(out)


def padtype_to_pads(in_shape: Any, window_shape: Any, window_strides: Any, padding: str) -> list[tuple[int, int]]:
    """Return the padding before and after each axis.

    Args:
        in_shape: sizes of the axes.
        window_shape: spans of the windows, dilation included.
        window_strides: distances between windows.
        padding: "VALID" for no padding; "SAME" for ceil(size / stride) windows, with an odd element after the axis;
            "SAME_LOWER" with an odd element before it. Case is ignored.

    Returns:
        A `(low, high)` pair for each axis.

    Raises:
        ValueError: `padding` is another word.
        TypeError: the lengths differ.
    """
    word = padding.upper() if isinstance(padding, str) else padding
    if word not in PADDINGS:
        name = called_function() or "padtype_to_pads"
        raise ValueError(f"{name}: padding must be one of {', '.join(map(repr, PADDINGS))}, got {padding!r}")
    sizes, spans = ints(in_shape, "padtype_to_pads: in_shape"), ints(window_shape, "padtype_to_pads: window_shape")
    strides = integers("padtype_to_pads", "window_strides", window_strides, len(sizes), 1)
    if len(sizes) != len(spans):
        raise TypeError(f"padtype_to_pads: window_shape {spans} has to be as long as in_shape {sizes}")
    if word == "VALID":
        return [(0, 0)] * len(sizes)
    out = []
    for size, span, stride in zip(sizes, spans, strides, strict=True):
        total = max_dim((-(-size // stride) - 1) * stride + span - size, 0)
        low = total // 2 if word == "SAME" else total - total // 2
        out.append((low, total - low))
    return out


def reduce_window_shape_tuple(
    operand_shape: Any,
    window_dimensions: Any,
    window_strides: Any,
    padding: Any,
    base_dilation: Any = None,
    window_dilation: Any = None,
) -> Ints:
    """Return the shape of a reduction over windows.

    Args:
        operand_shape: sizes of the axes.
        window_dimensions: sizes of the windows.
        window_strides: distances between windows.
        padding: `(low, high)` for each axis, or a word as in `padtype_to_pads`.
        base_dilation: distances to which the operand's elements are spread; by default 1.
        window_dilation: distances between a window's elements; by default 1.

    Raises:
        TypeError, ValueError: an argument does not have a value for each axis.
    """
    name = "reduce_window_shape_tuple"
    sizes = ints(operand_shape, f"{name}: operand_shape")
    count = len(sizes)
    spans = integers(name, "window_dimensions", window_dimensions, count, 0)
    strides = integers(name, "window_strides", window_strides, count, 1)
    sizes = dilated_shape(sizes, ones_unless(name, "base_dilation", base_dilation, count))
    spans = dilated_shape(spans, ones_unless(name, "window_dilation", window_dilation, count))
    pads = padtype_to_pads(sizes, spans, strides, padding) if isinstance(padding, str) else pairs(name, padding)
    if len(pads) != count:
        raise TypeError(f"{name}: padding {padding!r} has to have a pair for each of {count} axes")
    return tuple(
        count_windows(n + low + high, span, stride)
        for n, (low, high), span, stride in zip(sizes, pads, spans, strides, strict=True)
    )


def windowed_shape(
    name: str,
    x: ShapedArray,
    window_dimensions: Ints,
    window_strides: Ints,
    padding: Pads,
    base_dilation: Ints,
    window_dilation: Ints,
) -> Ints:
    """Return the shape of a reduction over windows of an operand.

    Raises:
        TypeError: params do not fit the operand's rank, or are not positive.
        ValueError: negative padding drops more elements than the operand has.
    """
    for argument, values in (
        ("window_dimensions", window_dimensions),
        ("window_strides", window_strides),
        ("base_dilation", base_dilation),
        ("window_dilation", window_dilation),
    ):
        integers(name, argument, values, x.ndim, 1)
    if len(padding) != x.ndim:
        raise TypeError(
            f"{name}: padding {padding} has to have a pair for each of the {x.ndim} axes of {x.str_short()}"
        )
    sizes = dilated_shape(x.shape, base_dilation)
    if any(n + low + high < 0 for n, (low, high) in zip(sizes, padding, strict=True)):
        raise ValueError(f"{name}: padding {padding} drops more elements than {x.str_short()} has")
    return reduce_window_shape_tuple(
        x.shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )


def with_axis(params: dict[str, Any], axis: int) -> dict[str, Any]:
    """Return params of windows with one more axis, along which they have size 1."""
    added: dict[str, Any] = {"padding": (0, 0)}
    return {
        key: (*value[:axis], added.get(key, 1), *value[axis:]) if isinstance(value, tuple) else value
        for key, value in params.items()
    }
