"""The accuracy of functions for which a compiler has several implementations: `lax.exp(x, accuracy=...)`."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from corejax.extend.programs import register_param_type

__all__ = ["AccuracyMode", "Tolerance"]


@register_param_type
class AccuracyMode(enum.Enum):
    """The choice between the most accurate implementation and the default one."""

    HIGHEST = 1
    DEFAULT = 2


@register_param_type
@dataclass(frozen=True)
class Tolerance:
    """The error that a result may have; a compiler that cannot keep to it raises an error.

    Attributes:
        atol: absolute error.
        rtol: relative error.
        ulps: units in the last place.

    Raises:
        ValueError: one of them is negative, or all of them are 0.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        if self.atol < 0 or self.rtol < 0 or self.ulps < 0:
            raise ValueError(f"Tolerance: values must be nonnegative, got {self}")
        if not (self.atol or self.rtol or self.ulps):
            raise ValueError("Tolerance: at least one of atol, rtol and ulps must be positive")


def checked_accuracy(name: str, accuracy: Any) -> Tolerance | AccuracyMode:
    """Return the argument `accuracy` if it is valid.

    Raises:
        TypeError: it is neither a `Tolerance` nor an `AccuracyMode`.
    """
    if isinstance(accuracy, Tolerance | AccuracyMode):
        return accuracy
    raise TypeError(f"{name}: `accuracy` has to be a lax.Tolerance, a lax.AccuracyMode or None, got {accuracy!r}")


def is_highest(params: dict[str, Any]) -> bool:
    """Return whether a primitive's params request the highest accuracy, which its derivative then needs as well."""
    return params.get("accuracy") is AccuracyMode.HIGHEST
