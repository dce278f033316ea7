"""Plugins of one's own for a while: what they contribute is gone afterwards (tests of plugins)."""

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
    """A fresh plugin manager for a `with` block, and every table as it was afterwards.

    Rules and primitives that are there already stay in use; what the block adds, by plugins
    (`manager.register(plugin, name)`) or directly, is taken out again. Names of the facade that installed plugins
    export (`corejax.jit`) are not in the block: what is needed there is imported before.

    Args:
        find: gives the records of installed plugins; by default there are none.
    """
    from corejax.plugins._plugin_manager import PluginManager

    plugins.load_everything()  # or a module first imported in the block would lose what it registers
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
