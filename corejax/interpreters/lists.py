"""Flat lists in parts, and flags that grow until nothing changes: what rules of higher-order primitives do all day."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def partition_list(flags: Sequence[bool], items: Sequence[T]) -> tuple[list[T], list[T]]:
    """The items without the flag and those with it, each in order; `merge_lists` undoes it.

    Raises:
        ValueError: the numbers of flags and items differ.
    """
    parts: tuple[list[T], list[T]] = ([], [])
    for flag, item in zip(flags, items, strict=True):
        parts[bool(flag)].append(item)
    return parts


def merge_lists(flags: Sequence[bool], without: Iterable[T], flagged: Iterable[T]) -> list[T]:
    """One list from two: the next item of `flagged` where the flag is set, of `without` elsewhere.

    Raises:
        ValueError: a list has too few or too many items.
    """
    sources = (list(without), list(flagged))
    count = sum(map(bool, flags))
    if (len(sources[0]), len(sources[1])) != (len(flags) - count, count):
        raise ValueError(
            f"{len(flags)} flags, {count} of them set, were given {len(sources[0])} and {len(sources[1])} items"
        )
    first, second = map(iter, sources)
    return [next(second) if flag else next(first) for flag in flags]


def select_list(flags: Iterable[bool], items: Iterable[T]) -> list[T]:
    """The items with the flag; `spread_list` undoes it.

    Raises:
        ValueError: the numbers of flags and items differ.
    """
    return [item for flag, item in zip(flags, items, strict=True) if flag]


def spread_list(flags: Sequence[bool], flagged: Iterable[T]) -> list[T | None]:
    """One item for each flag: the next of `flagged` where it is set, None elsewhere.

    Raises:
        ValueError: there are too few or too many items.
    """
    return merge_lists(flags, [None] * (len(flags) - sum(map(bool, flags))), flagged)


def split_list(items: Sequence[T], lengths: Sequence[int]) -> list[list[T]]:
    """Consecutive pieces of the given lengths, and what is left as one more.

    Raises:
        ValueError: there are too few items.
    """
    if sum(lengths) > len(items):
        raise ValueError(f"{len(items)} items cannot be cut into pieces of lengths {list(lengths)}")
    pieces: list[list[T]] = []
    start = 0
    for length in lengths:
        pieces.append(list(items[start : start + length]))
        start += length
    return [*pieces, list(items[start:])]


def fixpoint(step: Callable[[list[bool]], tuple[Sequence[bool], R]], flags: Iterable[bool]) -> tuple[list[bool], R]:
    """Set flags until nothing changes: which carries of a loop have a tangent, are batched, are unknown.

        def push(nonzeros):
            pushed, nonzeros_out = jvp_jaxpr(body, nonzeros, instantiate=nonzeros)
            return nonzeros_out, pushed

        nonzeros, pushed = fixpoint(push, nonzeros)

    Args:
        step: from the flags so far to the flags that follow from them, and whatever it made. Flags that it does not
            give back stay set, so there are at most as many rounds as flags, and one more.
        flags: the first flags.

    Returns:
        The flags from which no more follow, and what `step` made of them.

    Raises:
        ValueError: `step` gives more or fewer flags than it takes.
    """
    flags = list(map(bool, flags))
    while True:
        found, made = step(list(flags))
        grown = [a or bool(b) for a, b in zip(flags, found, strict=True)]
        if grown == flags:
            return flags, made
        flags = grown


__all__ = ["fixpoint", "merge_lists", "partition_list", "select_list", "split_list", "spread_list"]
