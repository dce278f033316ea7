"""Helpers to write examples of primitives: types of operands, and examples with params."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray

F32, C64, I32, BOOL = (np.dtype(t) for t in (np.float32, np.complex64, np.int32, np.bool_))


def typed(*shape: int, dtype: Any = F32) -> ShapedArray:
    """Return the type of an operand, which checks fill with data."""
    return ShapedArray(shape, dtype)


def one(operands: tuple[Any, ...], reference: Any = None, **params: Any) -> Example:
    """Return an example with its params."""
    return Example(operands, params, reference=reference)


def unary(low: float = -2.0, high: float = 2.0, dtype: Any = F32, **more: Any) -> list[Example]:
    """Return examples with one operand, of several shapes."""
    return [Example((typed(*shape, dtype=dtype),), low=low, high=high, **more) for shape in ((3,), (2, 3), ())]
