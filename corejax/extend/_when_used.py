"""Names of `corejax.extend` that no first operation needs: imported when they are used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from corejax.base.texts import no_such_name
from corejax.plugins import is_import_from

CHAPTERS = ("devices", "messages", "plugins", "printing", "programs", "speed", "transforms", "types")


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
            raise _missing(module, name, __dir__(), importing=is_import_from(sys._getframe(1)))
        namespace[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*namespace, *places, *modules})

    return __getattr__, __dir__


def _missing(module: str, name: str, known: Sequence[str], *, importing: bool) -> Exception:
    """Return the error for a name that a module lacks; for an import an ImportError, whose text Python shows."""
    if not name.startswith("_"):
        for place in ("corejax.extend", *(f"corejax.extend.{chapter}" for chapter in CHAPTERS)):
            if name in import_module(place).__all__:
                text = f"module {module!r} has no attribute {name!r}; it is in {place}"
                return ImportError(text, name=module) if importing else AttributeError(text)
    error = no_such_name(module, name, known)
    return ImportError(str(error), name=module) if importing and not name.startswith("_") else error
