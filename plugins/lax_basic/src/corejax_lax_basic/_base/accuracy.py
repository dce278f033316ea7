"""How accurate a function is to be computed, where a compiler has several ways: `lax.exp(x, accuracy=...)`."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from corejax.extend.programs import register_param_type

__all__ = ["AccuracyMode", "Tolerance"]


@register_param_type
class AccuracyMode(enum.Enum):
    """The most accurate implementation, or the usual one."""

    HIGHEST = 1
    DEFAULT = 2


@register_param_type
@dataclass(frozen=True)
class Tolerance:
    """How far a result may be off; a compiler that cannot keep to it says so.

    Attributes:
        atol: absolute error.
        rtol: relative error.
        ulps: units in the last place.

    Raises:
        ValueError: one is negative, or none is given.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        if self.atol < 0 or self.rtol < 0 or self.ulps < 0:
            raise ValueError(f"tolerances have to be non-negative, got {self}")
        if not (self.atol or self.rtol or self.ulps):
            raise ValueError("Tolerance: give at least one of atol, rtol and ulps")


def checked_accuracy(name: str, given: Any) -> Tolerance | AccuracyMode:
    """What was given as `accuracy`, if it is one.

    Raises:
        TypeError: it is not.
    """
    if isinstance(given, Tolerance | AccuracyMode):
        return given
    raise TypeError(f"{name}: `accuracy` has to be a lax.Tolerance, a lax.AccuracyMode or None, got {given!r}")


def is_highest(params: dict[str, Any]) -> bool:
    """Whether a primitive's params ask for the highest accuracy, which its derivative is to have, too."""
    return params.get("accuracy") is AccuracyMode.HIGHEST
