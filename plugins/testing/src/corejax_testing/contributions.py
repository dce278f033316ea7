"""Collect the examples and checks that plugins provide."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from corejax.extend import Example
from corejax.extend.messages import PluginError, error_text
from corejax.extend.plugins import plugin_records


def examples_of(primitive: str) -> list[Example]:
    """Return the example applications of a primitive that plugins provide.

    Raises:
        PluginError: a plugin's hook raises an error.
    """
    found: list[Example] = []
    for record in _loaded():
        with _asking(record, f"examples of {primitive!r}"):
            found += record.hook.corejax_provide_examples(primitive=primitive) or ()
    return found


def provided_checks() -> dict[str, tuple[Any, str]]:
    """Return the checks that plugins provide, by name: each check and the name of its plugin.

    Raises:
        PluginError: a plugin's hook raises an error, or two plugins provide checks of the same name.
    """
    found: dict[str, tuple[Any, str]] = {}
    for record in _loaded():
        with _asking(record, "checks"):
            for name, target in (record.hook.corejax_provide_checks() or {}).items():
                module, _, attribute = target.partition(":")
                if name in found:
                    raise PluginError(f"plugin {found[name][1]} also has a check named {name!r}")
                found[name] = getattr(importlib.import_module(module), attribute), record.name
    return found


def _loaded() -> Iterator[Any]:
    return (record for record in plugin_records() if record.status == "loaded")


@contextmanager
def _asking(record: Any, what: str) -> Iterator[None]:
    """Convert any error of a plugin's hook to a PluginError that names the plugin."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PluginError(f"plugin {record.title} fails to provide {what}: {error_text(error)}") from error
