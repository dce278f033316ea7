"""Which primitives somebody means: names of plugins and of primitives."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from corejax.extend import Primitive, primitives


def chosen(names: Sequence[str]) -> list[Primitive]:
    """The primitives of these plugins and of these names, sorted by name; all that there are for no name.

    Raises:
        KeyError: there is no such plugin or primitive; with what was probably meant.
    """
    by_plugin: dict[str, list[Primitive]] = {}
    for primitive in list(primitives.values()):
        if primitive.provenance.plugin is not None:
            by_plugin.setdefault(primitive.provenance.plugin, []).append(primitive)
    found: dict[str, Primitive] = {}
    for name in names or sorted(by_plugin):
        if name not in primitives and name not in by_plugin:
            close = difflib.get_close_matches(name, [*primitives, *by_plugin], 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise KeyError(f"there is no plugin and no primitive named {name!r}{hint}")
        for primitive in [primitives[name]] if name in primitives else by_plugin[name]:
            found[primitive.name] = primitive
    return [found[name] for name in sorted(found)]
