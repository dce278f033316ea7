"""Right rules pass every check."""

from __future__ import annotations

import pytest

from corejax_testing import verify
from tests.testing_kit.toys import EXAMPLES, toy


@pytest.mark.parametrize("name", EXAMPLES)
def test_right_rules_pass(name: str) -> None:
    with toy(name) as primitive:
        results = list(verify(primitive, EXAMPLES[name]))
    assert not [result.report() for result in results if result.failed]
    assert sum(result.status == "passed" for result in results) >= 15
