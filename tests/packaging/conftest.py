"""Wheels of the first-party distributions, built once."""

from __future__ import annotations

import pytest

from tests.packaging.building import PROJECTS, ROOT, Wheels, build


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """All first-party distributions."""
    return build({name: ROOT / directory for name, directory in PROJECTS.items()}, tmp_path_factory.mktemp("build"))
