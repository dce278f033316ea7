"""Building distributions as wheels, and fresh environments with these installed.

The environments see the wheels and the dependencies that the wheels declare (links into the environment that runs
the tests, so that nothing is downloaded), and nothing else: no editable install, no undeclared dependency.
"""

from __future__ import annotations

import importlib.metadata as metadata
import os
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

try:
    import fcntl
except ImportError:  # Windows, where what needs it is skipped
    fcntl = None  # type: ignore[assignment]

ROOT = Path(__file__).resolve().parents[2]
KERNEL = "corejax"
QUICK = "COREJAX_DISABLE_MOST_OPTIMIZATIONS"  # as tests/conftest.py says


def distribution_of(project: Path) -> str:
    """Name of the distribution that a directory holds."""
    return canonicalize_name(tomllib.loads((project / "pyproject.toml").read_text())["project"]["name"])


# Bridges to other frameworks, which need these and are installed by name only.
BRIDGES = ("to_jax", "to_torch")
# distribution -> where it is built from: the kernel, and whatever else is in plugins/
PLUGINS = {
    distribution_of(file.parent): file.parent
    for file in sorted(ROOT.glob("plugins/*/pyproject.toml"))
    if file.parent.name not in BRIDGES
}
PROJECTS = {KERNEL: ".", **{name: str(path.relative_to(ROOT)) for name, path in PLUGINS.items()}}
# plugin -> where it is built from: whatever is there
EXAMPLES = {file.parent.name: file.parent for file in sorted((ROOT / "examples" / "plugins").glob("*/pyproject.toml"))}
# As a frontend asks the backend that each pyproject.toml names, which would start several processes for each wheel.
BUILD = """
import importlib, os, sys, tomllib

wheels, *projects = sys.argv[1:]
for project in projects:
    os.chdir(project)
    with open("pyproject.toml", "rb") as file:
        backend = importlib.import_module(tomllib.load(file)["build-system"]["build-backend"])
    backend.build_wheel(wheels)  # which changes sys.argv
"""
LEFT_BEHIND = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so", "*.pyd")


@dataclass(frozen=True)
class Wheels:
    """Built wheels: distribution name to file."""

    files: dict[str, Path]

    def contents(self, name: str) -> set[str]:
        """Names of the files in one wheel."""
        with zipfile.ZipFile(self.files[name]) as archive:
            return set(archive.namelist())

    def text(self, name: str, ending: str) -> str:
        """Return the text of the outermost file of a wheel whose name ends so."""
        with zipfile.ZipFile(self.files[name]) as archive:
            inside = [entry for entry in archive.namelist() if entry.endswith(ending)]
            (found,) = (entry for entry in inside if entry.count("/") == min(entry.count("/") for entry in inside))
            return archive.read(found).decode()

    def requirements(self, name: str) -> list[str]:
        """What one wheel declares to need, extras included, as written."""
        lines = self.text(name, ".dist-info/METADATA").split("\n\n")[0].splitlines()
        return [line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist: ")]


@dataclass(frozen=True)
class Environment:
    """A fresh virtual environment."""

    home: Path

    @property
    def site(self) -> Path:
        """Where packages are installed."""
        return self.home / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"

    def run(self, program: str, *arguments: str) -> str:
        """Run one of the environment's programs away from the source tree; its standard output."""
        # PYTHONPATH and its like could bring the source tree back in.
        ours = ("PYTHON", "COREJAX")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(ours) or name == QUICK}
        return run([str(self.home / "bin" / program), *arguments], cwd=self.home, env=environment)


def run(command: list[str], **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _needs(requirements: Iterable[str], extra: str = "") -> set[str]:
    """Names that apply here and now."""
    parsed = [Requirement(text) for text in requirements]
    return {canonicalize_name(r.name) for r in parsed if r.marker is None or r.marker.evaluate({"extra": extra})}


def _closure(names: Iterable[str]) -> set[str]:
    """Third-party distributions that `names` need, theirs included."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(_needs(metadata.distribution(name).requires or []))
    return found


def _link(distribution: metadata.Distribution, site: Path) -> None:
    """Make an installed distribution visible in another site-packages directory."""
    files = distribution.files or []
    for top in {file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__", "/")}:
        if not (site / top).exists() and not top.endswith(".pth"):
            (site / top).symlink_to(Path(str(distribution.locate_file(top))).resolve())


def _copy_sources(project: Path, target: Path, package: str) -> None:
    """What a wheel is made of, without what earlier builds and installs left in the source tree."""
    shutil.copytree(project / package, target / package, ignore=LEFT_BEHIND)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        if (project / name).exists():
            shutil.copy(project / name, target / name)


def build(projects: Mapping[str, Path], work: Path) -> Wheels:
    """Wheels of distributions, from copies of their sources, so that the source tree stays as it is.

    Args:
        projects: name of each distribution -> its directory.
        work: an empty directory.
    """
    for name, directory in projects.items():
        _copy_sources(directory, work / name, "corejax" if name == KERNEL else "src")
    out = work / "wheels"
    out.mkdir()
    run([sys.executable, "-c", BUILD, str(out), *(str(work / name) for name in projects)])
    found = built(work)
    assert found.files.keys() == projects.keys()
    return found


def built(work: Path) -> Wheels:
    """What :func:`build` made there."""
    return Wheels({canonicalize_name(file.name.split("-")[0]): file for file in (work / "wheels").glob("*.whl")})


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A directory that the first of the test processes makes, and the others use."""
    base = factory.getbasetemp()
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with place.with_suffix(".lock").open("w") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "made").exists():
            place.mkdir(exist_ok=True)
            make(place)
            (place / "made").touch()
    return place


def fresh_environment(
    home: Path, wheels: Wheels, names: Iterable[str], extra: str = "", above: Environment | None = None
) -> Environment:
    """A virtual environment with wheels installed, and with what they need, for one of their extras too.

    With `above`, it also sees what is installed in that environment.
    """
    names = list(names)
    venv.create(home, with_pip=False, symlinks=True)
    environment = Environment(home)
    if above is not None:
        (environment.site / "above.pth").write_text(f"{above.site}\n")
    needed = set[str]().union(*(_needs(wheels.requirements(name), extra) for name in names))
    for dependency in _closure(needed - wheels.files.keys()):
        _link(metadata.distribution(dependency), environment.site)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install", "--quiet"]
    options = ["--disable-pip-version-check", "--no-index", "--no-compile"]
    # With the dependencies in place, pip also checks that the declared versions fit together.
    run([*pip, *options, *(str(wheels.files[name]) for name in names)])
    return environment
