"""The part of a product that the default run takes."""

from __future__ import annotations

import itertools

import pytest

from tests.sampling import ONE_IN, part


@pytest.mark.parametrize("sizes", [(7, 4), (3, 3, 5), (1, 9), (2, 1)])
def test_every_value_of_every_parameter_is_in_the_part(sizes: tuple[int, ...]) -> None:
    cases = [dict(enumerate(values)) for values in itertools.product(*map(range, sizes))]
    kept = [cases[number] for number in part(cases)]
    for axis, size in enumerate(sizes):
        assert {case[axis] for case in kept} == set(range(size))
    assert len(kept) <= max(-(-len(cases) // ONE_IN) + 1, *sizes)


def test_values_without_a_hash_are_told_apart() -> None:
    values = [[0], [0], [1]]
    cases = [{"value": value, "flag": flag} for value in values for flag in (True, False)]
    assert {id(cases[number]["value"]) for number in part(cases)} == set(map(id, values))
