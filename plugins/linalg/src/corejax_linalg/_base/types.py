"""Check the types of stacks of matrices, `f[*batch, m, n]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import ShapedArray, dtypes

_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
LAPACK = frozenset(map(np.dtype, _LETTERS))
INT32 = np.dtype(np.int32)


def lapack_name(name: str, dtype: Any) -> str:
    """Return the name of a routine for a dtype: `sgetrf` for `getrf` and float32.

    Args:
        name: the name without the dtype's letter; after a slash, another name for complex dtypes.
        dtype: the dtype of the matrices.
    """
    real, _, other = name.partition("/")
    dtype = np.dtype(dtype)
    return _LETTERS[dtype.name] + (other if other and dtype.kind == "c" else real)


def stack_type(name: str, argument: str, x: ShapedArray, rank: int = 2) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the batch axes and the last `rank` axes of an operand that LAPACK accepts.

    Args:
        name: the function's name, for messages.
        argument: the operand's name.
        x: the operand's type.
        rank: 2 for matrices, 1 for vectors.

    Raises:
        TypeError: the operand has too few axes, or a dtype that LAPACK has no routines for.
    """
    if x.ndim < rank:
        what = "[..., m, n]" if rank == 2 else "[..., n]"
        raise TypeError(f"{name}: {argument} must have shape {what}, got {x.str_short()}")
    if x.dtype not in LAPACK:
        raise TypeError(
            f"{name}: {argument} must be float32, float64, complex64 or complex128, got {x.str_short()}; "
            f"convert it, as in {argument}.astype('float32')"
        )
    return x.shape[: x.ndim - rank], x.shape[x.ndim - rank :]


def square_type(name: str, argument: str, x: ShapedArray) -> tuple[tuple[Any, ...], Any]:
    """Return the batch axes and the size of a stack of square matrices.

    Raises:
        TypeError: as `stack_type`.
        ValueError: the matrices are not square.
    """
    batch, (m, n) = stack_type(name, argument, x)
    if m != n:
        raise ValueError(
            f"{name}: {argument} must be a square matrix or a stack of them, [..., n, n], got {x.str_short()}"
        )
    return batch, n


def check_alike(name: str, operands: Sequence[tuple[str, ShapedArray, int]]) -> None:
    """Require operands to have the same dtype and batch axes.

    Args:
        name: the function's name, for messages.
        operands: for each operand its name, its type, and the number of axes that are not batch axes.

    Raises:
        TypeError: the dtypes or batch axes differ.
    """
    (first, x, rank), *others = operands
    for argument, y, other_rank in others:
        if x.dtype != y.dtype:
            raise TypeError(
                f"{name}: the dtypes must be equal, got {first} {x.str_short()} and {argument} {y.str_short()}"
            )
        if x.shape[: x.ndim - rank] != y.shape[: y.ndim - other_rank]:
            raise TypeError(
                f"{name}: {first} {x.str_short()} and {argument} {y.str_short()} differ in their batch axes, which are "
                f"all but the last {rank} and {other_rank}; broadcast them first"
            )


def like(shape: Sequence[Any], dtype: Any, *operands: ShapedArray) -> ShapedArray:
    """Return the type of a result, which is weak if all operands are weak."""
    weak = all(x.weak_type for x in operands) and dtypes.is_inexact(dtype)
    return ShapedArray(tuple(shape), np.dtype(dtype), weak)


def real_of(dtype: Any) -> np.dtype[Any]:
    """Return the dtype of the real parts."""
    return np.dtype(dtypes.real_dtype_of(dtype))


def complex_of(dtype: Any) -> np.dtype[Any]:
    """Return the complex dtype of the same precision."""
    return np.result_type(dtype, np.complex64)
