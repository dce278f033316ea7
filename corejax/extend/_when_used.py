"""Names of `corejax.extend` that no first operation needs: imported when they are used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def when_used(
    module: str, homes: Mapping[str, str], modules: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a module.

    Args:
        module: the module's name.
        homes: names, separated by spaces, by the module that defines them.
        modules: names that are modules themselves, with their full names; None for no such names.
    """
    places = {name: home for home, names in homes.items() for name in names.split()}
    modules = modules or {}
    namespace = vars(sys.modules[module])

    def __getattr__(name: str) -> Any:
        if name in modules:
            found = import_module(modules[name])
        elif name in places:
            found = getattr(import_module(places[name]), name)
        else:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        namespace[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*namespace, *places, *modules})

    return __getattr__, __dir__
