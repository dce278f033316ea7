"""Sets of array elements: `unique` and kin, unions, intersections and differences.

How many elements there are is part of the result's shape. So values have to be known, and NumPy counts them; or the
number is given as `size`: the first so many, in order, filled up where there are fewer.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import Array, Tracer, as_array, dtypes, remembered
from corejax.extend.types import SymbolicDim
from corejax_lax_basic import lax
from corejax_numpy._speed import FEW_TO_COMPARE
from corejax_numpy.arguments import array_argument, array_arguments, canonical_axis, promote_dtypes, static_int
from corejax_numpy.manipulation import moveaxis
from corejax_numpy.nonzero import first_true
from corejax_numpy.searching import searchsorted

_METHODS = ("auto", "compare_all", "binary_search", "sort")


# -- known values ------------------------------------------------------------------------------------------------


def _known(name: str, x: Any) -> Any:
    """The NumPy array of an argument, narrow types widened; of one with a tangent, which a size does not have, too.

    Raises:
        ConcretizationTypeError: it is traced.
    """
    try:
        found = x.steering() if isinstance(x, Tracer) else x
        value = np.asarray(x if found is None else found)
    except TypeError as error:
        if not isinstance(x, Tracer):
            raise
        raise type(error)(
            f"{name}: how many elements the result has depends on their values, so the array has to be known, or the "
            f"number given: {name}(..., size=n). Got {x!r}.\n{x.origin()}"
        ) from None
    return value.astype(np.float32) if value.dtype.kind == "V" else value


def _is_traced(*arrays: Any) -> bool:
    """Whether values that are known decide about a size alone: the result has tangents."""
    return any(isinstance(x, Tracer) for x in arrays)


def _as(dtype: Any, value: Any) -> Any:
    return as_array(np.asarray(value).astype(dtype))


def _indices(value: Any) -> Any:
    return _as(dtypes.default_int_dtype(), value)


def _size(name: str, size: Any) -> int:
    return static_int(name, size, "size", least=0)


# -- a given number of them --------------------------------------------------------------------------------------


def _numbers(count: int) -> Any:
    return lax.iota(dtypes.default_int_dtype(), count)


def _true_places(mask: Any, size: int, otherwise: int) -> tuple[Any, Any, Any]:
    """The first `size` places where a vector is true, `otherwise` where there are fewer; which are there; how many."""
    places, found = first_true(mask, size, otherwise)
    return places, lax.lt(_numbers(size), lax.broadcast(found, (size,))), found


def _chosen(there: Any, values: Any, fill: Any) -> Any:
    """`values` where they are there, a scalar or one row elsewhere."""
    there = lax.broadcast_in_dim(there, values.shape, (0,))
    fill = lax.convert_element_type(fill, values.dtype)
    return lax.select(there, values, lax.broadcast_to(fill, values.shape))


def _differ(x: Any, y: Any, equal_nan: bool) -> Any:
    different = lax.ne(x, y)
    if equal_nan and dtypes.is_inexact(x.dtype):
        both = lax.bitwise_and(lax.ne(x, x), lax.ne(y, y))
        different = lax.bitwise_and(different, lax.bitwise_not(both))
    return different


def _from_previous(x: Any, equal_nan: bool = False) -> Any:
    """Whether each row differs from the one before; the first one does."""
    length = x.shape[0]
    behind, before = lax.slice_in_dim(x, 1, length), lax.slice_in_dim(x, 0, length - 1)
    different = _differ(behind, before, equal_nan)
    different = lax.reduce_or(different, tuple(range(1, x.ndim))) if x.ndim > 1 else different
    return lax.concatenate([lax.full((1,), True, dtypes.bool_), different], 0)


class _Sized(NamedTuple):
    """Unique rows: values, places in the array, group of each row, sizes of the groups; how many there are."""

    values: Any
    indices: Any
    inverse: Any
    counts: Any
    found: Any


def _sized_unique(name: str, rows: Any, size: int, fill_value: Any, equal_nan: bool = True) -> _Sized:
    """Of an array's first axis, with all but it as one row."""
    length, columns = rows.shape[0], int(np.prod(rows.shape[1:], dtype=int))
    if not length:
        if size and fill_value is None:
            raise ValueError(f"{name}: of no elements {size} can only be made with a fill_value")
        none = lax.full((size,), 0, dtypes.default_int_dtype())
        fill = lax.convert_element_type(array_argument(name, 0 if fill_value is None else fill_value), rows.dtype)
        empty = lax.broadcast_to(fill, (size, *rows.shape[1:]))
        return _Sized(empty, none, lax.slice_in_dim(none, 0, 0), none, lax.full((), 0, none.dtype))
    keys = lax.unstack(lax.reshape(rows, (length, columns)), 1)
    *ordered, order = lax.sort((*keys, _numbers(length)), num_keys=columns) if columns else (_numbers(length),)
    table = lax.reshape(lax.stack(ordered, 1), rows.shape) if columns else rows
    new = _from_previous(table, equal_nan) if columns else lax.eq(order, lax.full_like(order, 0))
    places, there, found = _true_places(new, size, 0)
    values = table[places]
    if fill_value is not None:
        values = _chosen(there, values, array_argument(name, fill_value))
    group = lax.sub(lax.cumsum(lax.convert_element_type(new, order.dtype)), lax.full_like(order, 1))
    ends = _true_places(new, size + 1, length)[0]
    counts = lax.sub(lax.slice_in_dim(ends, 1, size + 1), lax.slice_in_dim(ends, 0, size))
    inverse = (
        lax.full_like(group, 0)
        .at[order]
        .set(group, unique_indices=True, mode="promise_in_bounds", wrap_negative_indices=False)
    )
    return _Sized(values, order[places], inverse, counts, found)


# -- unique ------------------------------------------------------------------------------------------------------


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Any = None,
    sorted: bool = True,
) -> Any:
    """The elements of an array without repetitions, in order.

    Args:
        ar: the array.
        return_index: also where each first occurs.
        return_inverse: also which of them each element is.
        return_counts: also how often each occurs.
        axis: the parts along it are the elements; None is the flattened array.
        equal_nan: whether NaNs are one element.
        size: how many, where values are traced.
        fill_value: what they are filled up with, a scalar, or with an axis an array of the other axes' shape; by
            default the least element.
        sorted: they always are.

    Returns:
        The elements, and what else is asked for, in a tuple.

    Raises:
        ConcretizationTypeError: the array is traced and `size` is not given.
        ValueError: there is no such axis, or nothing to fill up with.
    """
    x = array_argument("unique", ar)
    rows = lax.reshape(x, (x.size,)) if axis is None else x
    along = 0 if axis is None else canonical_axis(axis, x.ndim, "unique: axis")
    if size is None and _is_traced(rows):
        size = np.unique(_known("unique", rows), axis=along, equal_nan=equal_nan).shape[along]
    if size is None:
        values, *rest = np.unique(
            _known("unique", rows), True, return_inverse=True, return_counts=True, axis=along, equal_nan=equal_nan
        )
        values = _as(x.dtype, values)
        index, inverse, counts = (_indices(np.reshape(v, (-1,))) for v in rest)
    else:
        rows = moveaxis(rows, along, 0) if along else rows
        found = _sized_unique("unique", rows, _size("unique", size), fill_value, equal_nan)
        values, index, inverse, counts, _ = found
        values = moveaxis(values, 0, along) if along else values
    if axis is None:
        inverse = lax.reshape(inverse, x.shape)
    wanted = ((return_index, index), (return_inverse, inverse), (return_counts, counts))
    more = tuple(value for asked, value in wanted if asked)
    return (values, *more) if more else values


_UniqueAllResult = namedtuple("_UniqueAllResult", "values indices inverse_indices counts")
_UniqueCountsResult = namedtuple("_UniqueCountsResult", "values counts")
_UniqueInverseResult = namedtuple("_UniqueInverseResult", "values inverse_indices")


def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """`unique` with all that it can say; each NaN is an element of its own, as the Array API standard has it."""
    return _UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


def unique_counts(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """`unique` with counts; otherwise as `unique_all`."""
    return _UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_inverse(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """`unique` with the element that each is; otherwise as `unique_all`."""
    return _UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """`unique` alone; otherwise as `unique_all`."""
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# -- two sets ----------------------------------------------------------------------------------------------------


def _vectors(name: str, ar1: Any, ar2: Any) -> list[Any]:
    return [lax.reshape(x, (x.size,)) for x in promote_dtypes(name, *array_arguments(name, ar1, ar2))]


def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The elements of either array, in order; `size` and `fill_value` as of `unique`."""
    return unique(lax.concatenate(_vectors("union1d", ar1, ar2), 0), size=size, fill_value=fill_value)


def setdiff1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None
) -> Any:
    """The elements of the first array that the second does not have.

    Args:
        ar1, ar2: the arrays.
        assume_unique: the elements of each are different, and stay in order.
        size: how many, where values are traced.
        fill_value: what they are filled up with; 0 by default.

    Raises:
        ConcretizationTypeError: an array is traced and `size` is not given.
    """
    name = "setdiff1d"
    x, y = array_arguments(name, ar1, ar2)
    if size is None:
        values = np.setdiff1d(_known(name, x).ravel(), _known(name, y).ravel(), assume_unique)
        if not _is_traced(x):
            return _as(x.dtype, values)
        size = values.size
    x = lax.reshape(x, (x.size,))
    count = _size(name, size)
    fill = array_argument(name, 0 if fill_value is None else fill_value)
    if not x.size:
        return lax.full((count,), lax.convert_element_type(fill, x.dtype))
    found: Any = lax.full((), x.size, dtypes.default_int_dtype())
    if not assume_unique:
        x, _, _, _, found = _sized_unique(name, x, x.size, None)
    mask = lax.lt(_numbers(x.size), lax.broadcast(found, (x.size,)))
    mask = lax.bitwise_and(mask, isin(x, y, invert=True))
    places, there, _ = _true_places(mask, count, 0)
    return _chosen(there, x[places], fill)


class _Merged(NamedTuple):
    """Two sets in one order: elements, places in the arrays, whether each is there, and is the one before it."""

    values: Any
    order: Any
    valid: Any
    repeated: Any


def _merged(name: str, x: Any, y: Any, assume_unique: bool) -> _Merged:
    parts, places, valid = [], [], []
    for v in (x, y):
        there = lax.full((v.size,), True, dtypes.bool_)
        index = _numbers(v.size)
        if not assume_unique and v.size:
            v, index, _, _, found = _sized_unique(name, v, v.size, None)
            there = lax.lt(_numbers(v.size), lax.broadcast(found, (v.size,)))
        parts.append(v)
        places.append(index)
        valid.append(there)
    missing = lax.bitwise_not(lax.concatenate(valid, 0))
    keys = (missing, lax.concatenate(parts, 0), lax.concatenate(places, 0))
    missing, values, order = lax.sort(keys, num_keys=2)
    there = lax.bitwise_not(missing)
    same = lax.bitwise_not(_from_previous(values)) if values.size else there
    return _Merged(values, order, there, lax.bitwise_and(same, there))


def _first_of(values: Any, places: Any, found: Any) -> Any:
    """The least of the results, zero if there are none: what they are filled up with."""
    if not places.size:
        return lax.full((), 0, values.dtype)
    first = lax.index_in_dim(values[places], 0, keepdims=False)
    return lax.select(lax.gt(found, lax.full_like(found, 0)), first, lax.full_like(first, 0))


def setxor1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None
) -> Any:
    """The elements of one array that the other does not have, in order; arguments as of `setdiff1d`.

    By default results are filled up with the least of them.
    """
    name = "setxor1d"
    x, y = _vectors(name, ar1, ar2)
    if size is None:
        values = np.setxor1d(_known(name, x), _known(name, y), assume_unique)
        if not _is_traced(x, y):
            return _as(x.dtype, values)
        size = values.size
    count = _size(name, size)
    if not x.size + y.size:
        return lax.full((count,), 0 if fill_value is None else fill_value, x.dtype)
    values, _, valid, repeated = _merged(name, x, y, assume_unique)
    next_is = lax.concatenate([lax.slice_in_dim(repeated, 1, repeated.size), lax.full((1,), False, dtypes.bool_)], 0)
    mask = lax.bitwise_and(valid, lax.bitwise_not(lax.bitwise_or(repeated, next_is)))
    places, there, found = _true_places(mask, count, 0)
    fill = _first_of(values, places, found) if fill_value is None else array_argument(name, fill_value)
    return _chosen(there, values[places], fill)


def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The elements that both arrays have, in order.

    Args:
        ar1, ar2: the arrays.
        assume_unique: the elements of each are different.
        return_indices: also where each first occurs in the arrays.
        size: how many, where values are traced; indices are filled up with the lengths of the arrays.
        fill_value: what they are filled up with; by default the least of them.

    Raises:
        ConcretizationTypeError: an array is traced and `size` is not given.
    """
    name = "intersect1d"
    x, y = _vectors(name, ar1, ar2)
    if size is None:
        values, *indices = np.intersect1d(_known(name, x), _known(name, y), assume_unique, return_indices=True)
        if not _is_traced(x, y):
            values = _as(x.dtype, values)
            return (values, *map(_indices, indices)) if return_indices else values
        size = values.size
    count = _size(name, size)
    if not x.size + y.size:
        values = lax.full((count,), 0 if fill_value is None else fill_value, x.dtype)
        nowhere = lax.full((count,), 0, dtypes.default_int_dtype())
        return (values, nowhere, nowhere) if return_indices else values
    values, order, _, repeated = _merged(name, x, y, assume_unique)
    places, there, found = _true_places(repeated, count, 0)
    fill = _first_of(values, places, found) if fill_value is None else array_argument(name, fill_value)
    out = _chosen(there, values[places], fill)
    if not return_indices:
        return out
    # Equals are in the order of the arrays: the one of the first array stands before that of the second.
    before = lax.max(lax.sub(places, lax.full_like(places, 1)), lax.full_like(places, 0))
    ends = [lax.full((), v.size, order.dtype) for v in (x, y)]
    return out, _chosen(there, order[before], ends[0]), _chosen(there, order[places], ends[1])


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, method: str = "auto"
) -> Any:
    """Whether each element is among those of another array.

    Args:
        element: the array whose shape the result has.
        test_elements: the other array.
        assume_unique: makes no difference.
        invert: whether each is not among them.
        method: `"compare_all"`, each with each; `"binary_search"` or `"sort"`, of the other array; `"auto"` chooses.

    Raises:
        ValueError: there is no such method.
    """
    if method not in _METHODS:
        raise ValueError(f"isin: method is one of {', '.join(map(repr, _METHODS))}; got {method!r}")
    few = type(element) is type(test_elements) is Array and test_elements.size <= FEW_TO_COMPARE
    return (_remembered_isin if few else _isin)(element, test_elements, bool(invert), method)


def _isin(element: Any, test_elements: Any, invert: bool, method: str) -> Any:
    x, table = promote_dtypes("isin", *array_arguments("isin", element, test_elements))
    table = lax.reshape(table, (table.size,))
    if x.size == 0 or table.size == 0:
        return lax.full(x.shape, invert, dtypes.bool_)
    few = not isinstance(table.size, SymbolicDim) and table.size <= FEW_TO_COMPARE
    if method == "compare_all" or (method == "auto" and few):
        shape = (*x.shape, table.size)
        each = lax.broadcast_in_dim(x, shape, tuple(range(x.ndim)))
        found = lax.reduce_or(lax.eq(each, lax.broadcast_in_dim(table, shape, (x.ndim,))), (x.ndim,))
    else:
        table = lax.sort(table)
        places = searchsorted(table, x, method="sort" if method == "sort" else "scan")
        last = lax.full_like(places, table.size - 1)
        found = lax.eq(table[lax.min(places, last)], x)
    return lax.bitwise_not(found) if invert else found


_remembered_isin = remembered(_isin)
