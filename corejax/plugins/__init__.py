"""Plugins: hook specs, discovery, lazy loading, faults, provenance.

Where to read, in this order (everything with an underscore is this room's own):

- `hookspecs` is the contract: what a plugin may give. `_example` is one of the types in it.
- `_records`: what is known of one plugin (`corejax.settings.selection`: whether it is on). `_discovery` finds what
  is installed.
- `_hooks` makes hooks of a plugin object, `_exports` checks and takes what they give, and imports what they name by its
  place. `_loading` runs them one plugin at a time (with `_load_lock`; what a failed one registered is taken back).
- `_plugin_manager` puts these together for a process. `_finder` imports `corejax.<namespace>` through it.
- `manifest` reads what a plugin says of itself in a file, and says whether all of these together will do; the author's
  kit writes them.
- `_missing_names`, `_requirements`: the errors for what is not there. `_isolation`: for tests.

This module wires the lower floors to the plugin manager: a missing rule, operator, structural operation or facade
name has the plugins loaded. Nothing is discovered or imported until then, and pluggy itself is imported only then.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from corejax import dtypes
from corejax.base import plugin_access, provenance
from corejax.core import array_methods
from corejax.errors import PluginMissingError
from corejax.interpreters.checks import Checks, find_checks, follow_settings
from corejax.interpreters.engine import PLAIN, Engine, find_engine
from corejax.plugins._finder import is_import_from as is_import_from
from corejax.programs.recomputation import find_recomputation
from corejax.rules import registries

if TYPE_CHECKING:
    from corejax.plugins._plugin_manager import PluginManager
    from corejax.plugins._records import PluginRecord

_manager: PluginManager | None = None
_making = threading.Lock()
_reserved: set[str] = set()


def manager() -> PluginManager:
    """The process's plugin manager."""
    global _manager
    if _manager is None:
        from corejax.plugins._plugin_manager import PluginManager

        with _making:
            if _manager is None:
                _manager = PluginManager(reserved=_reserved)
    return _manager


def set_manager(new: PluginManager | None) -> PluginManager | None:
    """Install another manager (tests); gives the earlier one."""
    global _manager
    earlier, _manager = _manager, new
    array_methods.set_plugins_loaded(new is not None and new.loaded)
    return earlier


def plugin_records() -> list[PluginRecord]:
    """Return the records of all plugins found: name, distribution, version, status, fault."""
    manager().load()
    return list(manager().records.values())


plugins = plugin_records  # for users


def errors() -> list[PluginRecord]:
    """Records of the plugins that failed."""
    manager().load()
    return manager().faults()


def load_everything() -> None:
    """Have every plugin register its primitives, its rule kinds and its rules of every kind (`list-primitives`)."""
    manager().load_primitives()
    manager().load_rule_kinds()
    for kind in list(registries):
        manager().load_rules(kind)


def wire(kernel_directory: str, names: Iterable[str]) -> None:
    """Connect the lower floors to the plugin manager; `corejax/__init__.py` calls it once, with its own names."""
    from corejax.plugins import _finder

    # A directory without `__init__.py` holds stubs of a plugin's namespace.
    kernel_modules = {
        entry.name.partition(".")[0]
        for entry in os.scandir(os.path.abspath(kernel_directory))
        if entry.is_file() or os.path.exists(os.path.join(entry.path, "__init__.py"))
    }
    _reserved.update(kernel_modules, names, (f"dtypes.{name}" for name in vars(dtypes)))
    plugin_access.find_manager.provide(manager)
    plugin_access.missing_name.provide(  # the caller of `required` is asked for the name by frame 3
        lambda name: missing_name(name, importing=is_import_from(sys._getframe(3)))
    )
    find_engine.provide(_find_engine)
    find_recomputation.provide(lambda: manager().exported_to_kernel("recomputation"))
    provenance.set_resolver(lambda module: manager().owner_of(module))
    _finder.install(manager, kernel_modules)
    find_checks.provide(_find_checks)
    try:
        follow_settings()  # the environment may have turned a check on
    except PluginMissingError as error:
        warnings.warn(str(error), stacklevel=3)


def _find_checks(settings: Sequence[str]) -> Checks:
    """Return the plugin's checks, which settings turn on."""
    found: Checks | None = exported("debug_checks")
    if found is None:
        error = missing_name("debug_checks", importing=False)
        needed = f"the check that the setting {' or '.join(settings)} turns on is missing"
        raise type(error)(str(error).replace("module 'corejax' has no attribute 'debug_checks'", needed))
    return found


def _find_engine() -> Engine | None:
    found = exported("eager_engine")
    return PLAIN if found is None and manager().loaded else found


def missing_name(name: str, *, importing: bool | None = None) -> Exception:
    """The error for a facade name that nobody exports: what failed, what to install, or what was meant.

    Args:
        name: dotted inside a namespace, `"lax.scan"`.
        importing: whether `from module import name` asks, which hides an AttributeError's message; by default what
            the caller of a module's `__getattr__`, which this was called from, is doing.
    """
    from corejax.plugins import _missing_names

    if importing is None:
        importing = is_import_from(sys._getframe(2))
    return _missing_names.missing_name(manager(), name, importing=importing)


def exported(name: str) -> Any:
    """What plugins export under a facade name, dotted inside a namespace (`"lax.scan"`), or None."""
    return manager().exported(name)


def exported_names(namespace: str) -> list[str]:
    """The names that plugins export inside a namespace (`"lax"`), for its `__dir__`; nothing is imported."""
    return manager().names_inside(namespace)
