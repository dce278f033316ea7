"""The toy plugin for the tests that ask for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kernel import toys as toy_plugin
from tests.kernel.plugin_sites import fresh, site  # noqa: F401  # fixtures


@pytest.fixture
def toys() -> Iterator[None]:
    """The toy plugin as the only one, for one test."""
    with toy_plugin.installed():
        toy_plugin.printed.clear()
        yield
