"""The toy plugin for the tests that ask for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import corejax
from tests.kernel import toys as toy_plugin
from tests.kernel.plugin_sites import fresh, site  # noqa: F401  # fixtures


@pytest.fixture(autouse=True)
def all_plugins_of_a_test_are_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--plain` switches off an installed plugin, which managers of a test's own plugins do not find."""
    corejax.plugins.manager().discover()
    monkeypatch.delenv("COREJAX_PLUGINS", raising=False)


@pytest.fixture
def toys() -> Iterator[None]:
    """The toy plugin as the only one, for one test."""
    with toy_plugin.installed():
        toy_plugin.printed.clear()
        yield
