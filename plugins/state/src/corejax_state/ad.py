"""Options for the cotangents that a pullback computes (`Pullback.with_refs`)."""

from __future__ import annotations

import dataclasses

from corejax.extend import tree

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]


@dataclasses.dataclass(frozen=True, slots=True)
class GradValue:
    """Return the cotangent."""


@dataclasses.dataclass(frozen=True, slots=True)
class DontWant:
    """Drop the cotangent; a `DidntWant` is returned."""


@tree.register_dataclass
@dataclasses.dataclass(frozen=True, slots=True)
class GradRef:
    """Stands in the result for a cotangent that was added to a reference."""


@tree.register_dataclass
@dataclasses.dataclass(frozen=True, slots=True)
class DidntWant:
    """Stands in the result for a cotangent that was dropped."""
