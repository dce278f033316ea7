"""Keys that have been used, while the setting `debug_key_reuse` is on: arrays as well as traced values, by identity."""

from __future__ import annotations

import weakref
from typing import Any

from corejax.extend import Array, KeyReuseError, capture_source, clears_cache, config, describe_source

_used: dict[int, tuple[Any, Any, str]] = {}  # id -> weak reference, where it was used, and by which function
clears_cache(_used.clear)


def use(name: str, key: Any) -> None:
    """Note that a function uses a key up.

    Raises:
        KeyReuseError: it has been used.
    """
    if not config.debug_key_reuse:
        return
    layers = [key]
    while type(layers[-1]) is not Array and hasattr(layers[-1], "val"):  # of a mapped key the array of keys too
        layers.append(layers[-1].val)
    for x in layers:
        found = _used.get(id(x))
        if found is not None and found[0]() is x:
            raise KeyReuseError(
                f"{name}: the key was used at {describe_source(found[1])} by {found[2]}, and a key is used once: make "
                "new ones of it with corejax.random.split before, or say clone(key) if the same numbers are meant"
            )
    place = capture_source()
    for x in layers:
        where = id(x)
        _used[where] = (weakref.ref(x, lambda _, where=where: _used.pop(where, None)), place, name)
