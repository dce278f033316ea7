"""The example plugins as a third party publishes them: wheels, installed beside the kernel's, and verified there.

Whatever is in examples/plugins takes part. What needs no wheel is tested by tests/examples/test_plugins.py.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.building import (
    EXAMPLES,
    Environment,
    Wheels,
    build,
    built,
    distribution_of,
    fresh_environment,
    made_once,
)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="makes symbolic links")

OURS = ("fixed_point", "linear_recurrence", "quantised", "running_statistics", "special_functions", "toeplitz")
WITHOUT_RULES = ("numpy_backend",)
QUICKLY = ("toeplitz",)  # the others take longer; test_verified has all of them, in full
examples = pytest.mark.parametrize("plugin", EXAMPLES)


@pytest.fixture(scope="session")
def example_wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """A wheel of each example."""
    projects = {distribution_of(project): project for project in EXAMPLES.values()}
    return built(made_once(tmp_path_factory, "wheels-of-examples", lambda place: build(projects, place)))


@pytest.fixture(scope="session")
def environment(
    tmp_path_factory: pytest.TempPathFactory, wheels: Wheels, example_wheels: Wheels, everything: Environment
) -> Environment:
    """The examples, beside the kernel and the first-party plugins, with what the examples' tests need."""
    every = Wheels(wheels.files | example_wheels.files)
    make = lambda place: fresh_environment(place / "venv", every, example_wheels.files, "test", everything)
    return Environment(made_once(tmp_path_factory, "environment-with-examples", make) / "venv")


def corejax(environment: Environment, *arguments: str) -> str:
    """Run the command; its script is in the environment above."""
    return environment.run("python", "-m", "corejax", *arguments)


def test_there_are_examples() -> None:
    assert EXAMPLES.keys() >= set(OURS)


@examples
def test_wheel(example_wheels: Wheels, plugin: str) -> None:
    name = distribution_of(EXAMPLES[plugin])
    package = name.replace("-", "_")
    contents = example_wheels.contents(name)
    assert {entry.split("/")[0].split("-")[0] for entry in contents} == {package}
    sources = EXAMPLES[plugin] / "src" / package
    wanted = {f"{package}/{file.relative_to(sources).as_posix()}" for file in sources.rglob("*.py")}
    assert wanted | {f"{package}/py.typed", f"{package}/corejax_manifest.json"} <= contents
    assert "Permission is hereby" in (text := example_wheels.text(name, "licenses/LICENSE")) or "Apache License" in text
    assert f"{plugin} = {package}.plugin" in example_wheels.text(name, "entry_points.txt")


@pytest.fixture(scope="session")
def listed(environment: Environment) -> list[dict[str, Any]]:
    """What `corejax plugins` says of each plugin."""
    return json.loads(corejax(environment, "plugins", "--json"))["plugins"]


@pytest.fixture(scope="session")
def primitives(listed: list[dict[str, Any]]) -> dict[str, int]:
    """Plugin -> how many primitives it has, of those that were loaded."""
    return {row["name"]: row["primitives"] for row in listed if row["status"] == "loaded"}


@pytest.mark.slow
def test_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CC", "CXX", "LDSHARED"):
        monkeypatch.setenv(name, "/nonexistent/compiler")
    name = distribution_of(EXAMPLES["linear_recurrence"])
    contents = build({name: EXAMPLES["linear_recurrence"]}, tmp_path).contents(name)
    assert "corejax_linear_recurrence/kernels.py" in contents
    assert not any("_kernel" in entry for entry in contents)


def test_they_are_found(primitives: dict[str, int]) -> None:
    assert EXAMPLES.keys() <= primitives.keys()
    assert [primitives[name] for name in OURS] == [1, 1, 3, 2, 2, 1]


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_the_c_kernel_is_built(environment: Environment) -> None:
    program = "from corejax_linear_recurrence import kernels; print(kernels.COMPILED)"
    assert environment.run("python", "-c", program).split() == ["True"]


# The exit status of `corejax verify` is the verdict; `run` asserts that it is 0.


def test_verified_quickly(environment: Environment, primitives: dict[str, int]) -> None:
    table = corejax(environment, "verify", "--quick", *QUICKLY)
    assert all(f"{name}." in table for name in QUICKLY)
    assert f"# {sum(primitives[name] for name in QUICKLY)} primitive" in table
    assert all(f"✓ {name}: manifest" in table for name in QUICKLY)
    assert " interval " in table  # a check of another example


def test_manifests_are_read_in_place_of_the_code(listed: list[dict[str, Any]]) -> None:
    assert {row["name"]: row["manifest"] for row in listed if row["name"] in EXAMPLES} == dict.fromkeys(
        EXAMPLES, "good"
    )


@pytest.mark.slow
@examples
def test_verified(environment: Environment, primitives: dict[str, int], plugin: str) -> None:
    report = corejax(environment, "verify", plugin)
    assert f"✓ {plugin}: manifest" in report
    if plugin in WITHOUT_RULES:
        return
    assert "✗ 0 failed" in report and "✓ 0 passed" not in report
    if not primitives[plugin]:
        assert "its checks run on the primitives that it has rules for (interval)" in report


@pytest.mark.slow
@examples
def test_its_own_tests(environment: Environment, tmp_path: Path, plugin: str) -> None:
    copied = shutil.copytree(
        EXAMPLES[plugin], tmp_path / plugin, ignore=shutil.ignore_patterns("src", ".*", "__pycache__")
    )
    report = environment.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(copied))
    assert " passed" in report and "C kernel" not in report
