"""Stubs and runtime agree: name by name, and parameter by parameter."""

from __future__ import annotations

import ast
import importlib
import inspect
import types
from pathlib import Path
from typing import Any

import pytest

from corejax.extend.plugins import plugin_records

pytest.importorskip("mypy")  # which `make test` has, with the versions that the stubs were written with

RECORDS = [record for record in plugin_records() if record.distribution and record.offers]


def package(record: Any) -> Path:
    """The directory of a plugin's package."""
    return Path(importlib.import_module(record.package).__file__).parent  # type: ignore[arg-type]


def stubs(record: Any) -> dict[str, ast.Module]:
    """Namespace -> its stub in a plugin's package."""
    inside = {name if ":" not in target else name.rpartition(".")[0] for name, target in record.offers.items()}
    return {
        name: ast.parse((package(record) / "stubs" / f"{name.replace('.', '_') or '__init__'}.pyi").read_text())
        for name in inside
    }


def defined(module: ast.Module) -> dict[str, ast.AST]:
    """Public names of a stub."""
    found: dict[str, ast.AST] = {}
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            found[ast.unparse(node.target)] = node
        elif isinstance(node, ast.Assign):
            found[ast.unparse(node.targets[0])] = node
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name: node for alias in node.names if alias.asname == alias.name}
    return {name: node for name, node in found.items() if not name.startswith("_")}


def own_names(record: Any, namespace: str) -> set[str]:
    """Names that a plugin adds to a namespace when it is imported."""
    prefix = f"{namespace}." if namespace else ""
    found = {name for name, target in record.offers.items() if ":" in target and name.rpartition(".")[0] == namespace}
    if namespace in record.offers:
        theirs = {name for other in RECORDS if other is not record for name in other.offers}
        module = importlib.import_module(f"corejax.{namespace}")
        listed = {f"{prefix}{name}" for name in dir(module) if not name.startswith("_")} - theirs
        found |= {name for name in listed if type(getattr(module, name.rpartition(".")[2])) is not types.ModuleType}
    return {name.removeprefix(prefix) for name in found}


def parameters(node: ast.FunctionDef) -> list[tuple[str, str, bool]]:
    """Name, kind and whether there is a default, of each parameter."""
    a = node.args
    positional = [(p.arg, "POSITIONAL_ONLY") for p in a.posonlyargs] + [
        (p.arg, "POSITIONAL_OR_KEYWORD") for p in a.args
    ]
    first = len(positional) - len(a.defaults)
    found = [(name, kind, i >= first) for i, (name, kind) in enumerate(positional)]
    found += [(a.vararg.arg, "VAR_POSITIONAL", False)] if a.vararg else []
    found += [(p.arg, "KEYWORD_ONLY", d is not None) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
    return found + ([(a.kwarg.arg, "VAR_KEYWORD", False)] if a.kwarg else [])


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_names_and_parameters(record: Any) -> None:
    for namespace, module in stubs(record).items():
        names = defined(module)
        assert set(names) == own_names(record, namespace), namespace
        where = importlib.import_module(f"corejax.{namespace}" if namespace else "corejax")
        for name, node in names.items():
            if isinstance(node, ast.FunctionDef):
                signature = inspect.signature(getattr(where, name))
                wanted = [(p.name, p.kind.name, p.default is not p.empty) for p in signature.parameters.values()]
                assert parameters(node) == wanted, f"{namespace}.{name}"
        for node in module.body:  # overloads have the names of the parameters in another order
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                everything = {name for name, _, _ in parameters(names[node.name])}  # type: ignore[arg-type]
                assert {name for name, _, _ in parameters(node)} == everything, f"{namespace}.{node.name}"


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_array_methods(record: Any) -> None:
    methods = record.hook.corejax_provide_array_methods() or {}
    stub = package(record) / "stubs" / "array_methods.pyi"
    assert stub.exists() == bool(methods)
    if methods:
        (node,) = (node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ClassDef))
        assert {inner.name for inner in node.body if isinstance(inner, ast.FunctionDef)} == set(methods)
