"""Wheels of the first-party distributions, built once."""

from __future__ import annotations

import pytest

from tests.packaging.building import (
    PROJECTS,
    ROOT,
    Environment,
    Wheels,
    build,
    built,
    fresh_environment,
    made_once,
)


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """All first-party distributions."""
    projects = {name: ROOT / directory for name, directory in PROJECTS.items()}
    return built(made_once(tmp_path_factory, "wheels-of-all", lambda place: build(projects, place)))


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory, wheels: Wheels) -> Environment:
    """All first-party distributions, installed from their wheels."""
    make = lambda place: fresh_environment(place / "venv", wheels, PROJECTS)
    return Environment(made_once(tmp_path_factory, "environment-of-all", make) / "venv")
