"""Transform programs on arrays: `grad`, `vmap`, `jit` and related functions; plugins provide every operation.

The names of the kernel, which `__init__.pyi` lists, and the names that plugins export (`corejax.jit`, `corejax.lax`,
`corejax.numpy`, ...) are imported when they are first used.
"""

from corejax import errors as _errors
from corejax import plugins as plugins
from corejax.base import stubs as _stubs
from corejax.base.texts import suggest_names as _suggest_names

_names = _stubs.names_of_stub(__name__)
__all__ = [name for name, (_, inner) in _names.items() if inner]  # modules have no inner name
_suggest_names(vars(_errors))
plugins.wire(_names)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from corejax.plugins._discovery import version_of

        return version_of("corejax")
    if name in _names:
        value = _stubs.import_with_slots(*_names[name])
    elif name.startswith("_"):  # plugins export no private names
        raise AttributeError(f"module 'corejax' has no attribute {name!r}")
    elif name in plugins._reserved:  # a module of the kernel
        value = _stubs.import_name(f"corejax.{name}", "")
    elif (value := plugins.manager().exported(name)) is None:
        raise plugins.missing_name(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_names, *(name.partition(".")[0] for name in plugins.manager().offered())})
