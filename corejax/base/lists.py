"""Operations on flat lists, and fixed points of flags, for the rules of higher-order primitives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def partition_list(flags: Sequence[bool], items: Sequence[T]) -> tuple[list[T], list[T]]:
    """Split items into those without the flag and those with it, in order; the inverse of `merge_lists`.

    Raises:
        ValueError: the numbers of flags and items differ.
    """
    parts: tuple[list[T], list[T]] = ([], [])
    for flag, item in zip(flags, items, strict=True):
        parts[bool(flag)].append(item)
    return parts


def merge_lists(flags: Sequence[bool], without: Iterable[T], flagged: Iterable[T]) -> list[T]:
    """Merge two lists: take the next item of `flagged` for each flag that is set, and of `without` for the others.

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
    """Return the items with the flag; the inverse of `spread_list`.

    Raises:
        ValueError: the numbers of flags and items differ.
    """
    return [item for flag, item in zip(flags, items, strict=True) if flag]


def spread_list(flags: Sequence[bool], flagged: Iterable[T]) -> list[T | None]:
    """Return one item for each flag: the next of `flagged` if the flag is set, else None.

    Raises:
        ValueError: there are too few or too many items.
    """
    return merge_lists(flags, [None for flag in flags if not flag], flagged)


def split_list(items: Sequence[T], lengths: Sequence[int]) -> list[list[T]]:
    """Split items into consecutive pieces of the given lengths, and one more piece with the rest.

    Raises:
        ValueError: there are too few items.
    """
    if sum(lengths) > len(items):
        raise ValueError(f"{len(items)} items cannot be cut into pieces of lengths {list(lengths)}")
    rest = iter(items)
    return [*[list(islice(rest, length)) for length in lengths], list(rest)]


def unzip_map(fun: Callable[[Any], tuple[T, R]], items: Iterable[object]) -> tuple[list[T], list[R]]:
    """Return the first and the second items of the pairs that a function returns for each of some items."""
    firsts, seconds = [], []
    for item in items:
        first, second = fun(item)
        firsts.append(first)
        seconds.append(second)
    return firsts, seconds


def fixpoint(
    step: Callable[[list[T]], tuple[Sequence[T], R]],
    items: Iterable[T],
    join: Callable[[T, T], Any] = lambda flag, new_flag: bool(flag or new_flag),
) -> tuple[list[T], R]:
    """Repeat a step until no flag changes: determine which carries of a loop have tangents, are batched or unknown.

        def push(nonzeros):
            pushed, nonzeros_out = jvp_jaxpr(body, nonzeros, instantiate=nonzeros)
            return nonzeros_out, pushed

        nonzeros, pushed = fixpoint(push, nonzeros)

    Args:
        step: maps the flags so far to the flags that follow from them, and any other result.
        items: the initial flags; or types of carries, or other items that `join` accepts.
        join: combines an item with the new item that `step` returned, by default with `or`. An item may change once:
            a flag that is set stays set.

    Returns:
        The final flags, and the other result of `step` for them.

    Raises:
        ValueError: `step` returns more or fewer items than it takes, or an item changes more than once.
    """
    items = list(items)
    for _ in range(len(items) + 1):  # each round but the last changes at least one item
        new_items, result = step(list(items))
        joined = [join(a, b) for a, b in zip(items, new_items, strict=True)]
        if joined == items:
            return items, result
        items = joined
    raise ValueError(f"fixpoint: after {len(items) + 1} rounds for {len(items)} items they still change, to {items!r}")
