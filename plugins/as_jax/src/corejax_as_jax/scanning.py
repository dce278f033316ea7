"""`corejax as-jax --scan`: find the names of jax that the sources of a library use, and those that are missing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from corejax_as_jax import install


def print_scan(libraries: tuple[str, ...]) -> int:
    """Print the names that libraries use and corejax lacks; return the exit code.

    Args:
        libraries: names of installed packages or modules; they are not imported.

    Raises:
        UsageError: a package is not installed.
    """
    install()
    code = 0
    for library in libraries:
        uses = used_names(library)
        missing = {name: files for name, files in uses.items() if not has_name(name)}
        summary = "these are missing:" if missing else "none is missing"
        click.echo(f"{library}: {len(uses)} names of jax are used, {summary}")
        for name, files in sorted(missing.items()):
            if name.rpartition(".")[0] in missing:
                continue  # its parent is listed
            more = f" and {len(files) - 1} more" if len(files) > 1 else ""
            click.echo(f"  {name}  ({sorted(files)[0]}{more})")
            code = 1
    if code:
        click.echo("Names in `if` and `try` statements may be those of other versions of JAX that a library supports.")
    return code


def used_names(library: str) -> dict[str, set[str]]:
    """Return the dotted names of jax in a library's sources (without tests), and the files that use each name."""
    try:
        spec = find_spec(library)
    except ModuleNotFoundError:
        spec = None
    if spec is None:
        raise click.UsageError(f"no package {library!r} is installed")
    places = [Path(place) for place in spec.submodule_search_locations or [spec.origin or ""]]
    uses: dict[str, set[str]] = {}
    for place in places:
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            if "test" not in file.stem and "tests" not in file.parts:
                for name in names_in(ast.parse(file.read_text(encoding="utf-8"))):
                    uses.setdefault(name, set()).add(str(file.relative_to(place.parent)))
    return uses


def names_in(tree: ast.AST) -> Iterator[str]:
    """Yield the dotted names of jax that a module uses: those that it imports, and attributes of these."""
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                if item.name.partition(".")[0] == "jax":
                    aliases[item.asname or "jax"] = item.name if item.asname else "jax"
                    yield item.name
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "jax" and not node.level:
            for item in node.names:
                name = f"{node.module}.{item.name}"
                if item.name != "*":
                    aliases[item.asname or item.name] = name
                    yield name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (name := _dotted(node, aliases)):
            yield name


def _dotted(node: Any, aliases: dict[str, str]) -> str:
    """Return the dotted name of an attribute of a module of jax; an empty string for any other node."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    start = aliases.get(node.id, "") if isinstance(node, ast.Name) else ""
    return ".".join([start, *reversed(parts)]) if start else ""


def has_name(name: str) -> bool:
    """Return whether a dotted name exists; attributes of objects other than modules are not checked."""
    value: Any = import_module("jax")
    path = "jax"
    for part in name.split(".")[1:]:
        if not isinstance(value, ModuleType):
            return True
        path = f"{path}.{part}"
        try:
            value = getattr(value, part)
        except (AttributeError, ImportError):
            try:
                value = import_module(path)
            except ImportError:
                return False
    return True
