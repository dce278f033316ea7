"""What pytest gets: the fixture `isolated_plugins`, the option `--corejax-devices`. corejax is imported only where it
is used."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many devices the CPU passes for."""
    help_text = "have the CPU pass for so many devices in tests that use corejax"
    parser.getgroup("corejax").addoption("--corejax-devices", type=int, default=None, metavar="N", help=help_text)


def pytest_configure(config: pytest.Config) -> None:
    """Set before anything uses a device, also in processes that tests start."""
    count = config.getoption("--corejax-devices")
    if count is not None:
        os.environ["COREJAX_NUM_CPU_DEVICES"] = str(count)
        if "corejax" in sys.modules:
            sys.modules["corejax"].config.update("num_cpu_devices", count)


@pytest.fixture
def isolated_plugins() -> Iterator[Any]:
    """A plugin manager with no plugins; what the test registers, with it or directly, is gone afterwards.

    `isolated_plugins.register(plugin, "name")` adds a plugin object: a module or any object with hooks.
    """
    from corejax.extend.plugins import isolated_plugins

    with isolated_plugins() as manager:
        yield manager
