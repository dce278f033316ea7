"""Write the stubs that join the plugins' stubs under the names of `corejax`, in the kernel's directory.

They contain only imports, so that they do not change when a plugin's functions change.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import corejax
from corejax_testing.stub_files.fragments import METHODS, file_of, namespaces
from corejax_testing.stub_files.transformations import transformations

_FIRST = "# Written by `corejax write-stubs`."


def write_facade(records: Iterable[Any]) -> list[Path]:
    """Write the joining stubs for all plugins, and remove stubs of plugins that are gone.

    Args:
        records: the records of all loaded plugins.

    Returns:
        The paths of the stubs, sorted.
    """
    kernel = Path(str(corejax.__file__)).parent
    written = {kernel / path: text for path, text in _files(records, kernel).items()}
    for path in kernel.rglob("*.pyi"):
        if path not in written and path.read_text(encoding="utf-8").startswith(_FIRST):
            path.unlink()
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8", newline="\n")
    return sorted(written)


def _files(records: Iterable[Any], kernel: Path) -> Mapping[str, str]:
    lines: dict[str, list[str]] = defaultdict(list)
    methods = []
    for record in sorted(records, key=lambda record: record.name):
        package = record.package.partition(".")[0]
        if (record.hook and record.hook.corejax_provide_array_methods()) or {}:
            methods.append(package)
        for namespace in namespaces(record):
            if namespace and _is_of_kernel(namespace, kernel) and not _has_place(namespace, kernel):
                continue  # `corejax.dtypes` has a `__getattr__`, `corejax.tree_util` the names of `corejax.tree`
            lines[namespace].append(
                f"from {package}.stubs.{file_of(namespace)} import *" if namespace else f"from {package}.stubs import *"
            )
            while namespace and not _is_of_kernel(namespace, kernel):
                outer, _, last = namespace.rpartition(".")
                lines[outer].append(f"from . import {last} as {last}")
                namespace = outer
    files = {}
    for namespace, found in lines.items():
        name = "_contributed.pyi" if not namespace or _has_place(namespace, kernel) else "__init__.pyi"
        files[str(Path(namespace.replace(".", os.sep), name))] = _text(found)
    bases = ", ".join(f"_{package}" for package in methods)
    imports = [f"from {package}.stubs.{METHODS} import ArrayMethods as _{package}" for package in methods]
    files["_transforms.pyi"] = f"{_FIRST}\n# ruff: noqa\n{transformations()}"
    files["core/contributed.pyi"] = _text([*imports, f"class Contributed({bases}): ..."])
    return files


def _is_of_kernel(namespace: str, kernel: Path) -> bool:
    place = kernel / namespace.replace(".", os.sep)
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()


def _has_place(namespace: str, kernel: Path) -> bool:
    """Return whether a module of the kernel imports the stub of what plugins add to it, as `corejax.tree` does."""
    return (kernel / namespace / "_contributed.py").exists()


def _lines(record: Any, namespace: str) -> list[str]:
    """Return the imports of what a plugin adds to a namespace: its stub, or its sources if it has no stub."""
    package = record.package.partition(".")[0]
    spec = find_spec(package)
    directory = Path(next(iter((spec and spec.submodule_search_locations) or ()), ""), "stubs")
    if (directory / f"{file_of(namespace)}.pyi").exists():
        return [f"from {package}.stubs{'.' + file_of(namespace) if namespace else ''} import *"]
    found = [f"from {record.offers[namespace]} import *"] if namespace in record.offers else []
    for name, target in record.offers.items():
        outer, _, last = name.rpartition(".")
        module, colon, attribute = target.partition(":")
        if colon and outer == namespace and last == attribute:
            found.append(f"from {module} import {last} as {last}")
    return found


def _text(lines: Iterable[str]) -> str:
    return "\n".join([_FIRST, "# ruff: noqa", *dict.fromkeys(lines), ""])
