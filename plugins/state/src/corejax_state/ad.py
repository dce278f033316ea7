"""Options for the cotangents that a pullback computes (`Pullback.with_refs`)."""

from __future__ import annotations

__all__ = ["DontWant", "GradRef", "GradValue"]


class GradValue:
    """Return the cotangent."""

    def __repr__(self) -> str:
        return "GradValue()"


class DontWant:
    """Drop the cotangent; None is returned."""

    def __repr__(self) -> str:
        return "DontWant()"


class GradRef:
    """Stands in the result for a cotangent that was added to a reference."""

    def __repr__(self) -> str:
        return "GradRef()"
