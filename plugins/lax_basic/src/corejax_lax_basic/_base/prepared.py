"""What impl rules are for types that are known beforehand: the flag `prepared` of those that are a ufunc then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


def is_ufunc(ufunc: np.ufunc, kinds: str = "f") -> Callable[[F], F]:
    """Mark an impl rule that is a ufunc for operands of some kinds of dtypes, whatever its params are."""

    def prepare(avals: Any, **params: Any) -> np.ufunc | None:
        return ufunc if avals[0].dtype.kind in kinds else None

    def mark(impl: F) -> F:
        impl.prepared = prepare  # type: ignore[attr-defined]
        return impl

    return mark


def prepared_flag(impl: Callable[..., Any]) -> dict[str, Any]:
    """The flag that an impl rule is registered with, if it is marked."""
    return {"prepared": impl.prepared} if hasattr(impl, "prepared") else {}  # type: ignore[attr-defined]
