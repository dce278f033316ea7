"""`corejax.flatten_util`: flatten a pytree of arrays into one vector."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from corejax.extend import Array, as_array, dtypes, get_aval, tree
from corejax_lax_basic import lax

__all__ = ["ravel_pytree"]

Tree = TypeVar("Tree")


def ravel_pytree(pytree: Tree) -> tuple[Array, Callable[[Any], Tree]]:
    """Flatten a pytree of arrays into one vector; return it and the inverse function.

    Args:
        pytree: arrays and scalars.

    Returns:
        A vector of the dtype to which the leaves' dtypes promote, and a function that converts such a vector back to a
        pytree. If all leaves have one dtype, the restored leaves have the dtype of the vector; else each leaf gets its
        own dtype back. The function raises ValueError for another shape; and TypeError for another dtype, if the
        leaves' dtypes differ.
    """
    leaves, structure = tree.flatten(pytree)
    leaves = [as_array(x) for x in leaves]
    avals = [get_aval(x) for x in leaves]
    shapes = [a.shape for a in avals]
    sizes = [math.prod(shape) for shape in shapes]
    if leaves:
        joint = dtypes.result_type(*leaves)
        parts = [lax.reshape(lax.convert_element_type(x, joint), (n,)) for x, n in zip(leaves, sizes, strict=True)]
        flat = lax.concatenate(parts, 0) if len(parts) > 1 else parts[0]
    else:
        joint, flat = np.dtype(np.float32), lax.full((0,), 0.0, np.float32)

    alike = all(a.dtype == joint for a in avals)

    def unravel(vector: Any) -> Any:
        vector = as_array(vector)
        if vector.shape != (sum(sizes),):
            raise ValueError(f"unravel takes a vector of {sum(sizes)} elements, got {vector.aval.str_short()}")
        if vector.dtype != joint and not alike:
            raise TypeError(
                f"unravel takes a vector of dtype {joint.name}, got {vector.aval.str_short()}; cast it: "
                f".astype('{joint.name}')"
            )
        parts, start = [], 0
        for aval, size in zip(avals, sizes, strict=True):
            part = vector if len(sizes) == 1 else lax.slice_in_dim(vector, start, start + size)
            part = lax.reshape(part, aval.shape)
            parts.append(part if alike else lax.convert_element_type(part, aval.dtype))
            start += size
        return tree.unflatten(structure, parts)

    return flat, unravel


def __dir__() -> list[str]:
    return __all__
