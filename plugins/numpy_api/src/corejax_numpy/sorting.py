"""Sorting and partial sorting, and the permutations that sort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import (
    array_argument,
    array_arguments,
    canonical_axis,
    canonical_dtype,
    sequence,
)


def _along(name: str, a: Any, axis: int | None) -> tuple[Any, int]:
    """The array and the axis; the flattened array for None."""
    x = array_argument(name, a)
    if axis is None:
        return lax.reshape(x, (x.size,)), 0
    return x, canonical_axis(axis, x.ndim, f"{name}: axis")


_KINDS = (None, "quicksort", "heapsort", "mergesort", "stable")


def _refuse(name: str, kind: Any, order: Any) -> None:
    if kind not in _KINDS:
        raise ValueError(f"{name}: kind is one of {', '.join(map(repr, _KINDS))}, got {kind!r}")
    if order is not None:
        raise TypeError(f"{name}: there is no order={order!r}: arrays have no fields")


def sort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: str | None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Any:
    """An array sorted along an axis: NaN last, complex numbers by their real parts first.

    Args:
        a: the array.
        axis: the axis; None is the flattened array.
        kind: NumPy's name of an algorithm; what it promises holds, for it is `stable` that decides.
        order: None; arrays have no fields.
        stable: whether equal elements stay in order.
        descending: whether the greatest comes first.

    Raises:
        TypeError: `order` is given.
        ValueError: there is no such axis or kind.
    """
    _refuse("sort", kind, order)
    x, axis = _along("sort", a, axis)
    out = lax.sort(x, axis, stable)
    return lax.rev(out, (axis,)) if descending else out


def argsort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: str | None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: Any = None,
) -> Any:
    """The indices that sort an array along an axis; arguments as of `sort`, and the dtype of the indices."""
    _refuse("argsort", kind, order)
    x, axis = _along("argsort", a, axis)
    places = lax.broadcasted_iota(_index_dtype("argsort", dtype), x.shape, axis)
    if descending and stable:  # turned round before and after, so that equal elements stay in order
        x, places = lax.rev(x, (axis,)), lax.rev(places, (axis,))
    out = lax.sort_key_val(x, places, axis, stable)[1]
    return lax.rev(out, (axis,)) if descending else out


def _index_dtype(name: str, dtype: Any) -> Any:
    wanted = canonical_dtype(dtype)
    if wanted is None:
        return dtypes.default_int_dtype()
    if not dtypes.is_integer(wanted):
        raise TypeError(f"{name}: the dtype of indices is an integer's, got {wanted.name}")
    return wanted


def lexsort(keys: Sequence[Any], axis: int = -1) -> Any:
    """The indices that sort by the last key, equals by the last but one, and so on.

    Args:
        keys: arrays of one shape, or an array of them.
        axis: the axis.

    Raises:
        TypeError: there is no key.
        ValueError: the shapes differ, or there is no such axis.
    """
    xs = array_arguments("lexsort", *sequence("lexsort", keys, "keys"))
    if not xs:
        raise TypeError("lexsort takes at least one key, got none")
    shapes = [x.shape for x in xs]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"lexsort: keys have one shape, got {', '.join(map(str, shapes))}")
    if not shapes[0]:
        return lax.full((), 0, dtypes.default_int_dtype())
    axis = canonical_axis(axis, len(shapes[0]), "lexsort: axis")
    places = lax.broadcasted_iota(dtypes.default_int_dtype(), shapes[0], axis)
    return lax.sort((*reversed(xs), places), axis, num_keys=len(xs))[-1]


def _partition_axis(name: str, a: Any, kth: Any, axis: int | None) -> int | None:
    x = array_argument(name, a)
    size = x.size if axis is None else x.shape[canonical_axis(axis, x.ndim, f"{name}: axis")]
    canonical_axis(kth, size, f"{name}: kth")
    return axis


def partition(a: Any, kth: int, axis: int | None = -1) -> Any:
    """An array with the element at `kth` in its sorted place, smaller ones before it and greater ones behind it.

    Raises:
        ValueError: there is no such axis or element.
    """
    return sort(a, _partition_axis("partition", a, kth, axis))


def argpartition(a: Any, kth: int, axis: int | None = -1) -> Any:
    """The indices that partition an array; arguments as of `partition`."""
    return argsort(a, _partition_axis("argpartition", a, kth, axis))


def sort_complex(a: Any) -> Any:
    """An array sorted along its last axis, as complex numbers."""
    x = lax.sort(*_along("sort_complex", a, -1))
    dtype = dtypes.inexact_dtype_of(x.dtype)
    if dtypes.is_complex(dtype):
        return x
    return lax.convert_element_type(x, "complex128" if dtype.itemsize == 8 else "complex64")
