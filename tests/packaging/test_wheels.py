"""The distributions as users get them: built as wheels, installed from these into fresh environments.

The fresh environments see the wheels and the dependencies that the wheels declare (links into the environment
that runs the tests, so that nothing is downloaded), and nothing else: no editable install, no undeclared
dependency.
"""

from __future__ import annotations

import importlib.metadata as metadata
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
KERNEL = "corejax"
# distribution -> where it is built from
PROJECTS = {
    "corejax": ".",
    "corejax-lax-basic": "plugins/lax_basic",
    "corejax-numpy": "plugins/numpy_api",
    "corejax-control-flow": "plugins/control_flow",
    "corejax-testing": "plugins/testing",
    "corejax-xla-backend": "plugins/xla_backend",
}
LEFT_BEHIND = shutil.ignore_patterns("__pycache__", "*.egg-info")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="makes symbolic links")

PROGRAM = """
import os, sys
import numpy as np
import corejax
import corejax.numpy as jnp
from corejax import grad, jit, lax, make_jaxpr, vmap

home = os.path.realpath(sys.prefix)
assert os.path.realpath(corejax.__file__).startswith(home), corejax.__file__

def f(x):
    return jnp.sin(x) * 2.0

x = np.linspace(0.0, 1.0, 5, dtype=np.float32)
np.testing.assert_allclose(np.asarray(jit(vmap(grad(f)))(x)), 2 * np.cos(x), rtol=1e-6)
total, sums = lax.scan(lambda c, a: (c + a, c + a), np.float32(0), x)
np.testing.assert_allclose(np.asarray(sums), np.cumsum(x), rtol=1e-6)
assert "cos" in str(make_jaxpr(grad(f))(0.5))
assert "jax" not in sys.modules
print("works")
"""

KERNEL_PROGRAM = """
import importlib.util, sys
import corejax

assert importlib.util.find_spec("jaxlib") is None
assert importlib.util.find_spec("scipy") is None
for name in ("grad", "vmap", "jvp", "make_jaxpr"):
    assert callable(getattr(corejax, name)), name
try:
    corejax.jit
except AttributeError as error:
    assert "corejax-xla-backend" in str(error), error
else:
    raise AssertionError("corejax.jit exists without its plugin")
print("works")
"""


@dataclass(frozen=True)
class Wheels:
    """Built wheels: distribution name to file."""

    files: dict[str, Path]

    def contents(self, name: str) -> set[str]:
        """Names of the files in one wheel."""
        with zipfile.ZipFile(self.files[name]) as archive:
            return set(archive.namelist())

    def text(self, name: str, ending: str) -> str:
        """The one file of a wheel whose name ends so."""
        with zipfile.ZipFile(self.files[name]) as archive:
            (found,) = (entry for entry in archive.namelist() if entry.endswith(ending))
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
        environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        return _run([str(self.home / "bin" / program), *arguments], cwd=self.home, env=environment)


def _run(command: list[str], **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _needs(requirements: Iterable[str]) -> set[str]:
    """Names that apply here and now, without extras."""
    parsed = [Requirement(text) for text in requirements]
    return {canonicalize_name(r.name) for r in parsed if r.marker is None or r.marker.evaluate({"extra": ""})}


def _closure(names: Iterable[str]) -> set[str]:
    """Third-party distributions that `names` need, theirs included."""
    found: set[str] = set()
    waiting = [name for name in names if name not in PROJECTS]
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
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(project / name, target / name)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """All distributions built from copies of their sources, so that the source tree stays as it is."""
    work = tmp_path_factory.mktemp("build")
    for name, directory in PROJECTS.items():
        _copy_sources(ROOT / directory, work / name, "corejax" if name == KERNEL else "src")
    out = work / "wheels"
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", str(out)]
    _run([*pip, *options, *(str(work / name) for name in PROJECTS)])
    files = {canonicalize_name(file.name.split("-")[0]): file for file in out.glob("*.whl")}
    assert files.keys() == PROJECTS.keys()
    return Wheels(files)


def _environment(home: Path, wheels: Wheels, names: Iterable[str]) -> Environment:
    names = list(names)
    venv.create(home, with_pip=False, symlinks=True)
    environment = Environment(home)
    needed = set[str]().union(*(_needs(wheels.requirements(name)) for name in names))
    for dependency in _closure(needed):
        _link(metadata.distribution(dependency), environment.site)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install", "--quiet"]
    options = ["--disable-pip-version-check", "--no-index", "--no-compile"]
    # With the dependencies in place, pip also checks that the declared versions fit together.
    _run([*pip, *options, *(str(wheels.files[name]) for name in names)])
    return environment


@pytest.mark.parametrize("name", PROJECTS)
def test_wheel_contents(wheels: Wheels, name: str) -> None:
    package = name.replace("-", "_")
    contents = wheels.contents(name)
    assert {entry.split("/")[0] for entry in contents} == {package, f"{package}-0.1.0.dist-info"}
    assert f"{package}/__init__.py" in contents
    assert f"{package}/py.typed" in contents
    sources = ROOT / PROJECTS[name] / ("" if name == KERNEL else "src") / package
    wanted = {f"{package}/{file.relative_to(sources).as_posix()}" for file in sources.rglob("*.py")}
    assert wanted <= contents, "a directory without __init__.py is left out of the wheel"


@pytest.mark.parametrize("name", PROJECTS)
def test_wheel_carries_the_licence(wheels: Wheels, name: str) -> None:
    assert wheels.text(name, "licenses/LICENSE") == (ROOT / "LICENSE").read_text()


def test_everything_works_from_wheels(wheels: Wheels, tmp_path: Path) -> None:
    environment = _environment(tmp_path / "all", wheels, PROJECTS)
    assert environment.run("python", "-c", PROGRAM).split() == ["works"]
    listing = environment.run("corejax", "list-primitives")
    for text in ("sin", "dot_general", "xla_call", "scan", "lax_basic", "control_flow", "xla_backend"):
        assert text in listing


def test_kernel_alone(wheels: Wheels, tmp_path: Path) -> None:
    environment = _environment(tmp_path / "alone", wheels, [KERNEL])
    assert environment.run("python", "-c", KERNEL_PROGRAM).split() == ["works"]
    environment.run("corejax", "list-primitives")
    environment.run("corejax", "plugins")
    # Its templates are data of the wheel.
    assert "pyproject.toml" in environment.run("corejax", "new-plugin", "acme")
