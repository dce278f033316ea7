"""Versions that do not fit: what a plugin's distribution requires of corejax and its plugins, and what is installed.

Installers see to this, and can be told not to. It is looked at when a plugin failed, to say why it may have.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_REQUIREMENT = re.compile(r"(corejax[\w.-]*?)\s*(?:\[[^\]]*\])?\s*\(?((?:[<>=!~][^;()]*)?)\)?\s*$", re.IGNORECASE)
_CLAUSE = re.compile(r"(~=|==|!=|<=|>=|<|>)\s*v?(\d+(?:\.\d+)*)(\.\*)?")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


def unmet(entry_point: Any) -> list[str]:
    """Requirements of a plugin's distribution on corejax's that are not met, a sentence each.

    Args:
        entry_point: the plugin's, with its distribution.
    """
    try:
        required = list(entry_point.dist.requires or ())
        return [sentence for text in required if ";" not in text for sentence in _unmet(text)]
    except Exception:  # metadata that cannot be read, or a plugin object without any
        return []


def _unmet(requirement: str) -> Iterator[str]:
    found = _REQUIREMENT.match(requirement.strip())
    if found is None:
        return
    name, clauses = found[1], found[2].replace(" ", "")
    try:
        installed = version(name)
    except PackageNotFoundError:
        yield f"it requires {name}{clauses}, which is not installed (pip install '{name}{clauses}')"
        return
    if not all(_holds(installed, *clause) for clause in _CLAUSE.findall(clauses)):
        yield f"it requires {name}{clauses}, and {name} {installed} is installed (pip install '{name}{clauses}')"


def _holds(installed: str, relation: str, wanted: str, wildcard: str = "") -> bool:
    """Whether a version is in the relation to another one; of both, only the release's numbers count."""
    have, want = _numbers(installed), _numbers(wanted)
    if wildcard:
        have = have[: len(want)]
    if relation == "~=":
        return have >= want and have[: len(want) - 1] == want[:-1]
    length = max(len(have), len(want))
    return _COMPARE[relation](have + (0,) * (length - len(have)), want + (0,) * (length - len(want)))


def _numbers(text: str) -> tuple[int, ...]:
    found = re.match(r"v?(\d+(?:\.\d+)*)", text)
    return tuple(int(part) for part in found[1].split(".")) if found else ()
