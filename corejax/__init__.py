"""corejax: a minimal kernel for array primitives and their transformations; everything else is a plugin.

The kernel's names are listed in `__init__.pyi`. They and the names that plugins export (`corejax.jit`, `corejax.lax`,
`corejax.numpy`, ...) are imported at first use.
"""

import os as _os
import sys as _sys

from corejax import errors as _errors
from corejax import plugins as plugins
from corejax.base import stubs as _stubs
from corejax.base.texts import suggest_names as _suggest_names
from corejax.interpreters import host_programs as _host_programs  # provides how programs run on NumPy arrays

_names = _stubs.names_of_stub(__name__)
__all__ = [name for name, (_, inner) in _names.items() if inner]  # without modules
_suggest_names(vars(_errors))
plugins.wire(_os.path.dirname(__file__), _names)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib_metadata import version

        return version("corejax")
    if (found := _sys.modules.get(f"corejax.{name}")) is not None:
        pass  # imported before, by an import of corejax that was interrupted
    elif name in _names:
        found = _stubs.import_name(*_names[name])
    elif name.startswith("_"):  # never exported by a plugin
        raise AttributeError(f"module 'corejax' has no attribute {name!r}")
    elif (found := plugins.manager().exported(name)) is None:
        raise plugins.missing_name(name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*_names, *(name.partition(".")[0] for name in plugins.manager().offered())})
