"""Check the vmap rule against a loop, for every choice of batched operands and axes, and nested."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

import corejax
from corejax_testing.arrays import Array, compare_each, tolerance, wide
from corejax_testing.calls import Call, host
from corejax_testing.checks.registry import check
from corejax_testing.diagnosis import diagnose
from corejax_testing.operands import admits
from corejax_testing.outcomes import CheckFailure, NotApplicable
from corejax_testing.variations import ALIKE

_SIZE = ALIKE  # the size of batches, equal to the length of many axes, so that mixed-up axes are not rejected by shape
_OTHER_SIZE = 5  # a size of batches that axes rarely have, for a rule that only works for equal lengths
_MOST = 5  # the number of operands for which all choices are tried
_MOST_AXES = 16  # the number of choices of axes up to which all are tried

Axes = tuple[int | None, ...]


def choices(call: Call) -> list[Axes]:
    """Return every choice of batched operands and, if there are few, every choice of their batch axes.

    If there are many choices of axes, the batch axis is in front, at the end, and mixed.

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
    found.update(dict.fromkeys(_every_axis(call)))
    return list(found)


def _every_axis(call: Call) -> list[Axes]:
    """Return every combination of batch axes (None among them), or nothing if there are too many."""
    ranges = [(None, *range(x.ndim + 1)) for x in call.values]
    if math.prod(map(len, ranges)) > _MOST_AXES:
        return []
    last = [x.ndim for x in call.values]
    every = [axes for axes in itertools.product(*ranges) if any(a is not None for a in axes)]
    # Write the last axis as -1, so that these choices are equal to those made by `choices`.
    return [tuple(-1 if a == n and n else a for a, n in zip(axes, last, strict=True)) for axes in every]


def batch(call: Call, axes: Axes, rng: np.random.Generator, size: int = _SIZE) -> tuple[list[Array], list[list[Array]]]:
    """Return operands with batch axes, and the operands of each element of the batch."""
    kept = [i for i, axis in enumerate(axes) if axis is None]
    others = [call, *(call.again(rng, kept) for _ in range(size - 1))]
    elements = [
        [other.values[i] if axis is not None else call.values[i] for i, axis in enumerate(axes)] for other in others
    ]
    stacked = [
        call.values[i] if axis is None else np.stack([e[i] for e in elements], axis) for i, axis in enumerate(axes)
    ]
    return stacked, elements


def _agree(got: Sequence[Array], elements: Sequence[Sequence[Array]], call: Call, what: str) -> None:
    for k, values in enumerate(elements):
        compare_each([out[k] for out in got], host(call(*values)), f"element {k} of result", f" {what}", "vmap",
                     scale=4 * call.example.tolerance)  # fmt: skip


def _require_shape(out: Array, right: tuple[int, ...], axes: Axes) -> None:
    if out.shape != right:
        raise CheckFailure(f"the result's shape with in_axes={axes} is {out.shape}, but {right} is right", "vmap",
                           diagnose(out, np.broadcast_to(out.dtype.type(0), right)))  # fmt: skip


@check("vmap", "vmap", dtypes=True, shapes=True, long=True)
def check_vmap(call: Call, rng: np.random.Generator) -> None:
    """Check that vmap agrees with a loop, for every choice of batched operands and axes, and several sizes."""
    every = choices(call)
    by_operands = {tuple(axis is None for axis in axes): axes for axes in every}
    others = [*((axes, _OTHER_SIZE) for axes in by_operands.values()), (every[-1], 1)]
    for axes, size in [*((axes, _SIZE) for axes in every), *others]:
        values, elements = batch(call, axes, rng, size)
        got = host(corejax.vmap(call.__call__, in_axes=axes)(*values))
        for out, aval in zip(got, call.avals_out, strict=True):
            _require_shape(out, (size, *aval.shape), axes)
        try:
            _agree(got, elements, call, f"with in_axes={axes}")
        except CheckFailure as failure:
            raise CheckFailure(str(failure), "vmap", _misplaced(got, elements, call) or failure.hint) from None


def _misplaced(got: Sequence[Array], elements: Sequence[Sequence[Array]], call: Call) -> str:
    """Return a hint if all numbers of a batch are right, but the rule returns the wrong position of the batch axis."""
    rights = [np.stack(outs) for outs in zip(*(host(call(*values)) for values in elements), strict=True)]
    for i, (out, right) in enumerate(zip(got, rights, strict=True)):
        bound = 4 * call.example.tolerance * tolerance(right.dtype)
        for said, actual in itertools.permutations(range(out.ndim), 2):
            moved = np.moveaxis(np.moveaxis(out, 0, said), actual, 0)
            if moved.shape == right.shape and np.allclose(wide(moved), wide(right), rtol=bound, atol=bound):
                return f"the numbers are right, but the batch of result {i} is at another axis than the rule returns"
    return ""


@check("nested_vmap", "vmap", limit=3)
def check_nested_vmap(call: Call, rng: np.random.Generator) -> None:
    """Check that vmap of vmap agrees with two loops, for every pair of choices of batched operands."""
    fronts = [axes for axes in choices(call) if set(axes) <= {None, 0}][:7]
    for inner_axes, outer_axes in itertools.product(fronts, fronts):
        inner_values, inner_elements = batch(call, inner_axes, rng, 2)
        # A batch of two batches: the second has the elements in reverse order.
        flipped = [v[::-1] if axis is not None else v for v, axis in zip(inner_values, inner_axes, strict=True)]
        outer = [
            np.stack([a, b]) if axis is not None else a
            for a, b, axis in zip(inner_values, flipped, outer_axes, strict=True)
        ]
        fun = corejax.vmap(corejax.vmap(call.__call__, in_axes=inner_axes), in_axes=outer_axes)
        got = host(fun(*outer))
        rows = [inner_elements, _flipped_elements(inner_elements, inner_axes, outer_axes)]
        if not all(admits(call.example, values) for row in rows for values in row):
            continue
        for k, row in enumerate(rows):
            _agree([out[k] for out in got], row, call, f"with in_axes={inner_axes} inside in_axes={outer_axes}")


def _flipped_elements(elements: list[list[Array]], inner_axes: Axes, outer_axes: Axes) -> list[list[Array]]:
    mapped = [inner is not None and outer is not None for inner, outer in zip(inner_axes, outer_axes, strict=True)]
    pairs = zip(elements, reversed(elements), strict=True)
    return [[y if both else x for x, y, both in zip(*pair, mapped, strict=True)] for pair in pairs]
