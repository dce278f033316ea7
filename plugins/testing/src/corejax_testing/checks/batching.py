"""The vmap rule: against a loop, for every choice of batched operands and axes, nested, and with empty batches."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

import corejax
from corejax_testing.arrays import Array, compare
from corejax_testing.calls import Call, host
from corejax_testing.checks.registry import check
from corejax_testing.outcomes import NotApplicable

_SIZE = 3  # of batches; unlike most examples' axes would be 2
_MOST = 5  # operands whose choices are all gone through

Axes = tuple[int | None, ...]


def choices(call: Call) -> list[Axes]:
    """Every choice of batched operands, each with the new axis in front, at the end, and mixed.

    Raises:
        NotApplicable: there are no operands.
    """
    count = len(call.values)
    if not count:
        raise NotApplicable("no operands")
    found: dict[Axes, None] = {}
    for mask in itertools.product((False, True), repeat=min(count, _MOST)):
        flags = [*mask, *[mask[-1]] * (count - len(mask))]
        if any(flags):
            for pick in (lambda i: 0, lambda i: -1, lambda i: -(i % 2)):
                found[tuple(pick(i) if flag else None for i, flag in enumerate(flags))] = None
    return list(found)


def batch(call: Call, axes: Axes, rng: np.random.Generator, size: int = _SIZE) -> tuple[list[Array], list[list[Array]]]:
    """Operands with new axes, and the operands of each element of the batch."""
    others = [call, *(call.again(rng) for _ in range(size - 1))]
    elements = [
        [other.values[i] if axis is not None else call.values[i] for i, axis in enumerate(axes)] for other in others
    ]
    stacked = [
        call.values[i] if axis is None else np.stack([e[i] for e in elements], axis) for i, axis in enumerate(axes)
    ]
    return stacked, elements


def _agree(got: Sequence[Array], elements: Sequence[Sequence[Array]], call: Call, what: str) -> None:
    for k, values in enumerate(elements):
        for i, (out, right) in enumerate(zip(got, host(call(*values)), strict=True)):
            compare(out[k], right, f"element {k} of result {i} {what}", "vmap", scale=4 * call.example.tolerance)


@check("vmap", "vmap", dtypes=True, shapes=True)
def check_vmap(call: Call, rng: np.random.Generator) -> None:
    """vmap gives what a loop gives, for every choice of batched operands and of their axes."""
    for axes in choices(call):
        values, elements = batch(call, axes, rng)
        got = host(corejax.vmap(call.__call__, in_axes=axes)(*values))
        for out, aval in zip(got, call.avals_out, strict=True):
            compare(np.array(out.shape), np.array((_SIZE, *aval.shape)), f"the shape with in_axes={axes}", "vmap")
        _agree(got, elements, call, f"with in_axes={axes}")


@check("nested_vmap", "vmap", limit=3)
def check_nested_vmap(call: Call, rng: np.random.Generator) -> None:
    """vmap of vmap gives what two loops give, for every pair of choices of batched operands."""
    fronts = [axes for axes in choices(call) if -1 not in axes][:7]
    for inner_axes, outer_axes in itertools.product(fronts, fronts):
        grids = []
        for values in batch(call, inner_axes, rng, 2)[1]:
            grids.append(values)
        inner_values, inner_elements = _stacked(grids, inner_axes)
        # A batch of batches: an operand mapped outside differs by its order.
        flipped = [v[::-1] if axis is not None else v for v, axis in zip(inner_values, inner_axes, strict=True)]
        outer = [
            np.stack([a, b]) if axis is not None else a
            for a, b, axis in zip(inner_values, flipped, outer_axes, strict=True)
        ]
        fun = corejax.vmap(corejax.vmap(call.__call__, in_axes=inner_axes), in_axes=outer_axes)
        got = host(fun(*outer))
        rows = [inner_elements, _flipped_elements(inner_elements, inner_axes, outer_axes)]
        for k, row in enumerate(rows):
            _agree([out[k] for out in got], row, call, f"with in_axes={inner_axes} inside in_axes={outer_axes}")


def _stacked(elements: list[list[Array]], axes: Axes) -> tuple[list[Array], list[list[Array]]]:
    values = [np.stack([e[i] for e in elements]) if a is not None else elements[0][i] for i, a in enumerate(axes)]
    return values, elements


def _flipped_elements(elements: list[list[Array]], inner_axes: Axes, outer_axes: Axes) -> list[list[Array]]:
    count = len(elements)
    return [
        [
            elements[count - 1 - k][i] if inner is not None and outer is not None else elements[k][i]
            for i, (inner, outer) in enumerate(zip(inner_axes, outer_axes, strict=True))
        ]
        for k in range(count)
    ]
