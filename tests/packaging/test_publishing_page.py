"""docs/publishing.md, run as a reader would: its commands and files, in a fresh environment with the wheels.

A `console` block has commands (`$ ...`), each with what it prints, where `...` stands for anything, and
`[exit status N]` at the end for one that fails. A `python` block is a file, which its first line names.
"""

from __future__ import annotations

import importlib.metadata as metadata
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.packaging.building import QUICK, ROOT, Environment, Wheels, _link, fresh_environment

PAGE = ROOT / "docs" / "publishing.md"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (at the end of )?(\S+)\n")
STATUS = re.compile(r"\n?\[exit status (\d+)\]$")

# Half a minute; tests/testing_kit/test_new_plugin.py and tests/packaging/test_wheels.py have its steps one by one.
pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="makes symbolic links")]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, wheels: Wheels) -> Environment:
    """What the page installs first, pip and the tools that build wheels."""
    made = fresh_environment(tmp_path_factory.mktemp("environment") / "venv", wheels, wheels.files, extra="test")
    for name in ("pip", "setuptools", "wheel", "pytest", "iniconfig", "pluggy", "packaging", "pygments"):
        try:
            _link(metadata.distribution(name), made.site)
        except metadata.PackageNotFoundError:
            assert name == "wheel", f"{name} is not installed"
    return made


def commands(block: str) -> list[tuple[str, str]]:
    """Each command with what it prints."""
    found = [part.partition("\n") for part in re.split(r"^\$ ", block, flags=re.MULTILINE) if part]
    return [(command, printed.strip()) for command, _, printed in found]


def pattern(printed: str) -> str:
    """A regular expression for what a page shows, whose `...` is anything."""
    return ".*".join(re.escape(part) for part in printed.split("..."))


def run(command: str, directory: Path, home: Path) -> tuple[int, str, Path]:
    """Run a command line; its status, its output, and the directory that it ends in."""
    ours = ("PYTHON", "COREJAX", "PIP_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours) or name == QUICK}
    settings = {"PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}", "PYTHONUTF8": "1"}
    # Nothing is downloaded: what is asked for is there.
    settings |= {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    # Each of its programs is compiled once, whatever command it comes back in.
    settings |= {"COREJAX_COMPILATION_CACHE_DIR": str(home / "programs")}
    done = subprocess.run(
        ["bash", "-c", f"{command}\nstatus=$?\npwd > {home}/where\nexit $status"],
        cwd=directory,
        env={**clean, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stdout.strip(), Path((home / "where").read_text().strip())


def test_the_page(environment: Environment, tmp_path: Path) -> None:
    directory = tmp_path
    for kind, block in BLOCK.findall(PAGE.read_text()):
        if kind == "python":
            appended, name = FILE.match(block).groups()  # type: ignore[union-attr]
            path = directory / name
            body = block.partition("\n")[2]
            path.write_text(path.read_text() + "\n\n" + body if appended else body)
            continue
        for command, printed in commands(block):
            status, output, directory = run(command, directory, environment.home)
            found = STATUS.search(printed)
            assert status == (int(found[1]) if found else 0), f"$ {command}\n{output}"
            wanted = STATUS.sub("", printed)
            assert re.fullmatch(pattern(wanted), output, re.DOTALL), f"$ {command}\n{output}\n--- wanted\n{wanted}"
