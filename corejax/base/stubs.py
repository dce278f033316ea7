"""Modules that list their names in the stub beside them, and import each name at first use.

A line of the stub is `from corejax.ir import Literal as Literal`, or `from . import programs as programs` for a module
of the package itself. Type checkers and editors read the same lines.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from importlib import import_module
from typing import Any

from corejax.base import tables
from corejax.base.restoring import Changed

_importing = threading.RLock()
_LINE = re.compile(r"^ *from (\S+) import (\w+) as (\w+)$", re.MULTILINE)


def names_of_stub(module: str) -> dict[str, tuple[str, str]]:
    """Return the names in the stub beside a module: name -> (defining module, name in that module).

    A module of the package itself has its full name and "".
    """
    stub = os.path.splitext(str(sys.modules[module].__file__))[0] + ".pyi"
    with open(stub, encoding="utf-8") as file:
        lines = _LINE.findall(file.read())
    return {name: (f"{module}.{inner}", "") if home == "." else (home, inner) for home, inner, name in lines}


def import_name(home: str, name: str) -> Any:
    """Import the object that a line of a stub lists; `name` is "" for a module."""
    with Changed(tables._thread, "owner", None):  # the kernel's entries stay if a plugin that needs them first fails
        return getattr(__import__(home, fromlist=[name]), name) if name else import_module(home)


def import_with_slots(home: str, name: str) -> Any:
    """Do as `import_name`; if an object needs the kernel's types, import the modules that fill slots as well."""
    if not name:
        return import_name(home, name)
    with _importing:  # one thread at a time: packages import their modules, and these their packages
        value = import_name(home, name)
        if "corejax.core.avals" in sys.modules:
            import_name("corejax.programs", "")
        return value
