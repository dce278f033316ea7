"""Wheels of the first-party distributions, built once."""

from __future__ import annotations

import pytest

from tests.packaging.building import PROJECTS, ROOT, Wheels, build, built, made_once


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """All first-party distributions."""
    projects = {name: ROOT / directory for name, directory in PROJECTS.items()}
    return built(made_once(tmp_path_factory, "wheels-of-all", lambda place: build(projects, place)))
