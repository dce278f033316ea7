"""Products and parts of matrices, with the signatures of the array API."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax_linalg._base import matrices as mat
from corejax_linalg._base.arguments import array, arrays, integer


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Compute cross products of 3-vectors along an axis; the other axes broadcast.

    Raises:
        ValueError: the size of the axis is not 3.
    """
    x1, x2 = arrays("cross", x1, x2, inexact=False)
    axis = integer("cross", "axis", axis)
    if any(not -x.ndim <= axis < x.ndim for x in (x1, x2)):
        shown = f"{x1.aval.str_short()} and {x2.aval.str_short()}"
        raise np.exceptions.AxisError(f"cross: axis {axis} is out of bounds for {shown}")
    if not x1.ndim or not x2.ndim or x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(
            f"cross takes vectors of 3 components in axis {axis}, got {x1.aval.str_short()} and {x2.aval.str_short()}"
        )
    return jnp.cross(x1, x2, axis=axis)


def outer(x1: Any, x2: Any, /) -> Any:
    """Compute the outer product of two vectors.

    Raises:
        ValueError: an argument is not a vector.
    """
    x1, x2 = arrays("outer", x1, x2, inexact=False)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"outer takes two vectors, got {x1.aval.str_short()} and {x2.aval.str_short()}")
    return x1[:, None] * x2[None, :]


def matmul(x1: Any, x2: Any, /, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Multiply matrices, as `corejax.numpy.matmul` does."""
    return jnp.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def tensordot(
    x1: Any,
    x2: Any,
    /,
    *,
    axes: Any = 2,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Contract axes of two arrays, as `corejax.numpy.tensordot` does."""
    return jnp.tensordot(
        x1,
        x2,
        axes=axes,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Compute inner products along an axis, as `corejax.numpy.vecdot` does."""
    return jnp.vecdot(x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Return a diagonal of the matrices in the last two axes, as a new last axis."""
    return jnp.diagonal(array("diagonal", x), offset=offset, axis1=-2, axis2=-1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Return the sum of a diagonal of the matrices in the last two axes."""
    return jnp.trace(array("trace", x), offset=offset, axis1=-2, axis2=-1, dtype=dtype)


def matrix_transpose(x: Any, /) -> Any:
    """Transpose the matrices in the last two axes.

    Raises:
        ValueError: `x` has fewer than two axes.
    """
    x = array("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose takes matrices, [..., m, n], got {x.aval.str_short()}")
    return mat.transpose(x)


def multi_dot(arrays: Sequence[Any], *, precision: Any = None) -> Any:
    """Compute the product of several matrices in the order that takes the fewest operations.

    Args:
        arrays: matrices; the first may be a row vector, and the last a column vector.
        precision: as for `lax.dot_general`.

    Raises:
        ValueError: there are fewer than two arrays, or the shapes do not match.
    """
    if not isinstance(arrays, tuple | list):
        stack = array("multi_dot", arrays)
        if not stack.ndim:
            raise TypeError(f"multi_dot takes a sequence of arrays, got {arrays!r} of type {type(arrays).__name__}")
        arrays = list(stack)
    xs = [array("multi_dot", x, i) for i, x in enumerate(arrays)]
    shown = ", ".join(x.aval.str_short() for x in xs)
    if len(xs) < 2:
        raise ValueError(f"multi_dot takes two arrays or more, got {len(xs)}")
    if any(x.ndim != 2 for x in xs[1:-1]) or any(x.ndim not in (1, 2) for x in (xs[0], xs[-1])):
        raise ValueError(f"multi_dot takes matrices, of which the first and last may be vectors, got {shown}")
    if any(x.shape[-1] != y.shape[0] for x, y in itertools.pairwise(xs)):
        raise ValueError(f"multi_dot: each array must have as many columns as the next one has rows, got {shown}")
    labels = [(i, i + 1) for i in range(len(xs))]
    operands: list[Any] = []
    for i, (x, pair) in enumerate(zip(xs, labels, strict=True)):
        operands += [x, pair if x.ndim == 2 else (pair[1:] if i == 0 else pair[:1])]
    return jnp.einsum(*operands, optimize="optimal", precision=precision)
