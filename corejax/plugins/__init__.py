"""Plugins: hook specs, discovery, lazy loading, faults, provenance.

Where to read, in this order (everything with an underscore is this room's own):

- `hookspecs` is the contract: what a plugin may give. `_example` is one of the types in it.
- `_records`: what is known of one plugin (`corejax.settings.selection`: whether it is on). `_discovery` finds what
  is installed.
- `_hooks` makes hooks of a plugin object, `_exports` checks and takes what they give,
  `_loading` runs them one plugin at a time (with `_load_lock`; what a failed one registered is taken back),
  `_lazy_rules` at first need.
- `_plugin_manager` puts these together for a process. `_finder` imports `corejax.<namespace>` through it.
- `manifest` reads what a plugin says of itself in a file, `_usable_manifests` whether all of these together will
  do; the author's kit writes them.
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
from corejax.base import provenance
from corejax.base.plugin_access import plugin_access
from corejax.core import array_methods
from corejax.core.backends import backends
from corejax.errors import PluginMissingError
from corejax.interpreters.checks import Checks, find_checks, follow_settings
from corejax.interpreters.engine import PLAIN, Engine, find_engine
from corejax.ir import drawing
from corejax.plugins._finder import is_import_from as is_import_from
from corejax.programs.recomputation import Recomputation, find_recomputation
from corejax.rules import registries
from corejax.settings.config import config

if TYPE_CHECKING:
    from corejax.plugins._example import Example
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
    array_methods.all_are_here(new is not None and new.loaded)
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


def examples_of(primitive: str) -> list[Example]:
    """Applications of a primitive that plugins give, for checks of its rules."""
    return manager().examples(primitive)


def provided_checks() -> dict[str, tuple[Any, str]]:
    """Checks of rules that plugins provide, by name: the object, and the name of the plugin."""
    return manager().checks()


def wire(kernel_directory: str, names: Iterable[str]) -> None:
    """Connect the lower floors to the plugin manager; `corejax/__init__.py` calls it once.

    Args:
        kernel_directory: the kernel's package.
        names: the facade's own names.
    """
    from corejax.plugins import _finder

    kernel_modules = {name.partition(".")[0] for name in os.listdir(os.path.abspath(kernel_directory))}
    _reserved.update(kernel_modules, names, (f"dtypes.{name}" for name in vars(dtypes)))
    plugin_access.provide(_PluginAccess())
    drawing.provide(_drawing)
    find_engine.provide(_find_engine)
    find_recomputation.provide(_find_recomputation)
    backends.load_plugins = vars(config)["load_plugins"] = lambda: manager().load()
    backends.import_object = lambda name: manager().import_backend(name)
    provenance.set_resolver(lambda module: manager().owner_of(module))
    _finder.install(manager, kernel_modules)
    find_checks.provide(_find_checks)
    try:
        follow_settings()  # the environment may have turned a check on
    except PluginMissingError as error:
        warnings.warn(str(error), stacklevel=3)


def _drawing() -> Any:
    """The plugin's function that draws programs."""
    draw = exported("draw_jaxpr")
    if draw is None:
        raise missing_name("draw_jaxpr", importing=False)
    return draw


def _find_checks(settings: Sequence[str]) -> Checks:
    """Return the plugin's checks, which settings turn on."""
    found: Checks | None = exported("debug_checks")
    if found is None:
        error = missing_name("debug_checks", importing=False)
        raise type(error)(str(error).replace("module 'corejax' has no attribute 'debug_checks'", _needed(settings)))
    return found


def _needed(settings: Sequence[str]) -> str:
    return f"the check that the setting {' or '.join(settings)} turns on is missing"


def _find_engine() -> Engine | None:
    found: Engine | None = exported("eager_engine")
    return PLAIN if found is None and manager().loaded else found


def _find_recomputation() -> Recomputation | None:
    return _exported_to_kernel("recomputation")  # type: ignore[no-any-return]


def _exported_to_kernel(name: str) -> Any:
    """As `exported`; in a block of `isolated_plugins` also of plugins outside: what was imported before it goes on."""
    inside = manager()
    found = inside.exported(name)
    return found if found is not None or inside.outside is None else inside.outside.exported(name)


class _PluginAccess:
    """See `corejax.base.plugin_access.PluginAccess`."""

    def load(self) -> None:
        manager().load()

    def load_rules(self, kind: str, primitive: Any = None) -> bool:
        if kind == "primitives":
            return manager().load_primitives()
        return manager().load_rules(kind, primitive)

    def problems(self, kind: str) -> list[str]:
        found = manager().problems(kind)
        off = [record.title for record in manager().records.values() if record.status == "off"]
        if kind == "primitives" and off:
            found.append(f"COREJAX_PLUGINS={manager().selection.text} switches off {', '.join(off)}")
        return found

    def whose_primitive(self, name: str, distribution: str | None = None) -> str:
        from corejax.plugins import _missing_names

        return _missing_names.whose_primitive(manager(), name, distribution)

    def whose_method(self, name: str) -> str:
        from corejax.plugins import _missing_names

        return _missing_names.whose_method(manager(), name)

    def exported(self, name: str) -> Any:
        found = _exported_to_kernel(name)
        if found is None:
            raise missing_name(name, importing=is_import_from(sys._getframe(2)))
        return found

    def exported_names(self, namespace: str) -> list[str]:
        return exported_names(namespace)


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
