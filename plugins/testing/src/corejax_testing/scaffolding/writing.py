"""Write a distribution from templates.

A template is the text of a file with `@words@` in place of names.
"""

from __future__ import annotations

import ast
import re
from importlib.resources import files as package_files
from pathlib import Path

from corejax_testing.scaffolding.names import KINDS, Plan

_TOKEN = re.compile(r"@([a-z_]+)@")


def files(plan: Plan, version: str) -> dict[str, str]:
    """Return the files of a distribution: path -> text.

    Args:
        plan: the names of the distribution.
        version: the kernel's version.

    Raises:
        ValueError: the modules of the distribution use the primitive's name for something else.
    """
    kind = KINDS[plan.kind]
    tokens = plan.tokens(version)
    source = f"src/{plan.package}"
    tokens["usage"] = _filled(f"{kind.directory}/usage.py", tokens).rstrip()
    tokens["rules_text"] = _filled(f"{kind.directory}/rules.md", tokens).rstrip()
    templates = {
        "pyproject.toml": "common/pyproject.toml",
        "README.md": "common/README.md",
        ".gitignore": "common/gitignore",
        ".github/workflows/test.yml": "common/workflow.yml",
        f"{source}/__init__.py": "common/__init__.py",
        f"{source}/plugin.py": "common/plugin.py",
        f"{source}/{plan.function}.py": f"{kind.directory}/primitive.py",
        f"{source}/translations.py": f"{kind.directory}/translations.py",
        f"{source}/examples.py": f"{kind.directory}/examples.py",
        f"tests/test_{plan.function}.py": f"{kind.directory}/test_primitive.py",
        "tests/test_conformance.py": "common/test_conformance.py",
        "tests/test_readme.py": "common/test_readme.py",
    }
    if plan.license != "none":
        templates["LICENSE"] = f"licenses/{plan.license}"
    found = {path: _filled(template, tokens) for path, template in templates.items()}
    default = {**tokens, **dict.fromkeys(("name", "module"), kind.name)}
    if plan.function != kind.name:
        modules = [_filled(template, default) for path, template in templates.items() if path.endswith(".py")]
        if plan.function in set().union(*map(_names_in, modules)):
            raise ValueError(
                f"{plan.function!r} is no valid name for a primitive: its modules use the name for something else"
            )
    return {**found, f"{source}/py.typed": ""}


def _names_in(program: str) -> set[str]:
    """Return the names of variables, arguments, functions and imported modules in a program."""
    found = set()
    for node in ast.walk(ast.parse(program)):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.alias(name=name, asname=None):
                found.add(name.partition(".")[0])
            case ast.alias(asname=str(name)):
                found.add(name)
    return found


def write(plan: Plan, version: str, target: Path) -> list[Path]:
    """Write the distribution and return the paths of its files.

    Args:
        plan: the names of the distribution.
        version: the kernel's version.
        target: the distribution's directory, which is created.

    Raises:
        FileExistsError: the directory exists and is not empty; nothing is written.
        OSError: the directory cannot be created or written to.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileExistsError(f"{target} exists and is not empty; nothing was written")
    written = []
    for name, text in files(plan, version).items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        written.append(path)
    return written


def _filled(template: str, tokens: dict[str, str]) -> str:
    found = package_files("corejax_testing.scaffolding").joinpath("templates", f"{template}.tmpl")
    return _TOKEN.sub(lambda match: tokens[match[1]], found.read_text(encoding="utf-8"))
