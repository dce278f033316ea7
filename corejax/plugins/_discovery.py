"""Discovery: which plugins are installed. Metadata of distributions is read, nothing of a plugin is imported."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from corejax.errors import PluginError
from corejax.plugins._records import PluginRecord, canonical
from corejax.selection import Selection

GROUP = "corejax.plugins"


def installed_entry_points() -> Iterator[PluginRecord]:
    """Entry points of the group in installed distributions; the first of a name on the path counts once.

    Of two plugins that offer the same, the later one is refused. So that this does not hang on the order in which
    a file system lists directories: first the distributions that names of the facade belong to (`corejax.homes`),
    then the others by name and distribution; what cannot be read comes last.
    """
    from importlib_metadata import entry_points

    try:
        records = [PluginRecord.of_entry_point(entry) for entry in entry_points(group=GROUP)]
    except Exception:  # one distribution's metadata is enough
        records = list(_one_by_one())
    records += _unreadable()
    order = ((r.status == "failed", not r.at_home, r.name, canonical(r.distribution or ""), r) for r in records)
    return (record for *_, record in sorted(order, key=lambda key: key[:-1]))


def _one_by_one() -> Iterator[PluginRecord]:
    """Records of what is installed, one distribution after the other; one that cannot be read counts as failed."""
    from importlib_metadata import distributions

    seen = set()
    for dist in distributions():
        directory = str(getattr(dist, "_path", ""))
        name = os.path.basename(directory).partition("-")[0]
        try:
            name = dist.name
            if canonical(name) not in seen:
                yield from map(PluginRecord.of_entry_point, dist.entry_points.select(group=GROUP))
            seen.add(canonical(name))
        except Exception as error:
            if _mentions(os.path.join(directory, "entry_points.txt"), GROUP):
                yield PluginRecord(name, "", name, status="failed", fault=error)


def _unreadable() -> Iterator[PluginRecord]:
    """Records of distributions whose entry points the metadata library passes over in silence."""
    from importlib_metadata import distributions

    for dist in distributions():
        path = os.path.join(str(getattr(dist, "_path", "")), "entry_points.txt")
        try:
            with open(path, "rb") as file:
                text = file.read()
        except (FileNotFoundError, NotADirectoryError):
            continue  # no such file, or the distribution is in an archive
        except OSError as error:
            problem = f"{path} cannot be read ({error.strerror}), so that its plugins, if any, are unknown"
        else:
            if _SECTION.search(text):
                continue
            misspelt = _MISSPELT.search(text)
            if misspelt is None and not _SECTION_OR_LIKE.search(text):
                continue
            problem = f"{path} mentions [{GROUP}], but not as a line of its own in UTF-8 without a byte-order mark"
            if misspelt is not None:
                problem = f"{path} has a group {misspelt[1].decode()}; plugins are found in [{GROUP}]"
        name = os.path.basename(os.path.dirname(path)).partition("-")[0]
        fault = PluginError(f"{problem}; mend the file, or install the distribution again")
        yield PluginRecord(name, "", name, status="failed", fault=fault)


_SECTION = re.compile(rb"^\s*\[corejax\.plugins\]\s*$", re.MULTILINE)
_MISSPELT = re.compile(rb"^\s*(\[\s*corejax(?:[._-]?plugin|[_-]?plugins)\s*\])\s*$", re.MULTILINE | re.IGNORECASE)
_SECTION_OR_LIKE = re.compile(
    rb"\[\s*corejax\.plugins|corejax\.plugins\s*\]|c\0o\0r\0e\0j\0a\0x\0\.\0p\0l\0u\0g\0i\0n\0s"
)


def _mentions(path: str, word: str) -> bool:
    try:
        with open(path, "rb") as file:
            return word.encode() in file.read()
    except OSError:
        return False


def by_name(found: Iterable[PluginRecord], selection: Selection) -> dict[str, PluginRecord]:
    """Records by the plugins' names: those that are not selected are off, the second of one name has failed."""
    records: dict[str, PluginRecord] = {}
    for record in found:
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
