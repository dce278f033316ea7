"""Namespaces as tables: the module that has a name. It is imported when the name is first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from corejax.extend.plugins import exported, exported_names, missing_name


def lazy_names(
    namespace: str, modules: Mapping[str, str], names: dict[str, Any]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a namespace.

    Args:
        namespace: below `corejax`, `"scipy.special"`.
        modules: by module of this package, the names that it has, separated by spaces.
        names: the namespace's globals, in which names that were used are kept.
    """
    homes = {name: module for module, text in modules.items() for name in text.split()}

    def __getattr__(name: str) -> Any:
        if name in homes:
            found = getattr(importlib.import_module(f"corejax_scipy.{homes[name]}"), name)
        elif name.startswith("_"):  # never exported by a plugin
            raise AttributeError(f"module 'corejax.{namespace}' has no attribute {name!r}")
        else:
            found = exported(f"{namespace}.{name}")
            if found is None:
                raise missing_name(f"{namespace}.{name}")
        names[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*homes, *exported_names(namespace), *(n for n in names if n.startswith("__"))})

    return __getattr__, __dir__, sorted(homes)
