"""Locations in StableHLO: the name of each operation in the program, and the user's line.

A name is a path, `jit(f)/layer1/dot_general`: the compiled function, the named scopes and transformations that the
equation was traced in (`transpose(jvp(layer1))`), and the primitive. Operations of a program inside an equation have
that equation in their path. XLA copies the locations to the metadata of its own operations, which profilers show.
"""

from __future__ import annotations

import re
from typing import Any

from corejax.extend import JaxprEqn
from corejax.extend.messages import locate_source, scope_of, scope_text

_MARK = re.compile(r" loc\(#corejax\d+\)|^#corejax\d+ = .*\n", re.MULTILINE)
_SPECIAL = re.compile(r'[\x00-\x1f"\\\x7f]')


class Locations:
    """The locations of one module; each is written once and referred to by number."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._numbers: dict[tuple[str, str], int] = {}
        self._codes: dict[int, Any] = {}

    def of_equation(self, around: tuple[str, ...], eqn: JaxprEqn) -> tuple[str, tuple[str, ...]]:
        """Return the mark that ends an equation's operations, and the scope of the programs inside the equation."""
        scope = around + scope_of(eqn.source_info)
        place = locate_source(eqn.source_info, self._codes)
        path = f"{scope_text(scope)}/{eqn.primitive.name}" if scope else eqn.primitive.name
        where = ""
        if place is not None:
            where = f"{_string(place.function)}({_string(place.file)}:{place.line}:{(place.column or 0) + 1})"
        number = self._numbers.get((path, where))
        if number is None:
            number = self._numbers[path, where] = len(self.lines)
            inner = f"({where})" if where else ""
            self.lines.append(f"#corejax{number} = loc({_string(path)}{inner})\n")
        return f" loc(#corejax{number})", (*scope, _label(eqn))


def _label(eqn: JaxprEqn) -> str:
    """Return a call's name without the transformations that are in the path already, or the primitive's name."""
    name = eqn.params.get("name")
    if "higher_order" not in eqn.primitive.tags or not isinstance(name, str):
        return eqn.primitive.name
    return f"jit({name.rpartition('(')[2].rstrip(')')})"


def _string(text: str) -> str:
    """Return a quoted and escaped MLIR string."""
    text = text.encode("utf-8", "replace").decode()  # a lone surrogate cannot be encoded
    escaped = _SPECIAL.sub(lambda found: f"\\{ord(found.group()):02X}", text)
    return f'"{escaped}"'


def without_locations(text: str) -> str:
    """Return a module's text without locations."""
    return _MARK.sub("", text)
