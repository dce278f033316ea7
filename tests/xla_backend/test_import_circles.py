"""No modules of the plugin import each other in a circle, imports in functions and for annotations counted."""

from __future__ import annotations

import ast
import graphlib
from importlib.resources import files
from pathlib import Path

ROOT = Path(str(files("corejax_xla_backend")))
PATHS = {".".join((ROOT.name, *p.relative_to(ROOT).with_suffix("").parts)): p for p in ROOT.rglob("*.py")}
MODULES = {name.removesuffix(".__init__"): path for name, path in PATHS.items()}


def imports_of(name: str, path: Path) -> set[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            named = {f"{module}.{alias.name}" for alias in node.names}
            found |= (named & MODULES.keys()) or {module}
    return (found & MODULES.keys()) - {name}


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {name: imports_of(name, path) for name, path in MODULES.items()}
    assert "corejax_xla_backend._lowering.module" in graph["corejax_xla_backend._lowering.context"]
    graphlib.TopologicalSorter(graph).prepare()
