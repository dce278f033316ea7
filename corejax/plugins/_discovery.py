"""Discovery of installed plugins. It reads the metadata of distributions and imports no plugin."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from importlib.machinery import PathFinder
from itertools import takewhile
from types import SimpleNamespace
from typing import Any

from corejax.errors import PluginError
from corejax.plugins._records import PluginRecord, canonical, name_and_version
from corejax.settings.selection import Selection

GROUP = "corejax.plugins"


def _read_text(directory: str, name: str) -> str | None:
    with suppress(FileNotFoundError, NotADirectoryError), open(os.path.join(directory, name), encoding="utf-8") as file:
        return file.read()
    return None


def distributions() -> Iterable[Any]:
    """Return the installed distributions, objects with a method `read_text` as in importlib_metadata.

    Importing importlib_metadata takes longer than reading all directories; only archives and import hooks need it.
    """
    hooks = [finder for finder in sys.meta_path if hasattr(finder, "find_distributions") and finder is not PathFinder]
    if hooks or any(map(os.path.isfile, sys.path)):
        from importlib_metadata import distributions

        return distributions()
    paths = (os.path.join(place, name) for place in sys.path for name in _names_in(place) if name.endswith("-info"))
    return (SimpleNamespace(_path=path, read_text=partial(_read_text, path)) for path in paths)


def _names_in(directory: str) -> list[str]:
    with suppress(OSError):
        return os.listdir(directory or ".")
    return []


def installed_entry_points() -> list[PluginRecord]:
    """Return a record for each entry point of the group `corejax.plugins`.

    If two distributions have one name, the first on the path counts. If the entry points of a distribution cannot be
    read, its record has failed. The order decides which of two equal exports is refused, so it does not depend on the
    file system: first-party distributions, then the others by name and distribution, then failed records.
    """
    records: list[PluginRecord] = []
    seen: set[str] = set()
    for dist in distributions():
        name = _name_of(dist)
        if (key := canonical(name)) in seen:
            continue
        seen.add(key)
        try:
            records += _plugins_of(dist)
        except Exception as error:
            name = name_and_version(dist)[0] or name
            records.append(PluginRecord(name, "", name, status="failed", fault=error))
    return sorted(records, key=lambda r: (r.status == "failed", not r.at_home, r.name, r.key))


def version_of(distribution: str) -> str | None:
    """Return the version of an installed distribution, or None if it is not installed."""
    found = (dist for dist in distributions() if canonical(_name_of(dist)) == canonical(distribution))
    return next((name_and_version(dist)[1] for dist in found), None)


def _name_of(dist: Any) -> str:
    """Return the name of a distribution as its directory has it, which is quicker to read than the metadata."""
    return os.path.basename(str(getattr(dist, "_path", ""))).partition("-")[0] or repr(dist)


def _plugins_of(dist: Any) -> list[PluginRecord]:
    """Return the records of one distribution.

    Raises:
        PluginError: a line is no entry point, or the group is named in a form that Python would ignore.
    """
    text = dist.read_text("entry_points.txt") or ""
    lines = list(map(str.strip, text.splitlines()))
    if f"[{GROUP}]" not in lines:
        pattern = r"\[\s*corejax[._-]?plugins?\s*\]|\[\s*corejax\.plugins|corejax\.plugins\s*\]"
        if "corejax" in text.lower() and (like := re.search(pattern, text, re.IGNORECASE)):
            mistake = f"entry_points.txt has a group {like[0]}; plugins are found in [{GROUP}]"
            raise PluginError(f"{mistake}, which must be a line of its own, without a byte-order mark")
        return []
    records = []
    for line in takewhile(lambda line: not line.startswith("["), lines[lines.index(f"[{GROUP}]") + 1 :]):
        name, _, value = map(str.strip, line.partition("="))
        if value and not line.startswith("#"):
            records.append(PluginRecord(name, value, *name_and_version(dist), dist=dist))
        elif line and not line.startswith("#"):
            raise PluginError(f"entry_points.txt: {line!r} must be `name = module` or `name = module:object`")
    return records


def by_name(all_records: Iterable[PluginRecord], selection: Selection) -> dict[str, PluginRecord]:
    """Return records by name. Plugins that are not selected are off; the second of two with one name has failed."""
    records: dict[str, PluginRecord] = {}
    for record in all_records:
        if record.name not in selection:
            record.status = "off"
        earlier = records.setdefault(record.name, record)
        if earlier is record or (earlier.value, earlier.distribution) == (record.value, record.distribution):
            continue  # new, or the same distribution seen twice on the path
        if record.status not in ("off", "failed"):
            record.status = "failed"
            both = f"{earlier.title} and {record.title}"
            record.fault = PluginError(f"two distributions have a plugin named {record.name!r}: {both}; uninstall one")
        records[f"{record.name} ({record.distribution})"] = record
    return records
