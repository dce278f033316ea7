"""Write manifests to files, and compare them with the code."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from corejax.extend import load_everything
from corejax.extend.plugins import API_VERSION, manifest, plugin_records
from corejax_testing.manifests.describing import describe


def write(record: Any, output: Path | None = None) -> Path:
    """Write a plugin's manifest; manifests of other plugins in the same file stay.

    Args:
        record: the record of a loaded plugin.
        output: the file; by default the manifest in the plugin's package, which must be installed editable.

    Returns:
        The path of the file.

    Raises:
        ValueError: as `describe`; or the package is not installed editable.
    """
    data = describe(record)
    if output is None:
        output = package_directory(record, "a manifest", ", or name a file with --output") / manifest.FILE
    others = {name: other for name, other in _plugins_in(output).items() if name != record.name}
    output.write_text(_text_of({**others, record.name: data}), encoding="utf-8", newline="\n")
    return output


def package_directory(record: Any, what: str, otherwise: str = "") -> Path:
    """Return the directory of a plugin's package, which must be installed editable.

    Args:
        record: the plugin's record.
        what: the file to write there, for messages.
        otherwise: an alternative for the user, for messages.

    Raises:
        ValueError: the plugin is a single module, or not installed editable.
    """
    found = manifest.find(record, API_VERSION)
    if found.path is None:
        raise ValueError(
            f"the plugin is the single module {record.module}, but {what} has to be in a package. Make it a package "
            f"({record.module}/__init__.py){otherwise}"
        )
    if not found.editable:
        raise ValueError(
            f"{record.distribution} is not installed editable, so {what} would be written into the "
            f"installation. Install it with pip install -e{otherwise}"
        )
    return Path(found.path).parent


def _plugins_in(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return data["plugins"] if data["manifest_version"] == manifest.MANIFEST_VERSION else {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def _text_of(manifests: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text of a file of manifests, with one entry a line, so that diffs are easy to read."""
    lines = ["{", f'"manifest_version": {manifest.MANIFEST_VERSION},', '"plugins": {']
    for plugin, data in sorted(manifests.items()):
        lines.append(f"{json.dumps(plugin)}: {{")
        for key, value in data.items():
            lines += _value_lines(key, value)
        lines[-1] = lines[-1].removesuffix(",")
        lines.append("},")
    lines[-1] = lines[-1].removesuffix(",")
    return "\n".join([*lines, "}", "}", ""])


def _value_lines(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        yield f" {json.dumps(key)}: {{"
        rows = [f"  {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in value.items()]
        yield from (f"{row}," for row in rows[:-1])
        yield rows[-1]
        yield " },"
    else:
        yield f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)},"


# -- comparing ---------------------------------------------------------------------------------------------------------


def manifest_differences(plugin: str) -> list[str] | None:
    """Return the differences between a plugin's manifest and its code.

    Args:
        plugin: the plugin's name.

    Returns:
        A line for each difference, or None if the plugin ships no manifest.

    Raises:
        KeyError: there is no such plugin.
        ValueError: the plugin cannot be loaded.
    """
    load_everything()
    record = {record.name: record for record in plugin_records()}[plugin]
    path = manifest.find(record, API_VERSION).path
    return differences(record) if path is not None and os.path.exists(path) else None


def differences(record: Any) -> list[str]:
    """Return the differences between a plugin's manifest and its code, a line each.

    Raises:
        ValueError: as `describe`.
    """
    data, found = describe(record), manifest.find(record, API_VERSION)
    shipped = _plugins_in(Path(found.path)).get(record.name) if found.path is not None else None
    if shipped is None:
        return [f"there is no usable manifest ({found.problem})"]
    try:
        return _compared(shipped, json.loads(json.dumps(data)))
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        return [f"the manifest is malformed: {type(error).__name__}: {error}"]


def _compared(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the differences between two manifests' data, a line each.

    The digest of the sources, and entries that depend on other installed plugins, are not compared.
    """
    old, new = _by_itself(old, new), _by_itself(new, old)
    found = []
    for key in [*new, *(k for k in old if k not in new)]:
        before, now = old.get(key), new.get(key)
        if before == now:
            continue
        if isinstance(before, dict) and isinstance(now, dict):
            for name in sorted({*before, *now}):
                if before.get(name) != now.get(name):
                    found.append(_line(f"{key} {name}", name in before, before.get(name), name in now, now.get(name)))
        else:
            found.append(_line(key, key in old, before, key in new, now))
    return found


def _by_itself(data: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest's data without entries that depend on other plugins, except derivations known to both."""
    known = [tuple(d) for d in data["derivations_known"]]
    others = {tuple(d) for d in other["derivations_known"]}
    common = {d for d in known if d in others or d[2] in (None, data["plugin"])}
    primitives = {}
    for name, entry in data["primitives"].items():
        derivable = {
            kind: kept
            for kind, found in entry.get("derivable", {}).items()
            if (kept := [[d, owner] for d, owner in found if (kind, d, owner) in common])
        }
        primitives[name] = {k: v for k, v in entry.items() if k not in ("derivable", "rules_of")}
        if derivable:
            primitives[name]["derivable"] = derivable
    kernels = sorted([kind, name] for kind, name, owner in known if owner is None)
    rest = {key: value for key, value in data.items() if key not in ("sources", "derivations_known")}
    return {**rest, "primitives": primitives, "derivations of the kernel": kernels}


def _line(what: str, was: bool, before: Any, has: bool, now: Any) -> str:
    if not was:
        return f"{what}: not in the manifest, the code has {json.dumps(now)}"
    if not has:
        return f"{what}: in the manifest, not in the code"
    return f"{what}: the manifest has {json.dumps(before)}, the code has {json.dumps(now)}"
