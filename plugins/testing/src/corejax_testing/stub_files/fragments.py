"""Write the stubs of one plugin, `stubs/*.pyi` in its package: a file for each namespace that it adds names to."""

from __future__ import annotations

import importlib
import inspect
import types
from collections.abc import Iterable, Mapping
from typing import Any

import corejax
from corejax_testing.stub_files.rendering import Stub

METHODS = "array_methods"


def file_of(namespace: str) -> str:
    """Return the name of a namespace's file in a plugin's `stubs`; "" stands for `corejax` itself."""
    return namespace.replace(".", "_") or "__init__"


def namespaces(record: Any) -> list[str]:
    """Return the namespaces that a plugin adds names to."""
    inside = [name if ":" not in target else name.rpartition(".")[0] for name, target in record.offers.items()]
    return sorted(set(inside))


def fragments(record: Any, records: Iterable[Any]) -> Mapping[str, str]:
    """Return the files of a plugin: name without suffix -> text.

    Args:
        record: the record of a loaded plugin.
        records: the records of all plugins; names that other plugins add to the same namespaces are left out.
    """
    foreign = {name for other in records if other is not record for name in other.offers}
    files = {}
    for namespace in namespaces(record):
        stub = Stub(record.package.partition(".")[0], namespace)
        for name in sorted(_names(record, namespace, foreign)):
            stub.add(name.rpartition(".")[2], _value(name))
        files[file_of(namespace)] = stub.text()
    methods = record.hook.corejax_provide_array_methods() or {}
    if methods:
        stub = Stub(record.package.partition(".")[0])
        stub.lines.append("class ArrayMethods:")
        for name in sorted(methods):
            getattr(corejax.Array, name)  # imports the method
            stub.method(name, inspect.getattr_static(corejax.Array, name))
        files[METHODS] = stub.text()
    return files


def _names(record: Any, namespace: str, foreign: set[str]) -> set[str]:
    """Return the plugin's own names in a namespace, dotted."""
    names = {name for name, target in record.offers.items() if ":" in target and name.rpartition(".")[0] == namespace}
    if namespace in record.offers:
        module = importlib.import_module(f"corejax.{namespace}")
        names |= {f"{namespace}.{name}" for name in dir(module) if not name.startswith("_")} - foreign
    return {name for name in names if type(_value(name)) is not types.ModuleType}


def _value(name: str) -> Any:
    namespace, _, last = f"corejax.{name}".rpartition(".")
    return getattr(importlib.import_module(namespace), last)
