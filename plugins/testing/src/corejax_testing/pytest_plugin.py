"""The pytest plugin: the fixture `isolated_plugins` and the option `--corejax-devices`.

corejax is imported only in the functions that use it, so that other test suites do not pay for the import.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--corejax-devices`."""
    help_text = "split the CPU into this many devices in tests that use corejax"
    parser.getgroup("corejax").addoption("--corejax-devices", type=int, default=None, metavar="N", help=help_text)


def pytest_configure(config: pytest.Config) -> None:
    """Set the number of CPU devices before any device is used, for this process and those that tests start."""
    count = config.getoption("--corejax-devices")
    if count is not None:
        os.environ["COREJAX_NUM_CPU_DEVICES"] = str(count)
        if "corejax" in sys.modules:
            sys.modules["corejax"].config.update("num_cpu_devices", count)


@pytest.fixture
def isolated_plugins() -> Iterator[Any]:
    """Yield a plugin manager without plugins, and undo all registrations after the test.

    `isolated_plugins.register(plugin, "name")` adds a plugin object: a module or any object with hooks.
    """
    from corejax.extend.plugins import isolated_plugins

    with isolated_plugins() as manager:
        yield manager
