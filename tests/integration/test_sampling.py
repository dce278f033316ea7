"""The part of a product that the default run takes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from tests.sampling import AT_LEAST, ONE_IN, part


def _part(cases: Sequence[dict[Any, Any]]) -> set[int]:
    return part(cases, [str(case) for case in cases])


@pytest.mark.parametrize("sizes", [(7, 4), (3, 3, 5), (1, 9), (2, 1), (10, 9, 8)])
def test_every_value_of_every_parameter_is_in_the_part(sizes: tuple[int, ...]) -> None:
    cases = [dict(enumerate(values)) for values in itertools.product(*map(range, sizes))]
    kept = [cases[number] for number in _part(cases)]
    for axis, size in enumerate(sizes):
        assert {case[axis] for case in kept} == set(range(size))
    assert len(kept) == max(min(AT_LEAST, -(-len(cases) // ONE_IN)), *sizes)


def test_values_without_a_hash_are_told_apart() -> None:
    values = [[0], [0], [1]]
    cases = [{"value": value, "flag": flag} for value in values for flag in (True, False)]
    assert {id(cases[number]["value"]) for number in _part(cases)} == set(map(id, values))


@pytest.mark.parametrize("second", range(6))
@pytest.mark.parametrize(("first", "also"), [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3)])
def test_a_product_is_cut_unasked(first: int, also: int, second: int, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("-m") == "not slow":
        cases = [item for item in request.session.items if item.originalname == request.node.originalname]
        assert len(cases) <= 6
