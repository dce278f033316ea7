"""Where windows are: sizes of dilated and padded axes, numbers of windows, and what "SAME" and "VALID" mean.

A window of size w with dilation d spans (w - 1) d + 1 elements; n elements with p more of padding have
(n + p - span) // stride + 1 windows, none if that is negative. Source: StableHLO, `reduce_window` and `convolution`.
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
    """The span of `size` elements `dilation` apart; 0 for none."""
    if isinstance(size, SymbolicDim):
        return max_dim((size - 1) * dilation + 1, 0)
    return (size - 1) * dilation + 1 if size else 0


def dilated_shape(shape: Sequence[int], dilation: Sequence[int]) -> Ints:
    """Spans of all axes."""
    return tuple(dilated(n, d) for n, d in zip(shape, dilation, strict=True))


def count_windows(size: int, span: int, stride: int) -> int:
    """How many windows of a span fit in `size` elements, `stride` apart."""
    return max_dim((size - span) // stride + 1, 0)


def integers(name: str, argument: str, values: Any, count: int, least: int) -> Ints:
    """An argument with one integer for each of `count` axes.

    Raises:
        TypeError: it is not a sequence of integers, has another length, or one is less than `least`.
    """
    try:
        out = ints(values)
    except TypeError:
        raise TypeError(f"{name}: {argument} is a sequence of integers, got {values!r}") from None
    if len(out) != count:
        raise TypeError(f"{name}: {argument} {out} has length {len(out)}; there are {count} axes to say it for")
    if any(v < least for v in out):
        raise TypeError(f"{name}: {argument} must have every element be at least {least}, got {out}")
    return out


def ones_unless(name: str, argument: str, values: Any, count: int) -> Ints:
    """A positive integer for each axis, 1 where nothing is given."""
    return (1,) * count if values is None else integers(name, argument, values, count, 1)


def pairs(name: str, padding: Any) -> Pads:
    """Explicit padding as tuples.

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
    """Padding of a cotangent whose windows are those that an element was in.

    Args:
        size: of the operand's axes, dilation included.
        span: of the windows, dilation included.
        ct: sizes of the cotangent's axes, dilated by the strides.
        padding: the operand's.
    """
    out = []
    for n, k, m, (low, _) in zip(size, span, ct, padding, strict=True):
        before = k - low - 1
        out.append((before, n + k - 1 - m - before))
    return tuple(out)


def padtype_to_pads(in_shape: Any, window_shape: Any, window_strides: Any, padding: str) -> list[tuple[int, int]]:
    """What is put before and behind each axis.

    Args:
        in_shape: sizes of the axes.
        window_shape: what the windows span, dilation included.
        window_strides: how far apart they are.
        padding: "VALID" for none; "SAME" for ceil(size / stride) windows, with the odd element behind; "SAME_LOWER"
            with the odd element before. Capitals or not.

    Returns:
        A `(low, high)` pair for each axis.

    Raises:
        ValueError: another word.
        TypeError: the lengths differ.
    """
    word = padding.upper() if isinstance(padding, str) else padding
    if word not in PADDINGS:
        name = called_function() or "padtype_to_pads"
        raise ValueError(f"{name}: padding is one of {', '.join(map(repr, PADDINGS))}, got {padding!r}")
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
    """Shape of a reduction over windows.

    Args:
        operand_shape: sizes of the axes.
        window_dimensions: sizes of the windows.
        window_strides: how far apart they are.
        padding: `(low, high)` for each axis.
        base_dilation: how far apart the operand's elements are put, by default 1.
        window_dilation: how far apart a window's elements are, by default 1.

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
    """Shape of a reduction over windows.

    Raises:
        TypeError: params do not fit the operand's rank, or are not positive.
        ValueError: negative padding drops more than there is.
    """
    for argument, given in (
        ("window_dimensions", window_dimensions),
        ("window_strides", window_strides),
        ("base_dilation", base_dilation),
        ("window_dilation", window_dilation),
    ):
        integers(name, argument, given, x.ndim, 1)
    if len(padding) != x.ndim:
        raise TypeError(
            f"{name}: padding {padding} has to have a pair for each of the {x.ndim} axes of {x.str_short()}"
        )
    sizes = dilated_shape(x.shape, base_dilation)
    if any(n + low + high < 0 for n, (low, high) in zip(sizes, padding, strict=True)):
        raise ValueError(f"{name}: padding {padding} drops more than there is of {x.str_short()}")
    return reduce_window_shape_tuple(
        x.shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )


def with_axis(params: dict[str, Any], axis: int) -> dict[str, Any]:
    """Params of windows that do not move along one more axis."""
    added: dict[str, Any] = {"padding": (0, 0)}
    return {
        key: (*value[:axis], added.get(key, 1), *value[axis:]) if isinstance(value, tuple) else value
        for key, value in params.items()
    }
