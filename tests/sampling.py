"""The marker `sampled`: of a product of parameters, the default run takes a part, and `make test-slow` the rest.

Each value of each parameter is in the part: each function with some dtypes, say, and each dtype with some functions. It
is the same part in every run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Any

import pytest

ONE_IN = 5


def mark_the_rest_slow(items: Iterable[pytest.Item]) -> None:
    """Mark what is not in the part `slow`; `-m` chooses then."""
    tests = defaultdict(list)
    for item in items:
        marked = item.get_closest_marker("sampled") is not None and item.get_closest_marker("slow") is None
        if marked and hasattr(item, "callspec"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        kept = part([case.callspec.params for case in cases])
        for number, case in enumerate(cases):
            if number not in kept:
                case.add_marker(pytest.mark.slow)


def part(cases: list[dict[str, Any]]) -> set[int]:
    """Numbers of the cases in the part.

    Every fifth one along each axis of the product, and those with a value that is in none of these.
    """
    orders: defaultdict[str, dict[Hashable, int]] = defaultdict(dict)
    places = []
    for case in cases:
        keys = {name: _key(value) for name, value in case.items()}
        places.append({name: orders[name].setdefault(key, len(orders[name])) for name, key in keys.items()})
    kept = {number for number, place in enumerate(places) if sum(place.values()) % ONE_IN == 0}
    seen = {value for number in kept for value in places[number].items()}
    for number, place in enumerate(places):
        if not seen.issuperset(place.items()):
            kept.add(number)
            seen.update(place.items())
    return kept


def _key(value: Any) -> Hashable:
    """A value, or the object where it has no hash."""
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value), value
