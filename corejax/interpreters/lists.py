"""Flat lists in parts, and flags that grow until nothing changes: what rules of higher-order primitives do all day."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

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
    without, flagged = list(without), list(flagged)
    count = sum(map(bool, flags))
    if len(flagged) != count or len(without) != len(flags) - count:
        raise ValueError(f"{len(flags)} flags, {count} of them set, were given {len(without)} and {len(flagged)} items")
    first, second = iter(without), iter(flagged)
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
    flagged = list(flagged)
    count = sum(map(bool, flags))
    if len(flagged) != count:
        raise ValueError(f"{len(flags)} flags, {count} of them set, were given {len(flagged)} items")
    items = iter(flagged)
    return [next(items) if flag else None for flag in flags]


def split_list(items: Sequence[T], lengths: Sequence[int]) -> list[list[T]]:
    """Consecutive pieces of the given lengths, and what is left as one more.

    Raises:
        ValueError: there are too few items.
    """
    if sum(lengths) > len(items):
        raise ValueError(f"{len(items)} items cannot be cut into pieces of lengths {list(lengths)}")
    rest = iter(items)
    return [*(list(islice(rest, length)) for length in lengths), list(rest)]


def _either(flag: Any, found: Any) -> Any:
    return bool(flag or found)


def fixpoint(
    step: Callable[[list[T]], tuple[Sequence[T], R]], items: Iterable[T], join: Callable[[T, T], T] = _either
) -> tuple[list[T], R]:
    """Set flags until nothing changes: which carries of a loop have a tangent, are batched, are unknown.

        def push(nonzeros):
            pushed, nonzeros_out = jvp_jaxpr(body, nonzeros, instantiate=nonzeros)
            return nonzeros_out, pushed

        nonzeros, pushed = fixpoint(push, nonzeros)

    Args:
        step: from the flags so far to the flags that follow from them, and whatever it made.
        items: the first flags; or types of carries, or whatever `join` is for.
        join: what an item becomes, from what it is and what `step` found for it. Once it has changed, it has to stay:
            a flag that is set is not taken back.

    Returns:
        The flags from which no more follow, and what `step` made of them.

    Raises:
        ValueError: `step` gives more or fewer items than it takes, or an item changes more than once.
    """
    items = list(items)
    for _ in range(len(items) + 1):  # in each round but the last one item changes, or several do
        found, made = step(list(items))
        joined = [join(a, b) for a, b in zip(items, found, strict=True)]
        if joined == items:
            return items, made
        items = joined
    raise ValueError(f"fixpoint: after {len(items) + 1} rounds for {len(items)} items they still change, to {items!r}")
