"""Axes of different lengths: an order of axes that is wrong shows only where lengths differ."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from corejax.extend import Example, ShapedArray

Axis = tuple[int, int]  # operand, axis of it
Lengths = dict[Axis, int]


def with_distinct_lengths(example: Example, takes: Callable[[Sequence[ShapedArray]], bool]) -> list[ShapedArray] | None:
    """The operands with axes of lengths that differ wherever they may; axes of length 1 stay.

    Args:
        example: an application whose operands are all types.
        takes: whether operands of these types are accepted.

    Returns:
        The operands, or None where lengths differ already as far as they may.
    """
    lengths: Lengths = {(i, k): n for i, x in enumerate(example.operands) for k, n in enumerate(x.shape) if n > 1}
    if len(set(lengths.values())) == len(lengths):
        return None
    groups, rest = [], list(lengths)
    while rest:
        group = next((g for g in _together(rest, lengths) if takes(_operands(example, _longer(lengths, g)))), None)
        rest = [axis for axis in rest if axis != rest[0] and axis not in (group or ())]
        if group is not None:
            groups.append(group)
    chosen, used = dict(lengths), set(lengths.values()) - {lengths[a] for g in groups for a in g}
    for group in sorted(groups, key=lambda g: lengths[g[0]]):
        length = next(n for n in itertools.count(lengths[group[0]]) if n not in used)
        used.add(length)
        chosen.update(dict.fromkeys(group, length))
    operands = _operands(example, chosen)
    return operands if chosen != lengths and takes(operands) else None


def _together(rest: Sequence[Axis], lengths: Lengths) -> Iterator[tuple[Axis, ...]]:
    """The first axis alone, with each other of its length, with all of them."""
    first = rest[0]
    same = [axis for axis in rest[1:] if lengths[axis] == lengths[first]]
    yield (first,)
    yield from ((first, other) for other in same)
    if len(same) > 1:
        yield (first, *same)


def _longer(lengths: Lengths, group: Sequence[Axis]) -> Lengths:
    return {axis: n + (axis in group) for axis, n in lengths.items()}


def _operands(example: Example, lengths: Lengths) -> list[ShapedArray]:
    return [
        x.update(shape=tuple(lengths.get((i, k), n) for k, n in enumerate(x.shape)))
        for i, x in enumerate(example.operands)
    ]
