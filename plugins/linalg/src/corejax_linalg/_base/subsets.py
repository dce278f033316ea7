"""The argument `subset_by_index` of decompositions."""

from __future__ import annotations

import operator
from typing import Any


def subset(name: str, indices: Any, size: int) -> tuple[int, int]:
    """A range of indices, `(start, stop)`.

    Raises:
        TypeError: it is not a pair of integers.
        ValueError: it is not within `size`.
    """
    try:
        start, stop = (operator.index(i) for i in indices)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: subset_by_index is a pair of integers (start, stop), got {indices!r}") from None
    if not 0 <= start <= stop <= size:
        raise ValueError(f"{name}: subset_by_index is a range of the indices 0 to {size}, got {indices!r}")
    return start, stop
