"""The example of a transformation from outside: its column, and its demonstration. Its own tests: test_plugins.py."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "plugins" / "interval_bounds"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables of a process in which the example counts as installed, from its source tree."""
    site = tmp_path_factory.mktemp("site")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    entries = "\n".join(f"{key} = {value}" for key, value in project["entry-points"]["corejax.plugins"].items())
    (info / "entry_points.txt").write_text(f"[corejax.plugins]\n{entries}\n")
    clean = {key: value for key, value in os.environ.items() if not key.startswith("COREJAX_")}
    return {**clean, "PYTHONPATH": os.pathsep.join([str(site), str(EXAMPLE / "src"), str(ROOT)])}


def run(environment: dict[str, str], *arguments: str) -> str:
    """What a Python process prints."""
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=400, check=False, env=environment, cwd=EXAMPLE
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


def test_its_column_is_in_the_list_of_primitives(environment: dict[str, str]) -> None:
    header, *_ = run(environment, "-m", "corejax", "list-primitives").splitlines()
    assert "interval" in header.split()


def test_the_demonstration(environment: dict[str, str], tmp_path: Path) -> None:
    printed = run(environment, "demo/robustness.py", "--steps", "300")
    assert "proofs that the search refutes: 0" in printed
