"""What tests of the kit share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from corejax.base.tables import restore, snapshot
from corejax.extend import primitives
from tests.kernel.plugin_sites import fresh, site  # noqa: F401  # fixtures


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """Primitives, rules and whatever else a test registers are taken back after it."""
    before = snapshot()
    yield
    restore(before)


@pytest.fixture(autouse=True)
def no_toy_is_left() -> Iterator[None]:
    """Fail a test that leaves a primitive behind: a later test of plugins would take it for one of its own."""
    before = set(primitives)
    yield
    left = [name for name in primitives if name.startswith("toy.") and name not in before]
    if left:
        pytest.fail(f"the test left primitives behind: {', '.join(left)}", pytrace=False)
