"""The errors for names of the facade that nobody exports: what failed, what to install, or what was meant."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from corejax.base.texts import did_you_mean, how_to_install
from corejax.errors import PluginMissingError, PluginMissingImportError
from corejax.messages.homes import homes
from corejax.plugins._records import LATE, failure
from corejax.settings.selection import VARIABLE

if TYPE_CHECKING:
    from corejax.plugins._plugin_manager import PluginManager
    from corejax.plugins._records import PluginRecord
    from corejax.plugins.manifest import Manifest


def missing_name(manager: PluginManager, name: str, *, importing: bool) -> Exception:
    """Return the error for a name that no plugin exports.

    Args:
        manager: the manager.
        name: the name, dotted inside a namespace.
        importing: whether an import statement asked, so that the error has to be an ImportError.
    """
    home = homes("names").get(name)
    record = _home_of(manager, name, home)
    if record is not None and record.fault is not None:
        return failure(record, name, record.fault)
    namespace, _, last = f"corejax.{name}".rpartition(".")
    message = f"module {namespace!r} has no attribute {last!r}"
    if importing and name in manager.names:
        message = f"{f'corejax.{name}'!r} is no module: from {namespace} import {last}"
    elif record is not None:
        message += f"; it comes with {_where(manager, record, home, 'does not export it')}"
    elif manager.outside is not None and name in manager.outside.offered():
        message += "; the plugin that has it is not in this block of isolated_plugins: import the name before the block"
    elif home is not None:
        message += f"; it comes with {_where(manager, None, home)}"
    else:
        message += _guesses(manager, name)
    return (PluginMissingImportError if importing else PluginMissingError)(message)


def where(manager: PluginManager, home: str, lacks: str) -> str:
    """Return where a distribution is whose plugin lacks something, or how to install it; `lacks` ends the sentence."""
    record = next((r for r in manager.discover().values() if r.comes_from(home)), None)
    return _where(manager, record, home, lacks)


def _where(manager: PluginManager, record: PluginRecord | None, home: str | None, lacks: str = "") -> str:
    if record is None:
        late = any(r.comes_from(home) for r in manager.installed_since())
        return f"the plugin distribution {f'{home}, which {LATE}' if late else how_to_install(home or '')}"
    if record.status == "off":
        return f"plugin {record.title}, which is switched off by {_variable()}"
    if record.fault is not None:
        return f"plugin {record.title}, which failed; to see why: corejax plugins"
    return f"{home}, but the installed plugin {record.title} {lacks}"


def whose_primitive(manager: PluginManager, name: str, distribution: str | None = None) -> str:
    """Return where a primitive is that is not here, in half a sentence.

    Args:
        manager: the manager.
        name: the primitive's.
        distribution: the one that it was from, if that is known.
    """
    prefix = name.partition(".")[0] if "." in name else None
    home = distribution or homes("primitives").get(name)
    found = _whose(manager, home, lambda manifest: name in manifest.primitives, prefix)
    if found is not None:
        return found
    return "is the plugin that has it installed" + (f", corejax-{prefix.replace('_', '-')} perhaps?" if prefix else "?")


def whose_method(manager: PluginManager, name: str) -> str:
    """Return where an array method is that is not here, as the end of a sentence; "" if that is not known."""
    home = homes("array_methods").get(name)
    return "" if home is None else f"; {_whose(manager, home, lambda manifest: name in manifest.array_methods)}"


def _whose(
    manager: PluginManager, home: str | None, offers: Callable[[Manifest], bool], plugin: str | None = None
) -> str | None:
    """Return which plugin has something that is not here, as half a sentence.

    Args:
        manager: the manager.
        home: the distribution that has it, if that is known.
        offers: whether a manifest lists it.
        plugin: the name of the plugin, if `home` is not known.
    """
    for record in manager.discover().values():
        if record.status not in ("off", "failed"):
            continue
        manifest = manager.manifest(record).manifest
        known = manifest is not None and offers(manifest)
        if known or record.comes_from(home) or (home is None and plugin == record.name):
            return f"it is of {_where(manager, record, home)}"
    return None if home is None else f"it comes with {_where(manager, None, home)}"


def is_expected(manager: PluginManager, name: str) -> bool:
    """Whether a name that no plugin exports is known to belong to one, or may be of one that is not loaded."""
    known = name in homes("names") or _home_of(manager, name, None) is not None
    return known or bool(_silent(manager) or manager.installed_since())


def _home_of(manager: PluginManager, name: str, home: str | None) -> PluginRecord | None:
    records = list(manager.discover().values())
    for record in records:
        if record.status in ("found", "off", "failed"):
            manager.manifest(record)  # tells what it offers
    offering = [r for r in records if name in r.offers]
    namesakes = [r for r in _silent(manager) if r.name == name.partition(".")[0]]
    return next(iter([*offering, *(r for r in records if r.comes_from(home)), *namesakes]), None)


def _silent(manager: PluginManager) -> list[PluginRecord]:
    """Plugins that are off or failed before they said what they offer: any name may be theirs."""
    return [r for r in manager.discover().values() if r.status in ("off", "failed") and not r.offers]


def _guesses(manager: PluginManager, name: str) -> str:
    namespace, dot, last = name.rpartition(".")
    prefix = namespace + dot
    known = {n.removeprefix(prefix) for n in (*manager.offered(), *manager.reserved) if n.startswith(prefix)}
    module = sys.modules.get(manager.namespaces[namespace][0]) if namespace in manager.namespaces else None
    known.update(() if module is None else dir(module))
    text = did_you_mean(last, known)
    sentences = manager.problems()
    off = [r.name for r in manager.records.values() if r.status == "off"]
    if off:
        sentences.append(f"switched off by {_variable()}: {', '.join(off)}")
    return text + (f" (note: {'; '.join(sentences)})" if sentences else "")


def _variable() -> str:
    return f"{VARIABLE}={os.environ.get(VARIABLE, '')}"
