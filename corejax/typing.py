"""`corejax.typing`: types for annotations.

    def scaled(x: ArrayLike, dtype: DTypeLike | None = None) -> corejax.Array: ...

`corejax.Array` itself annotates arrays: tracers are instances of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from corejax.array import Array

__all__ = ["ArrayLike", "DTypeLike", "SupportsDType"]


class SupportsDType(Protocol):
    """What has a dtype: an array, or one of the scalar types `corejax.numpy.float32` and so on."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype."""


ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
"""What functions take as an array: lists are none."""

DTypeLike = str | type[Any] | np.dtype | SupportsDType
"""What functions take as a dtype: "float32", `float`, `numpy.float32`, `corejax.numpy.float32`, a NumPy dtype."""


if not TYPE_CHECKING:  # a type checker would take it for every name that there is not

    def __getattr__(name: str) -> Any:
        if name.startswith("_"):  # the import system asks for some
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from corejax.texts import no_such_name  # needed for an error only

        raise no_such_name(__name__, name, globals())
