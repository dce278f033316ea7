"""The errors for names of the facade that nobody exports: what failed, what to install, or what was meant."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from corejax.errors import PluginError, PluginMissingError, PluginMissingImportError
from corejax.plugins.homes import KNOWN_HOMES
from corejax.plugins.records import VARIABLE, PluginRecord

if TYPE_CHECKING:
    from corejax.plugins.plugin_manager import PluginManager


def failure(record: PluginRecord, name: str, fault: BaseException) -> PluginError:
    """The error for a name of a plugin that failed; the fault is its cause."""
    from corejax.texts import error_text  # needed for an error only

    error = PluginError(
        f"corejax.{name} comes from plugin {record.title}, which failed: "
        + "; ".join([error_text(fault), *record.unmet])
    )
    error.__cause__ = fault
    return error


def missing_name(manager: PluginManager, name: str, *, importing: bool) -> Exception:
    """The error for a name that nobody exports.

    Args:
        manager: the manager.
        name: the name, dotted inside a namespace.
        importing: whether an import statement asked, so that the error has to be an ImportError.
    """
    home = KNOWN_HOMES.get(name)
    record = _home_of(manager, name, home)
    if record is not None and record.fault is not None:
        return failure(record, name, record.fault)
    namespace, _, last = f"corejax.{name}".rpartition(".")
    message = f"module {namespace!r} has no attribute {last!r}"
    if record is not None and record.status == "off":
        message += f"; it comes with plugin {record.title}, which is switched off by {_variable()}"
    elif record is not None:
        message += f"; it comes with {home}, but the installed plugin {record.title} does not export it"
    elif home is not None:
        message += f"; it comes with the plugin distribution {home} (pip install {home})"
    else:
        message += _guesses(manager, name)
    return (PluginMissingImportError if importing else PluginMissingError)(message)


def is_expected(manager: PluginManager, name: str) -> bool:
    """Whether a name that nobody exports is known to belong to some plugin."""
    return name in KNOWN_HOMES or _home_of(manager, name, None) is not None


def _home_of(manager: PluginManager, name: str, home: str | None) -> PluginRecord | None:
    records = list(manager.discover().values())
    for record in records:
        if record.status in ("found", "off"):
            manager.manifest(record)  # tells what it offers
    offering = [r for r in records if name in r.offers]
    return next(iter([*offering, *(r for r in records if r.comes_from(home))]), None)


def _guesses(manager: PluginManager, name: str) -> str:
    import difflib  # needed for an error only

    namespace, dot, last = name.rpartition(".")
    prefix = namespace + dot
    known = {n.removeprefix(prefix) for n in manager.offered() if n.startswith(prefix)}
    module = sys.modules.get(manager.namespaces[namespace][0]) if namespace in manager.namespaces else None
    known.update(vars(module) if module is not None else () if namespace else manager.reserved)
    close = difflib.get_close_matches(last, sorted(known), 1)
    text = f"; did you mean {close[0]!r}?" if close else ""
    sentences = [problem for r in manager.records.values() for problem in r.problems()]
    off = [r.name for r in manager.records.values() if r.status == "off"]
    if off:
        sentences.append(f"switched off by {_variable()}: {', '.join(off)}")
    return text + (f" (note: {'; '.join(sentences)})" if sentences else "")


def _variable() -> str:
    return f"{VARIABLE}={os.environ.get(VARIABLE, '')}"
