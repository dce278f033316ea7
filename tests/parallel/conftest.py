"""Tests here have eight CPU devices, corejax's and jax's: how many there are is fixed at their first use, so they run
in a process of their own. Devices are asked for inside of tests and fixtures.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.own_process import CHILD

HERE = Path(__file__).parent

if CHILD:  # before corejax and jax are imported
    os.environ["COREJAX_NUM_CPU_DEVICES"] = "8"
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"


def pytest_itemcollected(item: pytest.Item) -> None:
    """The tests run in one process, apart from the others."""
    if HERE in item.path.parents:
        item.add_marker(pytest.mark.own_process(shared=True))


@pytest.fixture(autouse=True)
def eight_devices() -> Iterator[None]:
    """Fail, rather than test nothing, where there are fewer."""
    import corejax

    assert corejax.device_count("cpu") == 8
    yield
