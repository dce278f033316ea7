"""Versions of corejax and its plugins that a failed plugin's distribution requires and that are not installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from packaging.requirements import Requirement

from corejax.plugins._discovery import version_of
from corejax.plugins._records import headers


def unmet_requirements(dist: Any) -> list[str]:
    """Return a sentence for each unmet requirement of a plugin's distribution on corejax and its plugins."""
    try:
        return [x for _, text in headers(dist, "Requires-Dist") for x in _check_requirement(Requirement(text))]
    except Exception:  # the metadata are malformed
        return []


def _check_requirement(requirement: Requirement) -> Iterator[str]:
    name, clauses = requirement.name, sorted(map(str, requirement.specifier), reverse=True)  # lower bounds first
    wanted = f"{name}{','.join(clauses)}"
    applies = requirement.marker is None or requirement.marker.evaluate()
    if not applies or not name.lower().startswith("corejax"):
        return
    installed = version_of(name)
    if installed is None:
        yield f"it requires {wanted}, which is not installed (pip install '{wanted}')"
    elif not requirement.specifier.contains(installed, prereleases=True):
        yield f"it requires {wanted}, and {name} {installed} is installed (pip install '{wanted}')"
