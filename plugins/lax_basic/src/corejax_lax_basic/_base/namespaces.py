"""Namespaces as tables: the module that has a name. It is imported when the name is first used."""

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
    prepare: Callable[[tuple[str, str], Any], Any] = lambda home, found: found,
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a namespace.

    Args:
        namespace: below `corejax`, `"numpy"`.
        package: where the modules are.
        modules: by module, the names that it has, separated by spaces; `abs=absolute` is the name `abs` for what the
            module calls `absolute`.
        names: the namespace's globals, with what needs no module; names that were used are kept there.
        hidden: names of modules that `__dir__` and `__all__` leave out.
        prepare: `(home, found)`, what the namespace has for what a module has: the home is `(module, name)`.
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
            found = prepare(home, getattr(importlib.import_module(f"{package}.{home[0]}"), home[1]))
        elif name.startswith("_"):  # never exported by a plugin
            raise AttributeError(f"module 'corejax.{namespace}' has no attribute {name!r}")
        elif (found := exported(f"{namespace}.{name}")) is None:
            raise missing_name(f"{namespace}.{name}")
        names[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*public_names, *exported_names(namespace), *(n for n in names if n.startswith("__"))})

    return __getattr__, __dir__, public_names
