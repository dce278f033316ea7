"""Versions of corejax and its plugins that a plugin's distribution requires and that are not installed.

Installers check requirements, unless an option disables it. When a plugin failed, they are checked here, since they
may be the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from importlib_metadata import PackageNotFoundError, version
from packaging.requirements import Requirement

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
    try:
        installed = version(name)
    except PackageNotFoundError:
        yield f"it requires {wanted}, which is not installed (pip install '{wanted}')"
        return
    if not requirement.specifier.contains(installed, prereleases=True):
        yield f"it requires {wanted}, and {name} {installed} is installed (pip install '{wanted}')"
