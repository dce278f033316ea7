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
ELSEWHERE = {"interval_bounds": ("test_plugin.py", "test_checks.py")}  # test_interval_bounds.py runs its commands


@pytest.mark.parametrize("project", EXAMPLES, ids=lambda project: project.name)
def test_own_tests(project: Path, tmp_path: Path) -> None:
    left_out = (*LONG, *ELSEWHERE.get(project.name, ()))
    options = ["-q", "-p", "no:cacheprovider", *(f"--ignore={project / 'tests' / name}" for name in left_out)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", str(project), str(project / "tests")],
        env=environment([project], tmp_path / "site"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_manifests_say_what_the_code_does(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "corejax.cli", "write-manifest", "--check", *(project.name for project in EXAMPLES)],
        env=environment(EXAMPLES, tmp_path / "site"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nrun: make manifests"


PUBLIC = {"corejax", "corejax.extend", "corejax.extend.devices", "corejax.lax", "corejax.numpy"}
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
