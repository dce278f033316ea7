"""Namespaces as tables from names to modules. A module is imported when one of its names is first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from corejax.extend.plugins import exported, exported_names, missing_name

__all__ = ["lazy_names"]  # in `corejax.lax`, for other plugins


def lazy_names(
    namespace: str,
    package: str,
    modules: Mapping[str, str],
    names: dict[str, Any],
    *,
    hidden: str = "",
    prepare: Callable[[tuple[str, str], Any], Any] = lambda home, value: value,
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a namespace.

    Args:
        namespace: the name below `corejax`, such as `"numpy"`.
        package: the package of the modules.
        modules: the names of each module, separated by spaces; `abs=absolute` exports the module's `absolute` as `abs`.
        names: the namespace's globals, with the names that need no module; names are added when they are first used.
        hidden: names that `__dir__` and `__all__` leave out.
        prepare: function `(home, value)` that returns what the namespace exports for a module's value; the home is
            `(module, name)`.
    """
    homes: dict[str, tuple[str, str]] = {}
    for module, text in modules.items():
        for name in text.split():
            public, _, written = name.partition("=")
            homes[public] = (module, written or public)
    own = {n for n in names if not n.startswith("_") and n != "annotations"}
    public_names = sorted({*homes, *own} - set(hidden.split()))

    def __getattr__(name: str) -> Any:
        home = homes.get(name)
        if home is not None:
            value = prepare(home, getattr(importlib.import_module(f"{package}.{home[0]}"), home[1]))
        elif name.startswith("_"):  # never exported by a plugin
            raise AttributeError(f"module 'corejax.{namespace}' has no attribute {name!r}")
        elif (value := exported(f"{namespace}.{name}")) is None:
            raise missing_name(f"{namespace}.{name}")
        names[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*public_names, *exported_names(namespace), *(n for n in names if n.startswith("__"))})

    return __getattr__, __dir__, public_names
