"""Which of the entries that were written while a plugin's code ran stay when that is taken back."""

from __future__ import annotations

import sys

from corejax.tables import Entry, Table


def is_of_whole_module(table: Table, entry: Entry) -> bool:
    """Whether a module registered it that has been imported to its end, so that it will not be registered again."""
    found = None if table.of_hooks else sys.modules.get(entry.provenance.module)
    return found is not None and not getattr(found.__spec__, "_initializing", False)


def is_of_another(plugin: str, table: Table, entry: Entry) -> bool:
    """Whether it is from a whole module of another plugin, which this one was the first to import."""
    return is_of_whole_module(table, entry) and entry.provenance.plugin not in (None, plugin)
