"""Right rules pass every check."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corejax_testing import verify
from tests.testing_kit.toys import EXAMPLES, toy


@pytest.mark.parametrize("name", EXAMPLES)
def test_right_rules_pass(name: str) -> None:
    with toy(name) as primitive:
        results = list(verify(primitive, EXAMPLES[name]))
    assert not [result.report() for result in results if result.failed]
    assert sum(result.status == "passed" for result in results) >= 15


def test_failures_by_design_have_to_fail() -> None:
    (example, *_) = EXAMPLES["toy.mulsin"]
    with toy("toy.mulsin") as primitive:
        wrong = replace(example, reference=lambda x, y: x, fails={"values": "the reference is another function"})
        (result,) = verify(primitive, [wrong], checks=["values"])
        assert (result.status, result.message) == (
            "not applicable",
            "fails, as it should: the reference is another function",
        )
        (result,) = verify(primitive, [replace(example, fails={"values": "by mistake"})], checks=["values"])
        assert result.failed and "does not fail, though it was said to: by mistake" in result.message
