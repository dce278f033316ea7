"""Places of objects that plugins name, `"module:object"`: checked as a hook gives them, imported when needed."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from corejax.errors import PluginError


def check_targets(hook: str, example: str, given: Any, *, colons: int = 1) -> dict[str, str]:
    """What a hook gave, a mapping from names to places; nothing is imported.

    Args:
        hook: its name.
        example: a mapping as it should be.
        given: what it gave.
        colons: how many a place has: 1 for an object in a module, 0 for a module.

    Raises:
        PluginError: naming the entry and the form that is wanted.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise PluginError(f"{hook} gives a mapping such as {example}, this one gave {given!r}")
    for name, target in given.items():
        if not (isinstance(name, str) and isinstance(target, str) and target.count(":") == colons):
            raise PluginError(f"{hook} gives entries such as {example}, got {name!r}: {target!r}")
    return dict(given)


def entries(hook: str, example: str, given: Any) -> Iterable[tuple[Any, Any]]:
    """The entries of a mapping that a hook gave; none of None.

    Raises:
        PluginError: it is no mapping.
    """
    if given is None:
        return ()
    if not hasattr(given, "items"):
        raise PluginError(f"{hook} gives a mapping such as {example}, this one gave {given!r}")
    return given.items()  # type: ignore[no-any-return]


def check_plain_name(what: str, example: str, name: str) -> None:
    """Refuse a name that is not lower-case letters, digits and underscores.

    Raises:
        PluginError: it is not.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise PluginError(f"{what} is lower-case letters, digits and underscores, such as {example!r}; got {name!r}")


def import_instance(said: str, target: str, wanted: type, title: str) -> Any:
    """The object at a place, of the class that it has to be of.

    Args:
        said: who says that it is there, `"rule kind 'interval' is declared"`.
        target: the place.
        wanted: the class.
        title: what the class is called in a message, `"a RuleRegistry"`.

    Raises:
        PluginError: there is none.
    """
    module, _, attribute = target.partition(":")
    found = getattr(importlib.import_module(module), attribute, None)
    if not isinstance(found, wanted):
        given = "there is nothing of that name" if found is None else f"it is {found!r}"
        raise PluginError(f"{said} as {target}, which has to be {title}; {given}")
    return found
