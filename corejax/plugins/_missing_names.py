"""Errors for facade names that no plugin exports: they tell what failed, what to install, or a close name."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from corejax.base.texts import did_you_mean
from corejax.errors import PluginMissingError, PluginMissingImportError
from corejax.messages.homes import homes
from corejax.plugins._records import failure

if TYPE_CHECKING:
    from corejax.plugins._plugin_manager import PluginManager
    from corejax.plugins._records import PluginRecord


def missing_name(manager: PluginManager, name: str, *, importing: bool) -> Exception:
    """Return the error for a name (dotted if it is inside a namespace) that no plugin exports.

    It is an ImportError if `importing`, else an AttributeError; a plain one if no plugin is known to have the name.
    """
    home = homes("names").get(name)
    record = _home_of(manager, name, home)
    if record is not None and record.fault is not None:
        return failure(record, name, record.fault)
    namespace, _, last = f"corejax.{name}".rpartition(".")
    message = f"module {namespace!r} has no attribute {last!r}"
    if importing and name in manager.names:
        message = f"{f'corejax.{name}'!r} is not a module: from {namespace} import {last}"
    elif record is not None:
        message += f"; it comes with {manager.where(record, home, 'does not export it')}"
    elif manager.outside is not None and name in manager.outside.offered():
        message += "; the plugin that has it is not in this block of isolated_plugins: import the name before the block"
    elif home is not None:
        message += f"; it comes with {manager.where(None, home)}"
    elif importing:
        return ImportError(message + _guesses(manager, name), name=namespace)
    else:  # no `obj`: with one Python prints a suggestion of its own after ours
        return AttributeError(message + _guesses(manager, name), name=last)
    return (PluginMissingImportError if importing else PluginMissingError)(message)


def is_expected(manager: PluginManager, name: str) -> bool:
    """Return True if a name that no plugin exports is known to belong to one, or may belong to one not loaded."""
    known = name in homes("names") or _home_of(manager, name, None) or _silent(manager)
    return bool(known or manager.installed_since())


def _home_of(manager: PluginManager, name: str, home: str | None) -> PluginRecord | None:
    records = list(manager.discover().values())
    for record in records:
        if record.status in ("found", "off", "failed"):
            manager.manifest(record)  # fills `record.offers`
    offering = [r for r in records if name in r.offers]
    namesakes = [r for r in _silent(manager) if r.name == name.partition(".")[0]]
    return next(iter([*offering, *(r for r in records if r.comes_from(home)), *namesakes]), None)


def _silent(manager: PluginManager) -> list[PluginRecord]:
    """Return the plugins that are off or failed and have unknown exports; any name may belong to them."""
    return [r for r in manager.discover().values() if r.status in ("off", "failed") and not r.offers]


def _guesses(manager: PluginManager, name: str) -> str:
    namespace, _, last = f"corejax.{name}".rpartition(".")
    prefix = name.removesuffix(last)
    known = {n.removeprefix(prefix) for n in (*manager.offered(), *manager.reserved) if n.startswith(prefix)}
    known.update(dir(sys.modules.get(namespace, ())))
    elsewhere = [n for n in _namespaces(manager) if last in dir(sys.modules[n])]
    text = f"; did you mean {f'{elsewhere[0]}.{last}'!r}?" if elsewhere else did_you_mean(last, known)
    sentences = manager.problems()
    off = [r.name for r in manager.records.values() if r.status == "off"]
    if off:
        sentences.append(f"switched off by {manager.selection.setting}: {', '.join(off)}")
    return text + (f" (note: {'; '.join(sentences)})" if sentences else "")


def _namespaces(manager: PluginManager) -> list[str]:
    """Return the imported namespaces in which to look for a name; import `numpy`, `lax` and `nn` possible."""
    for name in ("corejax.numpy", "corejax.lax", "corejax.nn"):
        with suppress(Exception):
            import_module(name)
    names = ("", "numpy", "lax", "nn", *sorted(manager.namespaces))
    return [n for n in (f"corejax.{name}".rstrip(".") for name in names) if n in sys.modules]
