"""Flat lists in two parts: what the rules of higher-order primitives do with operands all day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


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


__all__ = ["merge_lists", "partition_list", "split_list"]
