"""Manifests and code: writing the one from the other, and comparing them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corejax import plugins
from corejax.plugins import describing
from corejax.plugins._manifest import FILE, MANIFEST_VERSION, Found, digest
from corejax.plugins._records import PluginRecord
from corejax.plugins.hookspecs import API_VERSION
from corejax.texts import error_text


def describe(record: PluginRecord) -> dict[str, Any]:
    """What a loaded plugin offers, as a manifest says it.

    Raises:
        ValueError: the plugin failed or is off; some of its rules could not be loaded.
    """
    problems = record.problems()
    if record.status != "loaded" or problems:
        raise ValueError(
            f"the plugin is {record.status}; {'; '.join(problems) or 'only a loaded one can be described'}"
        )
    found = plugins.manager().manifest(record)
    sources = digest(os.path.dirname(found.path)) if found.path is not None else ""
    call = plugins.manager().call
    made_for = call(record, "corejax_declare_api_version") or API_VERSION
    return describing.as_data(
        describing.describe(
            record.name,
            record.distribution,
            record.version,
            made_for,
            sources,
            lambda hook, **arguments: call(record, hook, **arguments),
        )
    )


def write(record: PluginRecord, output: Path | None = None) -> Path:
    """Write a plugin's manifest; those of other plugins in the same file stay.

    Args:
        record: the plugin, loaded.
        output: where to; by default the plugin's package, if it is installed editable.

    Raises:
        ValueError: as `describe`; or the package is no place to write to.
    """
    data = describe(record)
    path = _place(record, plugins.manager().manifest(record)) if output is None else output
    others = {name: other for name, other in _plugins_in(path).items() if name != record.name}
    path.write_text(describing.text_of({**others, record.name: data}), encoding="utf-8", newline="\n")
    return path


def _place(record: PluginRecord, found: Found) -> Path:
    if found.path is None:
        raise ValueError(
            f"the plugin is the single module {record.module}: a manifest needs a package to be in. Make it a package "
            f"({record.module}/__init__.py), or say where to write with --output"
        )
    if not found.editable:
        raise ValueError(
            f"{record.distribution} is not installed editable, so {FILE} would be written into the installation. "
            "Install it with pip install -e, or say where to write with --output"
        )
    return Path(found.path)


def _plugins_in(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return data["plugins"] if data["manifest_version"] == MANIFEST_VERSION else {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def differences(record: PluginRecord) -> list[str]:
    """What is wrong with a plugin's manifest, compared to its code, a line each; empty if nothing is.

    Raises:
        ValueError: as `describe`.
    """
    data, found = describe(record), plugins.manager().manifest(record)
    shipped = _plugins_in(Path(found.path)).get(record.name) if found.path is not None else None
    if shipped is None:
        return [f"there is no manifest to use ({found.problem})"]
    try:
        return describing.differences(shipped, json.loads(json.dumps(data)))
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        return [f"the manifest is malformed: {error_text(error)}"]


def manifest_differences(plugin: str) -> list[str] | None:
    """What a plugin's manifest says that its code does not, and the other way round; for checks of plugins.

    Args:
        plugin: its name.

    Returns:
        A line each, none where they agree; None where the plugin ships no manifest.

    Raises:
        KeyError: there is no such plugin.
        ValueError: the plugin cannot be loaded.
    """
    plugins.load_everything()
    record = plugins.manager().records[plugin]
    path = plugins.manager().manifest(record).path
    return differences(record) if path is not None and os.path.exists(path) else None
