"""The plugin's packages: which imports which, and which modules are private to theirs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import corejax_control_flow

ROOT = Path(corejax_control_flow.__file__).parent
NAME = corejax_control_flow.__name__
FILES = {"plugin", "examples"}  # which are no packages


def lines_of_the_diagram():
    """The packages of each line of the diagram in the plugin's docstring, the highest first."""
    indented = [line for line in corejax_control_flow.__doc__.splitlines() if line.startswith("    ")]
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} | FILES
    return [[word for word in line[:45].split() if word in packages] for line in indented]


def imports(path):
    """Modules of the plugin that a file imports, in functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith(f"{NAME}."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(NAME):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


LINES = lines_of_the_diagram()
FLOOR = {package: -i for i, line in enumerate(LINES) for package in line}


def test_the_diagram_has_every_package():
    """None is missing, and none is there that does not exist."""
    assert set(FLOOR) == {path.parent.name for path in ROOT.glob("*/__init__.py")} | FILES


@pytest.mark.parametrize("package", sorted(FLOOR))
def test_imports_go_down(package):
    """From lower lines only; a module with an underscore from its own package only."""
    files = [ROOT / f"{package}.py"] if package in FILES else sorted((ROOT / package).glob("*.py"))
    for path in files:
        for module in imports(path):
            parts = module.split(".")[1:]
            if parts[0] != package:
                assert FLOOR[parts[0]] < FLOOR[package], f"{path.name} imports {module}"
                assert not parts[1].startswith("_"), f"{path.name} imports {module}"
