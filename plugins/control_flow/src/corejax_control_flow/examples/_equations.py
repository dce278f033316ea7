"""Examples from traced functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray, stage_closed

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)


def of_type(*shape: int, dtype: Any = F32) -> ShapedArray:
    """The type of an operand."""
    return ShapedArray(shape, dtype)


def example(
    primitive: str, fun: Callable[..., list[Any]], *avals: ShapedArray, first: tuple[Any, ...] = (), **fields: Any
) -> Example:
    """The application of a primitive in a function's program.

    Args:
        primitive: its name.
        fun: a function that applies it once.
        avals: types of the function's arguments.
        first: the first operands of the application as numbers; of the others the types are given.
        fields: other fields of the example.
    """
    eqn = next(e for e in stage_closed(fun, avals).jaxpr.eqns if e.primitive.name == primitive)
    return Example((*first, *(atom.aval for atom in eqn.invars[len(first) :])), eqn.params, **fields)
