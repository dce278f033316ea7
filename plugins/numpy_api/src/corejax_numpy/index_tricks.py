"""Create index arrays: grids, `ix_`, flat indices, diagonals and triangles, and the objects `mgrid`, `r_`, ..."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import Tracer, as_array, dtypes
from corejax.extend.messages import InconclusiveDimensionOperation
from corejax.extend.types import SymbolicDim
from corejax_lax_basic import lax
from corejax_numpy.arguments import (
    array_argument,
    canonical_dtype,
    canonical_shape,
    concrete,
    like,
    promote_dtypes,
    sequence,
    static_int,
)
from corejax_numpy.creation import array
from corejax_numpy.elementwise import clip, divmod, remainder, where
from corejax_numpy.joining import concatenate, stack
from corejax_numpy.nonzero import nonzero
from corejax_numpy.ranges import arange, linspace

s_ = np.s_
index_exp = np.index_exp

# -- grids -------------------------------------------------------------------------------------------------------


def indices(dimensions: Sequence[int], dtype: Any = None, sparse: bool = False) -> Any:
    """Return the indices of all elements of an array of a shape.

    Args:
        dimensions: the shape.
        dtype: dtype of the result; by default the default integer dtype.
        sparse: whether the index array of each axis has size 1 along the other axes; False by default.

    Returns:
        An array with a first axis that counts the axes, or a tuple of arrays if `sparse`.
    """
    shape = canonical_shape(dimensions)
    dtype = dtypes.default_int_dtype() if dtype is None else canonical_dtype(dtype)
    if sparse:
        return tuple(_along(lax.iota(dtype, n), d, len(shape)) for d, n in enumerate(shape))
    if not shape:
        return lax.full((0,), 0, dtype)
    return stack([lax.broadcasted_iota(dtype, shape, d) for d in range(len(shape))])


def _along(x: Any, axis: int, rank: int) -> Any:
    """Reshape a vector to lie along one axis of an array of a rank."""
    return lax.broadcast_in_dim(x, (1,) * axis + x.shape + (1,) * (rank - axis - 1), (axis,))


def ix_(*args: Any) -> tuple[Any, ...]:
    """Return index arrays that select every combination of the elements of vectors; booleans select true positions.

    Raises:
        ValueError: an argument is not a vector.
    """
    out = []
    for d, arg in enumerate(args):
        x = array_argument("ix_", arg, d)
        if x.ndim != 1:
            raise ValueError(f"ix_ takes vectors, got {x.aval.str_short()} at position {d}")
        if dtypes.is_bool(x.dtype):
            (x,) = nonzero(x)
        elif not x.size and not dtypes.is_integer(x.dtype):  # an empty list
            x = lax.convert_element_type(x, dtypes.default_int_dtype())
        out.append(_along(x, d, len(args)))
    return tuple(out)


def _range(s: slice, name: str) -> Any:
    """Return `arange` of a slice, or `linspace` if the step is imaginary."""
    start, stop, step = (None if bound is None else concrete(name, bound) for bound in (s.start, s.stop, s.step))
    start, step = 0 if start is None else start, 1 if step is None else step
    if isinstance(step, complex):
        return linspace(start, stop, int(abs(step)))
    return arange(start, stop, step)


class _Grid:
    """Coordinates from slices: `mgrid[0:2, 0:3]`. An imaginary step is the number of points, ends included."""

    def __init__(self, name: str, sparse: bool) -> None:
        self._name, self._sparse = name, sparse

    def __repr__(self) -> str:
        return f"<corejax.numpy.{self._name}: index it by slices>"

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _range(key, self._name)
        if not key:
            return [] if self._sparse else arange(0)
        axes = promote_dtypes(self._name, *(_range(k, self._name) for k in key))
        sizes = [len(x) for x in axes]
        if self._sparse:
            return [_along(x, d, len(axes)) for d, x in enumerate(axes)]
        return stack([lax.broadcast_in_dim(x, sizes, (d,)) for d, x in enumerate(axes)])


mgrid = _Grid("mgrid", sparse=False)
ogrid = _Grid("ogrid", sparse=True)


class _Joining:
    """Slices, scalars and arrays, joined along an axis.

    A first entry "axis,ndmin,trans1d" sets the axis, the minimum number of axes, and the position of the axes of
    entries that have fewer; "r" and "c" make a row or a column of vectors.
    """

    def __init__(self, name: str, axis: int, ndmin: int, trans1d: int) -> None:
        self._name, self._defaults = name, [axis, ndmin, trans1d]

    def __repr__(self) -> str:
        return f"<corejax.numpy.{self._name}: index it by slices, scalars and arrays>"

    def __len__(self) -> int:
        return 0

    def __getitem__(self, key: Any) -> Any:
        entries = key if isinstance(key, tuple) else (key,)
        settings, extra = self._defaults, None
        if isinstance(entries[0], str):
            directive, entries = entries[0], entries[1:]
            if directive in ("r", "c"):
                extra = "rc".index(directive)
            else:
                settings = self._parse(directive)
        axis, ndmin, trans1d = settings
        joined = concatenate([self._part(e, ndmin, trans1d) for e in entries], axis)
        return lax.expand_dims(joined, extra) if extra is not None and joined.ndim == 1 else joined

    def _parse(self, directive: str) -> list[int]:
        try:
            numbers = [int(part) for part in directive.split(",")]
        except ValueError:
            raise ValueError(
                f"{self._name}: cannot parse directive {directive!r}, which is not 'r', 'c', or up to three integers"
            ) from None
        return [*numbers, *self._defaults[len(numbers) :]][:3]

    def _part(self, entry: Any, ndmin: int, trans1d: int) -> Any:
        if isinstance(entry, str):
            raise ValueError(f"{self._name}: a directive such as {entry!r} must come first")
        x = _range(entry, self._name) if isinstance(entry, slice) else array(entry)
        rank = 0 if isinstance(entry, slice) else x.ndim
        missing = ndmin - x.ndim
        if missing > 0:
            x = lax.reshape(x, (1,) * missing + x.shape)
        if trans1d == -1 or ndmin <= rank:
            return x
        shift = ndmin - abs(ndmin + trans1d + 1) % ndmin
        order = tuple(range(ndmin))
        return lax.transpose(x, order[shift:] + order[:shift])


r_ = _Joining("r_", axis=0, ndmin=1, trans1d=-1)
c_ = _Joining("c_", axis=-1, ndmin=2, trans1d=0)

# -- flat indices ------------------------------------------------------------------------------------------------


def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """Convert indices of the flattened array to one index per axis; out-of-bounds indices are clamped.

    Args:
        indices: integers of any shape; negative ones count from the end.
        shape: the array's shape; its sizes may be traced.

    Raises:
        TypeError: the indices are not integers.
    """
    rest = array_argument("unravel_index", indices)
    if not dtypes.is_integer(rest.dtype):
        raise TypeError(f"unravel_index: indices are integers, got {rest.aval.str_short()}")
    traced = isinstance(shape, Tracer) or (
        isinstance(shape, tuple | list) and any(isinstance(d, Tracer) for d in shape)
    )
    sizes = [
        lax.convert_element_type(size, rest.dtype) if isinstance(size, Tracer) else like(rest, size)
        for size in (shape if traced else canonical_shape(shape))
    ]
    out = []
    for size in reversed(sizes):
        rest, i = divmod(rest, size)
        out.append(i)
    if not sizes:
        return ()
    # The remaining quotient is 0, or -1 for negative indices; any other value is out of bounds.
    above = lax.gt(rest, like(rest, 0))
    clamped = [where(above, size - like(rest, 1), i) for size, i in zip(sizes, reversed(out), strict=True)]
    if dtypes.is_unsigned(rest.dtype):
        return tuple(clamped)
    below = lax.lt(rest, like(rest, -1))
    return tuple(where(below, like(rest, 0), i) for i in clamped)


def ravel_multi_index(
    multi_index: Sequence[Any], dims: Sequence[int], mode: str = "raise", order: str = "C", *, dtype: Any = None
) -> Any:
    """Convert one index per axis to indices of the flattened array.

    Args:
        multi_index: arrays of integers, one for each axis.
        dims: the array's shape.
        mode: how indices out of bounds are handled. `"raise"`, the default, raises ValueError and requires concrete
            indices; `"clip"` takes the nearest index; `"wrap"` takes indices modulo the size; `"ignore"` does not
            check.
        order: `"C"`, the default, if the last axis changes fastest, or `"F"` if the first does.
        dtype: integer dtype of the result; by default the promoted dtype of the indices and a Python int.

    Raises:
        TypeError: the indices are not integers.
        ValueError: the number of indices is not that of the axes, an index is out of bounds, `dtype` is too narrow, or
            the mode or order is unknown.
    """
    name = "ravel_multi_index"
    sizes = tuple(static_int(name, d, "dims") for d in sequence(name, dims, "dims"))
    parts = [array_argument(name, i, d) for d, i in enumerate(sequence(name, multi_index, "multi_index"))]
    if len(parts) != len(sizes):
        raise ValueError(f"{name}: an index for each of the {len(sizes)} axes, got {len(parts)}")
    for d, i in enumerate(parts):
        if not dtypes.is_integer(i.dtype):
            raise TypeError(f"{name}: indices are integers, those of axis {d} are {i.aval.str_short()}")
    if mode not in ("raise", "clip", "wrap", "ignore"):
        raise ValueError(f"{name}: mode is 'raise', 'clip', 'wrap' or 'ignore', got {mode!r}")
    if order not in ("C", "F"):
        raise ValueError(f"{name}: order is 'C' or 'F', got {order!r}")
    wide = dtypes.result_type(int, *parts) if dtype is None else canonical_dtype(dtype)
    if not dtypes.is_integer(wide) or math.prod(sizes) - 1 > int(dtypes.iinfo(wide).max):
        raise ValueError(f"{name}: dtype {wide.name} does not hold the indices of {math.prod(sizes)} elements")
    total: Any = None
    for d, (i, size) in enumerate(zip(parts, sizes, strict=True)):
        stride = math.prod(sizes[d + 1 :] if order == "C" else sizes[:d])
        i = lax.convert_element_type(_in_bounds(name, i, d, size, mode), wide)
        i = lax.mul(i, like(i, stride)) if stride != 1 else i
        total = i if total is None else total + i
    return lax.full((), 0, wide) if total is None else total


def _in_bounds(name: str, i: Any, axis: int, size: int, mode: str) -> Any:
    if mode == "clip":
        return clip(i, 0, size - 1)
    if mode == "wrap":
        return remainder(i, like(i, size))
    if mode == "raise" and i.size:
        advice = "mode 'raise' needs concrete indices; use another mode for traced ones"
        low, high = (concrete(name, f(i, tuple(range(i.ndim))), advice) for f in (lax.reduce_min, lax.reduce_max))
        if low < 0 or high >= size:
            bad = low if low < 0 else high
            raise ValueError(f"{name}: index {bad} is out of bounds for axis {axis} with size {size}")
    return i


# -- diagonals and triangles -------------------------------------------------------------------------------------


def diag_indices(n: int, ndim: int = 2) -> tuple[Any, ...]:
    """Return the indices of the diagonal of an array with `ndim` axes of size `n`.

    Args:
        n: the size of each axis.
        ndim: the number of axes, 2 by default.

    Raises:
        ValueError: `n` or `ndim` is negative.
    """
    n, ndim = (static_int("diag_indices", v, what) for v, what in ((n, "n"), (ndim, "ndim")))
    if n < 0 or ndim < 0:
        raise ValueError(f"diag_indices: n and ndim are not negative, got {n} and {ndim}")
    return (lax.iota(dtypes.default_int_dtype(), n),) * ndim


def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    """Return the indices of an array's diagonal.

    Raises:
        ValueError: the array has fewer than two axes, or their sizes differ.
    """
    shape = array_argument("diag_indices_from", arr).shape
    if len(shape) < 2 or len(set(shape)) > 1:
        raise ValueError(f"diag_indices_from takes an array of two axes or more, of one length, got shape {shape}")
    return diag_indices(shape[0], len(shape))


def _triangle(name: str, of: Callable[..., Any], doc: str) -> Callable[..., tuple[Any, Any]]:
    def function(n: Any, k: Any = 0, m: Any = None) -> tuple[Any, Any]:
        n, k = (static_int(name, v, what) for v, what in ((n, "n"), (k, "k")))
        m = n if m is None else static_int(name, m, "m")
        if isinstance(n, SymbolicDim) or isinstance(m, SymbolicDim):
            raise InconclusiveDimensionOperation(
                f"{name}: the number of indices is not a polynomial of the sizes n = {n!r} and m = {m!r}; use a "
                "mask, corejax.numpy.tri"
            )
        i, j = of(n, k, m)
        dtype = dtypes.default_int_dtype()
        return as_array(i.astype(dtype)), as_array(j.astype(dtype))

    lax.named(function, name, f"Return the indices of an n by m matrix on and {doc} its `k`-th diagonal.")
    return function


tril_indices = _triangle("tril_indices", np.tril_indices, "below")
triu_indices = _triangle("triu_indices", np.triu_indices, "above")


def _triangle_of_matrix(name: str, of: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
    def function(arr: Any, k: Any = 0) -> tuple[Any, Any]:
        known = hasattr(arr, "shape") and not isinstance(arr, type)
        shape = tuple(arr.shape) if known else array_argument(name, arr).shape
        if len(shape) != 2:
            raise ValueError(f"{name} takes a matrix, got an array of shape {shape}")
        return of(shape[0], k, shape[1])

    doc = f"""Return the indices as `{of.__name__}` does, for the shape of a matrix.

    Raises:
        ValueError: the array is not a matrix.
    """
    lax.named(function, name, doc)
    return function


tril_indices_from = _triangle_of_matrix("tril_indices_from", tril_indices)
triu_indices_from = _triangle_of_matrix("triu_indices_from", triu_indices)
