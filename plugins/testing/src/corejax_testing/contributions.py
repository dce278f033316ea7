"""What plugins give the kit: examples of their primitives, and checks of rules of their own kinds."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from corejax.extend import Example
from corejax.extend.messages import PluginError, error_text
from corejax.extend.plugins import plugin_records


def examples_of(primitive: str) -> list[Example]:
    """Return the applications of a primitive that plugins give.

    Raises:
        PluginError: a plugin fails to give them.
    """
    found: list[Example] = []
    for record in _loaded():
        with _asking(record, f"examples of {primitive!r}"):
            found += record.hook.corejax_provide_examples(primitive=primitive) or ()
    return found


def provided_checks() -> dict[str, tuple[Any, str]]:
    """Return the checks that plugins provide, by name: the object, and the name of the plugin.

    Raises:
        PluginError: a plugin fails to give them, or two give one of the same name.
    """
    found: dict[str, tuple[Any, str]] = {}
    for record in _loaded():
        with _asking(record, "checks"):
            for name, target in (record.hook.corejax_provide_checks() or {}).items():
                module, _, attribute = target.partition(":")
                if name in found:
                    raise PluginError(f"plugin {found[name][1]} has a check {name!r} too")
                found[name] = getattr(importlib.import_module(module), attribute), record.name
    return found


def _loaded() -> Iterator[Any]:
    return (record for record in plugin_records() if record.status == "loaded")


@contextmanager
def _asking(record: Any, what: str) -> Iterator[None]:
    """Raise a PluginError that names the plugin for what a plugin raises while it is asked for something."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PluginError(f"plugin {record.title} fails to give {what}: {error_text(error)}") from error
