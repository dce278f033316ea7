"""Versions that do not fit: what a plugin's distribution requires of corejax and its plugins, and what is installed.

Installers see to this, and can be told not to. It is looked at when a plugin failed, to say why it may have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from importlib_metadata import PackageNotFoundError, version
from packaging.requirements import Requirement


def unmet(entry_point: Any) -> list[str]:
    """Return the requirements of a plugin's distribution on corejax's that are not met, a sentence each."""
    try:
        required = [Requirement(text) for text in entry_point.dist.requires or ()]
        return [sentence for each in required for sentence in _unmet(each)]
    except Exception:  # metadata that cannot be read, or a plugin object without any
        return []


def _unmet(requirement: Requirement) -> Iterator[str]:
    name, clauses = requirement.name, sorted(map(str, requirement.specifier), reverse=True)  # lower bounds first
    wanted = f"{name}{','.join(clauses)}"
    applies = requirement.marker is None or requirement.marker.evaluate()
    if not applies or not name.lower().startswith("corejax"):
        return
    try:
        installed = version(name)
    except PackageNotFoundError:
        yield f"it requires {wanted}, which is not installed (pip install '{wanted}')"
        return
    if not requirement.specifier.contains(installed, prereleases=True):
        yield f"it requires {wanted}, and {name} {installed} is installed (pip install '{wanted}')"
