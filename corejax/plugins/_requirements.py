"""Versions of corejax and its plugins that a plugin's distribution requires and that are not installed.

Installers check requirements, unless an option disables it. When a plugin failed, they are checked here, since they
may be the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from importlib_metadata import PackageNotFoundError, version
from packaging.requirements import Requirement


def unmet_requirements(entry_point: Any) -> list[str]:
    """Return a sentence for each unmet requirement of a plugin's distribution on corejax and its plugins."""
    try:
        required = [Requirement(text) for text in entry_point.dist.requires or ()]
        return [sentence for each in required for sentence in _check_requirement(each)]
    except Exception:  # the metadata cannot be read, or a plugin object has none
        return []


def _check_requirement(requirement: Requirement) -> Iterator[str]:
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
