"""`corejax.extend` and its chapters: stubs list their names, which are imported at first use."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from corejax.base.stubs import import_with_slots, names_of_stub
from corejax.base.texts import no_such_name
from corejax.plugins import is_import_from


def chapter(module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` for a chapter's module."""
    namespace, names = vars(sys.modules[module]), names_of_stub(module)

    def __getattr__(name: str) -> Any:
        if name not in names:
            raise _missing(module, name, __dir__(), importing=is_import_from(sys._getframe(1)))
        value = namespace[name] = import_with_slots(*names[name])
        return value

    def __dir__() -> list[str]:
        return sorted({*namespace, *names})

    return __getattr__, __dir__, [name for name, (_, inner) in names.items() if inner]


def _missing(module: str, name: str, known: list[str], *, importing: bool) -> Exception:
    """Return the error for a name that a module lacks: an ImportError in an import statement, for Python to show it."""
    error: Exception = no_such_name(module, name, known)
    if name.startswith("_"):
        return error
    chapters = [home for home, inner in names_of_stub("corejax.extend").values() if not inner]
    for place in ("corejax.extend", *chapters):
        if name in import_module(place).__all__:
            error = AttributeError(f"module {module!r} has no attribute {name!r}; it is in {place}")
    return ImportError(str(error), name=module) if importing else error
