"""Contractions of two arrays with labelled axes, on which `matmul` and `einsum` are built."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import like

Labels = list[Hashable]


def contract_pair(
    x: Any,
    x_labels: Sequence[Hashable],
    y: Any,
    y_labels: Sequence[Hashable],
    kept: Sequence[Hashable],
    precision: Any = None,
    preferred_element_type: Any = None,
    dot_general: Any = lax.dot_general,
) -> tuple[Any, Labels]:
    """Multiply along axes that share a label, and sum over axes with labels that are not kept.

    Args:
        x: an array.
        x_labels: a label for each axis of `x`, each label at most once.
        y: an array of the same dtype.
        y_labels: a label for each axis of `y`. Axes with one label have one size, or size 1, which broadcasts.
        kept: the labels of the axes of the result.
        precision: precision of the product, as for `lax.dot_general`.
        preferred_element_type: dtype of the result; by default that of the operands.
        dot_general: the function that multiplies the operands.

    Returns:
        The result and its labels: shared labels, then those of `x`, then those of `y`.

    Raises:
        TypeError: two axes with one label have different sizes.
    """
    x, xs = _without_unit_axes(x, list(x_labels), dict(zip(y_labels, y.shape, strict=True)))
    y, ys = _without_unit_axes(y, list(y_labels), dict(zip(xs, x.shape, strict=True)))
    x, xs = sum_out(x, xs, [a for a in xs if a not in kept and a not in ys])
    y, ys = sum_out(y, ys, [a for a in ys if a not in kept and a not in xs])
    batch = [a for a in xs if a in ys and a in kept]
    contracted = [a for a in xs if a in ys and a not in kept]
    numbers = (_places(xs, contracted), _places(ys, contracted)), (_places(xs, batch), _places(ys, batch))
    dtype = x.dtype if preferred_element_type is None else preferred_element_type
    out = dot_general(x, y, numbers, precision, dtype)
    return out, [*batch, *(a for a in xs if a not in ys), *(a for a in ys if a not in xs)]


def _places(labels: Labels, wanted: Labels) -> tuple[int, ...]:
    return tuple(labels.index(a) for a in wanted)


def _without_unit_axes(x: Any, labels: Labels, sizes: dict[Hashable, int]) -> tuple[Any, Labels]:
    """Drop axes of size 1 that broadcast against longer ones, because the product does not need copies."""
    units = [i for i, a in enumerate(labels) if x.shape[i] == 1 and sizes.get(a, 1) != 1]
    if not units:
        return x, labels
    return lax.squeeze(x, tuple(units)), [a for i, a in enumerate(labels) if i not in units]


def sum_out(x: Any, labels: Labels, reduced: Sequence[Hashable]) -> tuple[Any, Labels]:
    """Sum over the axes with the labels `reduced`."""
    if not reduced:
        return x, labels
    axes = tuple(i for i, a in enumerate(labels) if a in reduced)
    return _sum(x, axes), [a for a in labels if a not in reduced]


def _sum(x: Any, axes: tuple[int, ...]) -> Any:
    """Sum over axes; the sum of booleans is whether any is true."""
    return lax.reduce_or(x, axes) if dtypes.is_bool(x.dtype) else lax.reduce_sum(x, axes)


def in_order(x: Any, labels: Labels, wanted: Sequence[Hashable]) -> Any:
    """Transpose the axes into the order of the labels `wanted`."""
    order = tuple(labels.index(a) for a in wanted)
    return x if order == tuple(range(len(order))) else lax.transpose(x, order)


def without_repeated_labels(x: Any, labels: Labels) -> tuple[Any, Labels]:
    """Replace axes with one label by their diagonal: zero the other elements, then sum over the second axis."""
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if x.shape[first] != x.shape[second]:
                raise ValueError(
                    f"einsum: label {label!r} names axes {first} and {second} of {x.aval.str_short()}, "
                    "which have different sizes"
                )
            rows = lax.broadcasted_iota("int32", x.shape, first)
            columns = lax.broadcasted_iota("int32", x.shape, second)
            x = _sum(lax.select(lax.eq(rows, columns), x, like(x, 0)), (second,))
            del labels[second]
    return x, labels
