"""Of products of parameters the default run takes a part, and `make test-slow` the rest.

Each value of each parameter is in the part: each function with some dtype, say, and each dtype with some function. It
is the same part in every run. A test with the marker `sampled` is cut however it lists its cases; one without it where
it has two decorators or more and many cases, each of a decorator's own cases staying in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import Any
from zlib import crc32

import pytest

ONE_IN = 5
AT_LEAST = 12  # where a fifth is no less, and values do not ask for more
MANY = 24  # more cases than these are cut, unasked


def thin(metafunc: pytest.Metafunc) -> None:
    """Before they are made, leave out cases that `-m "not slow"` would: they are most of all there are."""
    calls = metafunc._calls
    if len(calls) < 2:
        return
    test = metafunc.definition
    if test.get_closest_marker("slow") is not None:
        del calls[1:]  # with none at all, it would be a test without parameters
        return
    quick = [call for call in calls if all(mark.name != "slow" for mark in call.marks)]
    kept = _part_of(test, quick)
    calls[:] = [call for number, call in enumerate(quick) if number in kept] or calls[:1]


def mark_the_rest_slow(items: Iterable[pytest.Item]) -> None:
    """Mark what is not in the part `slow`; `-m` chooses then."""
    tests = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and item.get_closest_marker("slow") is None:
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        kept = _part_of(cases[0], [case.callspec for case in cases])
        for number, case in enumerate(cases):
            if number not in kept:
                case.add_marker(pytest.mark.slow)


def _part_of(test: pytest.Item, calls: Sequence[Any]) -> set[int]:
    """Numbers of the calls of a test in its part: all, if it is not to be cut."""
    if test.get_closest_marker("sampled") is not None:
        return part([call.params for call in calls], [call.id for call in calls])
    if len(calls) > MANY:
        axes = _axes(test, list(calls[0].params))
        if len(axes) > 1:
            cases = [{axis: tuple(_key(call.params.get(name)) for name in axis) for axis in axes} for call in calls]
            return part(cases, [call.id for call in calls])
    return set(range(len(calls)))


def _axes(test: pytest.Item, names: list[str]) -> list[tuple[str, ...]]:
    """Parameters by decorator, and those of fixtures."""
    axes = []
    for marker in test.iter_markers("parametrize"):
        given = marker.args[0] if marker.args else marker.kwargs["argnames"]
        axis = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)
        axes.append(tuple(name for name in axis if name in names))
    taken = {name for axis in axes for name in axis}
    return [axis for axis in axes if axis] + [(name,) for name in names if name not in taken]


def part(cases: Sequence[dict[Any, Any]], names: Sequence[str]) -> set[int]:
    """Numbers of the cases in the part: as few as have all values, and more by their names' hashes."""
    places = [{(axis, _key(value)) for axis, value in case.items()} for case in cases]
    order = sorted(range(len(cases)), key=lambda number: crc32(names[number].encode()))
    kept: set[int] = set()
    seen: set[Hashable] = set()
    for new in range(max(map(len, places), default=0), 0, -1):
        for number in order:
            if number not in kept and len(places[number] - seen) >= new:
                kept.add(number)
                seen |= places[number]
    size = min(AT_LEAST, -(-len(cases) // ONE_IN))
    rest = [number for number in order if number not in kept]
    return kept.union(rest[: max(0, size - len(kept))])


def _key(value: Any) -> Hashable:
    """A value, or the object where it has no hash."""
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value), value
