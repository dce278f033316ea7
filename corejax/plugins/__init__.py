"""Plugins: hook specs, discovery, lazy loading, faults, provenance.

Read the modules in this order (those with an underscore are private to this package):

- `hookspecs` is the contract: the hooks that a plugin may implement. `_example` has one of the types in it.
- `_records` holds the data about one plugin (`corejax.settings.selection` decides whether it is on). `_discovery`
  finds the installed plugins.
- `_hooks` turns a plugin object into callable hooks. `_exports` checks their results, registers them, and imports the
  objects that they name. `_loading` runs hooks, one plugin at a time (`_load_lock`), and undoes the registrations of a
  plugin that fails.
- `_plugin_manager` combines these for a process. `_finder` imports `corejax.<namespace>` through it.
- `manifest` reads the file in which a plugin lists what it contributes, and decides whether all manifests together can
  replace loading. The author's kit writes the files.
- `_missing_names` and `_requirements` make error messages. `_isolation` is for tests.

This module connects the lower floors to the plugin manager. A missing rule, operator, structural operation or facade
name loads the plugins. Before that nothing is discovered or imported, not even pluggy, and nothing here needs NumPy.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from corejax.base import plugin_access, provenance
from corejax.base.registered import registries
from corejax.base.stubs import import_with_slots
from corejax.core import array_methods
from corejax.errors import PluginMissingError
from corejax.plugins._finder import install
from corejax.plugins._finder import is_import_from as is_import_from
from corejax.settings.config import config

if TYPE_CHECKING:
    from corejax.plugins._plugin_manager import PluginManager
    from corejax.plugins._records import PluginRecord

_manager: PluginManager | None = None
_making = threading.Lock()
_reserved: set[str] = set()


def manager() -> PluginManager:
    """Return the plugin manager of this process, created on first use."""
    global _manager
    if _manager is None:
        from corejax.plugins._plugin_manager import PluginManager

        with _making:
            if _manager is None:
                _manager = PluginManager(reserved=_reserved)
    return _manager


def set_manager(new: PluginManager | None) -> PluginManager | None:
    """Replace the plugin manager (in tests) and return the earlier one."""
    global _manager
    earlier, _manager = _manager, new
    array_methods.set_plugins_loaded(new is not None and new.loaded)
    return earlier


def plugin_records(*, load: bool = True) -> list[PluginRecord]:
    """Return the records of all installed plugins: name, distribution, version; with `load` also status and fault."""
    if load:
        manager().load()
    return list(manager().discover().values())


plugins = plugin_records  # the name for users: `corejax.plugins.plugins()`


def errors() -> list[PluginRecord]:
    """Return the records of the plugins that failed."""
    return [record for record in plugin_records() if record.status == "failed"]


def load_everything() -> None:
    """Load the primitives, the rule kinds and the rules of every kind of every plugin, as `list-primitives` does."""
    manager().load_primitives()
    manager().load_rule_kinds()
    for kind in list(registries):
        manager().load_rules(kind)


def wire(names: Iterable[str]) -> None:
    """Connect the lower floors to the plugin manager; `corejax/__init__.py` calls this once, with its own names."""
    # A directory without `__init__.py` holds the stubs of a plugin's namespace and is no module of the kernel.
    kernel_modules = {
        entry.name.partition(".")[0]
        for entry in os.scandir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        if entry.name.endswith((".py", ".pyc")) or os.path.exists(os.path.join(entry.path, "__init__.py"))
    }
    _reserved.update(kernel_modules, names)
    plugin_access.find_manager.provide(manager)
    plugin_access.missing_name.provide(  # frame 3 executes the import or the attribute access that needs the name
        lambda name: missing_name(name, importing=is_import_from(sys._getframe(3)))
    )
    provenance.set_resolver(lambda module: manager().owner_of(module))
    install(manager, kernel_modules)
    config.changed.connect(_turn_on_checks)
    try:
        _turn_on_checks()  # environment variables may have turned one on
    except PluginMissingError as error:
        warnings.warn(str(error), stacklevel=3)


def _turn_on_checks() -> None:
    """Import the checks that settings turn on; they follow the settings themselves from then on."""
    if config.debug_nans or config.debug_infs or config.check_tracer_leaks:
        import_with_slots("corejax.interpreters.checks", "follow_settings")()


def missing_name(name: str, *, importing: bool | None = None) -> Exception:
    """Return the error for a facade name that no plugin exports. It tells what failed, what to install or a close name.

    Args:
        name: the name, dotted if it is inside a namespace: `"lax.scan"`.
        importing: whether the error is raised in `from module import name`, which hides the message of an
            AttributeError. By default the frame that called the module's `__getattr__`, the caller, is inspected.
    """
    from corejax.plugins import _missing_names

    if importing is None:
        importing = is_import_from(sys._getframe(2))
    return _missing_names.missing_name(manager(), name, importing=importing)


def exported(name: str) -> Any:
    """Return the object that a plugin exports under a facade name (dotted, `"lax.scan"`), or None."""
    return manager().exported(name)


def exported_names(namespace: str) -> list[str]:
    """Return the names that plugins export inside a namespace (`"lax"`), for its `__dir__`; import nothing."""
    return manager().names_inside(namespace)
