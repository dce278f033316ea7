"""Sort and partition arrays, and compute the permutations that do."""

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


def _with_axis(name: str, a: Any, axis: int | None) -> tuple[Any, int]:
    """Return the array and the axis; the flattened array and axis 0 if `axis` is None."""
    x = array_argument(name, a)
    if axis is None:
        return lax.reshape(x, (x.size,)), 0
    return x, canonical_axis(axis, x.ndim, f"{name}: axis")


_KINDS = (None, "quicksort", "heapsort", "mergesort", "stable")


def _check_kind_and_order(name: str, kind: Any, order: Any) -> None:
    if kind not in _KINDS:
        raise ValueError(f"{name}: kind is one of {', '.join(map(repr, _KINDS))}, got {kind!r}")
    if order is not None:
        raise TypeError(f"{name}: order={order!r} is not supported: arrays have no fields")


def sort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: str | None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Any:
    """Sort an array along an axis; NaN comes last, and complex numbers are compared by their real parts first.

    Args:
        a: the array.
        axis: the axis to sort along, by default the last; None flattens the array first.
        kind: NumPy's name of an algorithm, accepted for compatibility; only `stable` has an effect.
        order: must be None; arrays have no fields.
        stable: whether equal elements keep their order; True by default.
        descending: whether the largest element comes first; False by default.

    Raises:
        TypeError: `order` is given.
        ValueError: the axis does not exist, or the kind is unknown.
    """
    _check_kind_and_order("sort", kind, order)
    x, axis = _with_axis("sort", a, axis)
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
    """Return the indices that sort an array along an axis.

    The arguments are as for `sort`; `dtype` is the dtype of the indices, by default the default integer dtype.
    """
    _check_kind_and_order("argsort", kind, order)
    x, axis = _with_axis("argsort", a, axis)
    places = lax.broadcasted_iota(_index_dtype("argsort", dtype), x.shape, axis)
    # A stable descending sort reverses the array before and after, so that equal elements keep their order.
    if descending and stable:
        x, places = lax.rev(x, (axis,)), lax.rev(places, (axis,))
    out = lax.sort_key_val(x, places, axis, stable)[1]
    return lax.rev(out, (axis,)) if descending else out


def _index_dtype(name: str, dtype: Any) -> Any:
    wanted = canonical_dtype(dtype)
    if wanted is None:
        return dtypes.default_int_dtype()
    if not dtypes.is_integer(wanted):
        raise TypeError(f"{name}: the dtype of indices must be an integer dtype, got {wanted.name}")
    return wanted


def lexsort(keys: Sequence[Any], axis: int = -1) -> Any:
    """Return the indices that sort by several keys: by the last key first, ties by the last but one, and so on.

    Args:
        keys: a sequence of arrays of one shape, or one array with the keys as rows.
        axis: the axis to sort along, by default the last.

    Raises:
        TypeError: there are no keys.
        ValueError: the shapes differ, or the axis does not exist.
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
    """Partition an array: smaller elements come before the element at sorted position `kth`, and larger ones after it.

    Args:
        a: the array.
        kth: the position of the element that is put into its sorted place.
        axis: the axis to partition along, by default the last; None flattens the array first.

    Raises:
        ValueError: the axis does not exist, or `kth` is out of bounds.
    """
    return sort(a, _partition_axis("partition", a, kth, axis))


def argpartition(a: Any, kth: int, axis: int | None = -1) -> Any:
    """Return the indices that partition an array; arguments as for `partition`."""
    return argsort(a, _partition_axis("argpartition", a, kth, axis))


def top_k(a: Any, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True) -> tuple[Any, Any]:
    """Return the `k` largest or smallest elements along an axis, in order, and their int32 indices; ties keep order.

    Args:
        a: a boolean, integer or floating-point array.
        k: the number of elements, static; at most the size of the axis.
        axis: the axis to search, by default the last.
        mode: `"largest"` or `"smallest"`, which come first.
        sorted: accepted for compatibility; the elements are always in order.

    Raises:
        TypeError: the array is complex.
        ValueError: the axis does not exist, `k` is out of bounds, or the mode is unknown.
    """
    x = array_argument("top_k", a)
    if mode not in ("largest", "smallest"):
        raise ValueError(f"top_k: mode must be 'largest' or 'smallest', got {mode!r}")
    axis = canonical_axis(axis, x.ndim, "top_k: axis")
    if mode == "largest":
        values, indices = lax.top_k(x, k, axis=axis)
        return values, indices
    # Reversed in order: the complement of an integer has no overflow, unlike its negative.
    turn = lax.neg if dtypes.is_inexact(x.dtype) else lax.bitwise_not
    values, indices = lax.top_k(turn(x), k, axis=axis)
    return turn(values), indices


def sort_complex(a: Any) -> Any:
    """Sort an array along its last axis, and return it as complex numbers."""
    x = lax.sort(*_with_axis("sort_complex", a, -1))
    dtype = dtypes.inexact_dtype_of(x.dtype)
    if dtypes.is_complex(dtype):
        return x
    return lax.convert_element_type(x, "complex128" if dtype.itemsize == 8 else "complex64")
