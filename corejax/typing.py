"""`corejax.typing`: types for annotations.

    def scaled(x: ArrayLike, dtype: DTypeLike | None = None) -> corejax.Array: ...

`corejax.Array` itself annotates arrays: tracers are instances of it.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np

from corejax.arrays.array import Array
from corejax.base.texts import suggest_names

__all__ = ["ArrayLike", "DTypeLike", "SupportsDType"]


class SupportsDType(Protocol):
    """An object with a dtype: an array, or a scalar type such as `corejax.numpy.float32`."""

    @property
    def dtype(self) -> np.dtype:
        """NumPy dtype."""


ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
"""Types that functions accept as an array; lists are not among them."""

DTypeLike: TypeAlias = str | type[Any] | np.dtype | SupportsDType
"""Types that functions accept as a dtype: "float32", `float`, `numpy.float32`, `corejax.numpy.float32`, a dtype."""

suggest_names(globals())
