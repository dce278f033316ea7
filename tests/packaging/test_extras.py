"""`corejax[all]` and `corejax[xla]`: what they name, and that `xla` is enough for `jit`."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.packaging.building import KERNEL, PLUGINS, PROJECTS, ROOT, Wheels, fresh_environment


def declared(name: str) -> dict[str, object]:
    """The project table of one of this repository's distributions."""
    return tomllib.loads((ROOT / PROJECTS[name] / "pyproject.toml").read_text())["project"]


EXTRAS = declared(KERNEL)["optional-dependencies"]


def names(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(text).name) for text in requirements}


def closure(wanted: set[str]) -> set[str]:
    """With all that they need of this repository."""
    found: set[str] = set()
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        if name in PROJECTS and name not in found:
            found.add(name)
            waiting += names(declared(name)["dependencies"])
    return found


def test_all_is_every_plugin() -> None:
    assert names(EXTRAS["all"]) == PLUGINS.keys()


@pytest.mark.parametrize("extra", ["all", "xla"])
def test_versions_are_those_of_this_repository(extra: str) -> None:
    for text in EXTRAS[extra]:
        requirement = Requirement(text)
        if requirement.name in PROJECTS:
            assert declared(requirement.name)["version"] in requirement.specifier, text


@pytest.mark.skipif(os.name == "nt", reason="makes symbolic links")
def test_xla_is_enough_for_jit(wheels: Wheels, tmp_path: Path) -> None:
    needed = closure({KERNEL, *names(EXTRAS["xla"])})
    assert needed < PROJECTS.keys()
    program = "import corejax; print(corejax.jit(corejax.grad(lambda x: x * x))(3.0), corejax.devices()[0].platform)"
    environment = fresh_environment(tmp_path / "xla", wheels, needed)
    assert environment.run("python", "-c", program).split() == ["6.0", "cpu"]


@pytest.mark.skipif(os.name == "nt", reason="a command for a POSIX shell")
def test_the_readme_installs_every_plugin_from_a_checkout() -> None:
    commands = re.findall(r"^    python -m pip install (-e \. .*?)(?: *#.*)?$", (ROOT / "README.md").read_text(), re.M)
    assert len(commands) == 1
    said = subprocess.run(["sh", "-c", f"echo {commands[0]}"], cwd=ROOT, capture_output=True, text=True, check=True)
    flags, places = said.stdout.split()[::2], said.stdout.split()[1::2]
    assert set(flags) == {"-e"} and sorted(places) == sorted(PROJECTS.values())
