"""What tests of the kit share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from corejax.base.tables import restore, snapshot
from tests.kernel.plugin_sites import fresh, site  # noqa: F401  # fixtures


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """Primitives, rules and whatever else a test registers are taken back after it."""
    before = snapshot()
    yield
    restore(before)
