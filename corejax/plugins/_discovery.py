"""Discovery of installed plugins. It reads the metadata of distributions and imports no plugin."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from corejax.errors import PluginError
from corejax.plugins._records import PluginRecord, canonical
from corejax.settings.selection import Selection

GROUP = "corejax.plugins"


def installed_entry_points() -> list[PluginRecord]:
    """Return a record for each entry point of the group `corejax.plugins`.

    If two distributions have one name, the first on the path counts. If the entry points of a distribution cannot be
    read, its record has failed.

    If two plugins export the same name, the later one is refused, so the order must not depend on how a file system
    lists directories. The distributions that `corejax.messages.homes` lists come first, then the others by name and
    distribution; failed records come last.
    """
    from importlib_metadata import distributions

    records: list[PluginRecord] = []
    seen: set[str] = set()
    for dist in distributions():
        directory = str(getattr(dist, "_path", ""))
        name = os.path.basename(directory).partition("-")[0] or repr(dist)
        if canonical(name) in seen:
            continue
        seen.add(canonical(name))
        try:
            records += _plugins_of(dist, os.path.join(directory, "entry_points.txt"))
        except Exception as error:
            with suppress(Exception):
                name = dist.name
            records.append(PluginRecord(name, "", name, status="failed", fault=error))
    return sorted(records, key=lambda r: (r.status == "failed", not r.at_home, r.name, canonical(r.distribution or "")))


def _plugins_of(dist: Any, path: str) -> list[PluginRecord]:
    """Return the records of one distribution.

    Raises:
        PluginError: the entry points cannot be read, or name the group in a form that Python would ignore.
    """
    try:
        with open(path, "rb") as file:
            text = file.read()
    except (FileNotFoundError, NotADirectoryError):  # no entry points, or the distribution is in an archive
        text = (dist.read_text("entry_points.txt") or "").encode()
    except OSError as error:
        problem = f"{path} cannot be read ({error.strerror}), so its plugins, if it has any, are unknown"
        raise PluginError(f"{problem}; {_MEND}") from error
    if _SECTION.search(text):
        return [PluginRecord.of_entry_point(entry) for entry in dist.entry_points.select(group=GROUP)]
    if misspelt := _MISSPELT.search(text):
        raise PluginError(f"{path} has a group {misspelt[1].decode()}; plugins are found in [{GROUP}]; {_MEND}")
    if _SECTION_OR_LIKE.search(text):
        problem = f"{path} mentions [{GROUP}], but not as a line of its own in UTF-8 without a byte-order mark"
        raise PluginError(f"{problem}; {_MEND}")
    return []


_MEND = "mend the file, or install the distribution again"
_SECTION = re.compile(rb"^\s*\[corejax\.plugins\]\s*$", re.MULTILINE)
_MISSPELT = re.compile(rb"^\s*(\[\s*corejax(?:[._-]?plugin|[_-]?plugins)\s*\])\s*$", re.MULTILINE | re.IGNORECASE)
_SECTION_OR_LIKE = re.compile(
    rb"\[\s*corejax\.plugins|corejax\.plugins\s*\]|c\0o\0r\0e\0j\0a\0x\0\.\0p\0l\0u\0g\0i\0n\0s"
)


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
            record.fault = PluginError(
                f"two distributions have a plugin named {record.name!r}: {earlier.title} and {record.title}; "
                "uninstall one"
            )
        records[f"{record.name} ({record.distribution})"] = record
    return records
