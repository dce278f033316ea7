"""What pytest gets: the fixture `isolated_plugins`. corejax is imported only where it is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def isolated_plugins() -> Iterator[Any]:
    """A plugin manager with no plugins; what the test registers, with it or directly, is gone afterwards.

    `isolated_plugins.register(plugin, "name")` adds a plugin object: a module or any object with hooks.
    """
    from corejax.extend import isolated_plugins

    with isolated_plugins() as manager:
        yield manager
