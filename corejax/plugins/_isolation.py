"""Temporary plugins for tests: after the block, everything that they contributed is removed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from corejax import plugins
from corejax.base import tables
from corejax.settings.config import config

if TYPE_CHECKING:
    from corejax.plugins._plugin_manager import PluginManager
    from corejax.plugins._records import PluginRecord


@contextmanager
def isolated_plugins(find: Callable[[], Iterable[PluginRecord]] = lambda: ()) -> Iterator[PluginManager]:
    """Use a fresh plugin manager for a `with` block, and restore every table afterwards.

    Rules and primitives that are already registered stay in use. Those that the block adds, by plugins
    (`manager.register(plugin, name)`) or directly, are removed at its end. Facade names that installed plugins export
    (`corejax.jit`) are missing in the block; import those that it needs before it.

    Args:
        find: returns the records of installed plugins; by default no plugin counts as installed.
    """
    from corejax.plugins._plugin_manager import PluginManager

    plugins.load_everything()  # a module first imported in the block would lose its registrations at the end
    facade, manager = vars(sys.modules["corejax"]), PluginManager(find, plugins._reserved)
    before, settings, exports, aliases = tables.snapshot(), config.values(), _exports(facade), _aliases()
    earlier = plugins.set_manager(manager)
    manager.outside = earlier
    try:
        yield manager
    finally:
        plugins.set_manager(earlier)
        tables.restore(before)
        config.put_back(settings)
        _exports(facade)
        _aliases()
        facade.update(exports)
        sys.modules.update(aliases)


def _exports(facade: dict[str, Any]) -> dict[str, Any]:
    names = [name for name in facade if not name.startswith("_") and name not in plugins._reserved]
    return {name: facade.pop(name) for name in names}


def _aliases() -> dict[str, Any]:
    names = [n for n in sys.modules if n.startswith("corejax.") and n.split(".")[1] not in plugins._reserved]
    return {name: sys.modules.pop(name) for name in names}
