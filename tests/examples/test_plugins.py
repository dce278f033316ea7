"""The tests of the example plugins, run from their sources as if they were installed.

Without the rules' conformance, which tests/packaging/test_example_plugins.py has `corejax verify` check on wheels.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.from_source import EXAMPLES, environment

# What takes longest, which `make test-slow` runs on wheels.
LONG = ("test_conformance.py", "test_loops.py", "test_programs.py")
IMPORTING = ("interval_bounds",)  # its tests import modules beside them
ELSEWHERE = {"interval_bounds": ("test_plugin.py", "test_checks.py")}  # test_interval_bounds.py runs its commands


@pytest.mark.parametrize("alone", [False, True])
def test_own_tests(alone: bool, tmp_path: Path) -> None:
    """In one process: most of a process's time is spent before its first test."""
    projects = [project for project in EXAMPLES if (project.name in IMPORTING) == alone]
    left_out = [p / "tests" / name for p in projects for name in (*LONG, *ELSEWHERE.get(p.name, ()))]
    options = ["-v", "-p", "no:cacheprovider", *(f"--ignore={path}" for path in left_out)]
    mode = "prepend" if alone else "importlib"  # several projects have modules of one name
    options += [f"--import-mode={mode}", f"--rootdir={projects[0] if alone else projects[0].parent}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(str(project / "tests") for project in projects)],
        env=environment(projects, tmp_path / "site"),
        cwd=projects[0].parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {line.split("/")[0] for line in done.stdout.splitlines() if " PASSED" in line} == {p.name for p in projects}


def test_manifests_say_what_the_code_does(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "corejax", "write-manifest", "--check", *(project.name for project in EXAMPLES)],
        env=environment(EXAMPLES, tmp_path / "site"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nrun: make manifests"


PUBLIC = {
    "corejax",
    "corejax.extend",
    "corejax.extend.devices",
    "corejax.extend.types",
    "corejax.lax",
    "corejax.numpy",
    "corejax.ref",
}
PUBLIC |= {"corejax_lax_basic", "corejax_testing"}  # `corejax_lax_basic.lax`


@pytest.mark.parametrize("project", EXAMPLES, ids=lambda project: project.name)
def test_written_against_what_is_public(project: Path) -> None:
    (package,) = (path.name for path in (project / "src").iterdir() if (path / "__init__.py").exists())
    for file in (project / "src").rglob("*.py"):
        for module in _imported(ast.parse(file.read_text(encoding="utf-8"))):
            ours = module in PUBLIC or module.split(".")[0] == package
            foreign = not module.startswith(("corejax", "jax"))
            assert ours or foreign, f"{file.relative_to(project)} imports {module}"


def _imported(program: ast.Module) -> set[str]:
    """Modules that a program imports, wherever it does."""
    found = set()
    for node in ast.walk(program):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None and not node.level, "examples use absolute imports"
            found.add(node.module)
    return found
