"""Set operations on arrays: `unique` and its variants, unions, intersections and differences.

The number of elements is part of the result's shape. So either the values are concrete, and NumPy computes the result,
or `size` gives the number: then the result holds the first `size` elements, padded if there are fewer.
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


# -- concrete values -------------------------------------------------------------------------------------------------


def _known(name: str, x: Any) -> Any:
    """Return an argument as a NumPy array, narrow dtypes widened.

    The value of a tracer with a tangent is returned as well, because a size has no tangent.

    Raises:
        ConcretizationTypeError: the argument is traced.
    """
    try:
        concrete = x.steering() if isinstance(x, Tracer) else x
        value = np.asarray(x if concrete is None else concrete)
    except TypeError as error:
        if not isinstance(x, Tracer):
            raise
        raise type(error)(
            f"{name}: the size of the result depends on values, so the array must be concrete, or the size given: "
            f"{name}(..., size=n). Got {x!r}.\n{x.origin()}"
        ) from None
    return value.astype(np.float32) if value.dtype.kind == "V" else value


def _is_traced(*arrays: Any) -> bool:
    """Return whether an array is traced; if its value is known all the same, the result still needs a tangent."""
    return any(isinstance(x, Tracer) for x in arrays)


def _as_array(dtype: Any, value: Any) -> Any:
    return as_array(np.asarray(value).astype(dtype))


def _indices(value: Any) -> Any:
    return _as_array(dtypes.default_int_dtype(), value)


def _size(name: str, size: Any) -> int:
    return static_int(name, size, "size", least=0)


# -- with a static size ---------------------------------------------------------------------------------------


def _numbers(count: int) -> Any:
    return lax.iota(dtypes.default_int_dtype(), count)


def _true_places(mask: Any, size: int, otherwise: int) -> tuple[Any, Any, Any]:
    """Return the first `size` true positions (padded with `otherwise`), which of them are valid, and their number."""
    places, total = first_true(mask, size, otherwise)
    return places, lax.lt(_numbers(size), lax.broadcast(total, (size,))), total


def _fill_invalid(valid: Any, values: Any, fill: Any) -> Any:
    """Replace the rows of `values` that are not valid by a scalar or one row."""
    valid = lax.broadcast_in_dim(valid, values.shape, (0,))
    fill = lax.convert_element_type(fill, values.dtype)
    return lax.select(valid, values, lax.broadcast_to(fill, values.shape))


def _differ(x: Any, y: Any, equal_nan: bool) -> Any:
    different = lax.ne(x, y)
    if equal_nan and dtypes.is_inexact(x.dtype):
        both = lax.bitwise_and(lax.ne(x, x), lax.ne(y, y))
        different = lax.bitwise_and(different, lax.bitwise_not(both))
    return different


def _differs_from_previous(x: Any, equal_nan: bool = False) -> Any:
    """Test whether each row differs from the row before it; True for the first row."""
    length = x.shape[0]
    behind, before = lax.slice_in_dim(x, 1, length), lax.slice_in_dim(x, 0, length - 1)
    different = _differ(behind, before, equal_nan)
    different = lax.reduce_or(different, tuple(range(1, x.ndim))) if x.ndim > 1 else different
    return lax.concatenate([lax.full((1,), True, dtypes.bool_), different], 0)


class _Sized(NamedTuple):
    """Unique rows, padded to a static size.

    Attributes:
        values: the rows.
        indices: the position of each row in the array.
        inverse: the index of the unique row that is equal to each row of the array.
        counts: the number of occurrences of each row.
        total: the number of unique rows.
    """

    values: Any
    indices: Any
    inverse: Any
    counts: Any
    total: Any


def _sized_unique(name: str, rows: Any, size: int, fill_value: Any, equal_nan: bool = True) -> _Sized:
    """Compute the unique rows of an array: sort its elements along the first axis, and compare neighbours."""
    length, columns = rows.shape[0], int(np.prod(rows.shape[1:], dtype=int))
    if not length:
        if size and fill_value is None:
            raise ValueError(f"{name}: an empty array gives {size} elements only with a fill_value")
        none = lax.full((size,), 0, dtypes.default_int_dtype())
        fill = lax.convert_element_type(array_argument(name, 0 if fill_value is None else fill_value), rows.dtype)
        empty = lax.broadcast_to(fill, (size, *rows.shape[1:]))
        return _Sized(empty, none, lax.slice_in_dim(none, 0, 0), none, lax.full((), 0, none.dtype))
    keys = lax.unstack(lax.reshape(rows, (length, columns)), 1)
    *ordered, order = lax.sort((*keys, _numbers(length)), num_keys=columns) if columns else (_numbers(length),)
    table = lax.reshape(lax.stack(ordered, 1), rows.shape) if columns else rows
    new = _differs_from_previous(table, equal_nan) if columns else lax.eq(order, lax.full_like(order, 0))
    places, valid, total = _true_places(new, size, 0)
    values = table[places]
    if fill_value is not None:
        values = _fill_invalid(valid, values, array_argument(name, fill_value))
    group = lax.sub(lax.cumsum(lax.convert_element_type(new, order.dtype)), lax.full_like(order, 1))
    ends = _true_places(new, size + 1, length)[0]
    counts = lax.sub(lax.slice_in_dim(ends, 1, size + 1), lax.slice_in_dim(ends, 0, size))
    inverse = (
        lax.full_like(group, 0)
        .at[order]
        .set(group, unique_indices=True, mode="promise_in_bounds", wrap_negative_indices=False)
    )
    return _Sized(values, order[places], inverse, counts, total)


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
    """Return the sorted unique elements of an array.

    Args:
        ar: the array.
        return_index: whether to return the index of the first occurrence of each unique element.
        return_inverse: whether to return, for each element of `ar`, the index of its unique element.
        return_counts: whether to return the number of occurrences of each unique element.
        axis: the axis along which slices are the elements; None, the default, flattens the array first.
        equal_nan: whether all NaNs count as one element; True by default.
        size: the number of unique elements in the result; required if the array is traced.
        fill_value: the padding if there are fewer than `size` unique elements: a scalar, or with `axis` an array of
            the shape of a slice; by default the smallest element.
        sorted: accepted for compatibility with NumPy and ignored; the result is always sorted.

    Returns:
        The unique elements, or a tuple of them and the requested indices, inverse indices and counts.

    Raises:
        ConcretizationTypeError: the array is traced, and `size` is not given.
        ValueError: the axis does not exist; or the array is empty, and `fill_value` is not given.
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
        values = _as_array(x.dtype, values)
        index, inverse, counts = (_indices(np.reshape(v, (-1,))) for v in rest)
    else:
        rows = moveaxis(rows, along, 0) if along else rows
        sized = _sized_unique("unique", rows, _size("unique", size), fill_value, equal_nan)
        values, index, inverse, counts, _ = sized
        values = moveaxis(values, 0, along) if along else values
    if axis is None:
        inverse = lax.reshape(inverse, x.shape)
    optional = ((return_index, index), (return_inverse, inverse), (return_counts, counts))
    more = tuple(value for is_requested, value in optional if is_requested)
    return (values, *more) if more else values


_UniqueAllResult = namedtuple("_UniqueAllResult", "values indices inverse_indices counts")
_UniqueCountsResult = namedtuple("_UniqueCountsResult", "values counts")
_UniqueInverseResult = namedtuple("_UniqueInverseResult", "values inverse_indices")


def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Return unique values, indices, inverse indices and counts; each NaN is unique, as in the Array API standard."""
    return _UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


def unique_counts(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Return unique values and their counts; otherwise as `unique_all`."""
    return _UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_inverse(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Return unique values and inverse indices; otherwise as `unique_all`."""
    return _UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Return unique values; otherwise as `unique_all`."""
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# -- two sets ----------------------------------------------------------------------------------------------------


def _vectors(name: str, ar1: Any, ar2: Any) -> list[Any]:
    return [lax.reshape(x, (x.size,)) for x in promote_dtypes(name, *array_arguments(name, ar1, ar2))]


def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Return the sorted unique elements of two arrays; `size` and `fill_value` are as for `unique`."""
    return unique(lax.concatenate(_vectors("union1d", ar1, ar2), 0), size=size, fill_value=fill_value)


def setdiff1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None
) -> Any:
    """Return the sorted unique elements of one array that are not in another.

    Args:
        ar1: the array of elements to keep.
        ar2: the array of elements to remove.
        assume_unique: whether the elements of each array are unique; then the result keeps the order of `ar1`.
        size: the number of elements in the result; required if an array is traced.
        fill_value: the padding if there are fewer than `size` elements; 0 by default.

    Raises:
        ConcretizationTypeError: an array is traced, and `size` is not given.
    """
    name = "setdiff1d"
    x, y = array_arguments(name, ar1, ar2)
    if size is None:
        values = np.setdiff1d(_known(name, x).ravel(), _known(name, y).ravel(), assume_unique)
        if not _is_traced(x):
            return _as_array(x.dtype, values)
        size = values.size
    x = lax.reshape(x, (x.size,))
    count = _size(name, size)
    fill = array_argument(name, 0 if fill_value is None else fill_value)
    if not x.size:
        return lax.full((count,), lax.convert_element_type(fill, x.dtype))
    total: Any = lax.full((), x.size, dtypes.default_int_dtype())
    if not assume_unique:
        x, _, _, _, total = _sized_unique(name, x, x.size, None)
    mask = lax.lt(_numbers(x.size), lax.broadcast(total, (x.size,)))
    mask = lax.bitwise_and(mask, isin(x, y, invert=True))
    places, valid, _ = _true_places(mask, count, 0)
    return _fill_invalid(valid, x[places], fill)


class _Merged(NamedTuple):
    """Two sets sorted together.

    Attributes:
        values: the elements.
        order: the position of each element in its array.
        valid: whether an element is not padding.
        repeated: whether an element is valid and equal to the element before it, and so in both sets.
    """

    values: Any
    order: Any
    valid: Any
    repeated: Any


def _merge_sorted(name: str, x: Any, y: Any, assume_unique: bool) -> _Merged:
    parts, places, valid = [], [], []
    for v in (x, y):
        is_valid = lax.full((v.size,), True, dtypes.bool_)
        index = _numbers(v.size)
        if not assume_unique and v.size:
            v, index, _, _, total = _sized_unique(name, v, v.size, None)
            is_valid = lax.lt(_numbers(v.size), lax.broadcast(total, (v.size,)))
        parts.append(v)
        places.append(index)
        valid.append(is_valid)
    missing = lax.bitwise_not(lax.concatenate(valid, 0))
    keys = (missing, lax.concatenate(parts, 0), lax.concatenate(places, 0))
    missing, values, order = lax.sort(keys, num_keys=2)
    is_valid = lax.bitwise_not(missing)
    same = lax.bitwise_not(_differs_from_previous(values)) if values.size else is_valid
    return _Merged(values, order, is_valid, lax.bitwise_and(same, is_valid))


def _first_of(values: Any, places: Any, total: Any) -> Any:
    """Return the smallest element of the result, or zero if it is empty: the default padding."""
    if not places.size:
        return lax.full((), 0, values.dtype)
    first = lax.index_in_dim(values[places], 0, keepdims=False)
    return lax.select(lax.gt(total, lax.full_like(total, 0)), first, lax.full_like(first, 0))


def setxor1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None
) -> Any:
    """Return the sorted unique elements that are in exactly one of two arrays; arguments as for `setdiff1d`.

    The default padding is the smallest element of the result.
    """
    name = "setxor1d"
    x, y = _vectors(name, ar1, ar2)
    if size is None:
        values = np.setxor1d(_known(name, x), _known(name, y), assume_unique)
        if not _is_traced(x, y):
            return _as_array(x.dtype, values)
        size = values.size
    count = _size(name, size)
    if not x.size + y.size:
        return lax.full((count,), 0 if fill_value is None else fill_value, x.dtype)
    values, _, valid, repeated = _merge_sorted(name, x, y, assume_unique)
    is_followed = lax.concatenate(
        [lax.slice_in_dim(repeated, 1, repeated.size), lax.full((1,), False, dtypes.bool_)], 0
    )
    mask = lax.bitwise_and(valid, lax.bitwise_not(lax.bitwise_or(repeated, is_followed)))
    places, valid, total = _true_places(mask, count, 0)
    fill = _first_of(values, places, total) if fill_value is None else array_argument(name, fill_value)
    return _fill_invalid(valid, values[places], fill)


def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Return the sorted unique elements that are in both arrays.

    Args:
        ar1: an array.
        ar2: an array.
        assume_unique: whether the elements of each array are unique; False by default.
        return_indices: whether to return the indices of the first occurrences in `ar1` and `ar2`.
        size: the number of elements in the result; required if an array is traced. Indices are padded with the sizes
            of the arrays.
        fill_value: the padding if there are fewer than `size` elements; by default the smallest element of the result.

    Raises:
        ConcretizationTypeError: an array is traced, and `size` is not given.
    """
    name = "intersect1d"
    x, y = _vectors(name, ar1, ar2)
    if size is None:
        values, *indices = np.intersect1d(_known(name, x), _known(name, y), assume_unique, return_indices=True)
        if not _is_traced(x, y):
            values = _as_array(x.dtype, values)
            return (values, *map(_indices, indices)) if return_indices else values
        size = values.size
    count = _size(name, size)
    if not x.size + y.size:
        values = lax.full((count,), 0 if fill_value is None else fill_value, x.dtype)
        nowhere = lax.full((count,), 0, dtypes.default_int_dtype())
        return (values, nowhere, nowhere) if return_indices else values
    values, order, _, repeated = _merge_sorted(name, x, y, assume_unique)
    places, valid, total = _true_places(repeated, count, 0)
    fill = _first_of(values, places, total) if fill_value is None else array_argument(name, fill_value)
    out = _fill_invalid(valid, values[places], fill)
    if not return_indices:
        return out
    # The sort is stable, so of two equal elements that of the first array comes first.
    before = lax.max(lax.sub(places, lax.full_like(places, 1)), lax.full_like(places, 0))
    ends = [lax.full((), v.size, order.dtype) for v in (x, y)]
    return out, _fill_invalid(valid, order[before], ends[0]), _fill_invalid(valid, order[places], ends[1])


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, method: str = "auto"
) -> Any:
    """Test whether each element of an array is in another array.

    Args:
        element: the array of elements to test; the result has its shape.
        test_elements: the array of values to test against.
        assume_unique: accepted for compatibility with NumPy and ignored.
        invert: whether to test that elements are not in the other array; False by default.
        method: the algorithm. `"compare_all"` compares all pairs; `"binary_search"` and `"sort"` search the sorted
            `test_elements`, as the methods of `searchsorted` do; `"auto"`, the default, chooses by size.

    Raises:
        ValueError: the method is unknown.
    """
    if method not in _METHODS:
        raise ValueError(f"isin: method is one of {', '.join(map(repr, _METHODS))}; got {method!r}")
    few = type(element) is type(test_elements) is Array and test_elements.size <= FEW_TO_COMPARE
    return (_isin_of_few if few else _isin)(element, test_elements, bool(invert), method)


def _isin(element: Any, test_elements: Any, invert: bool, method: str) -> Any:
    x, table = promote_dtypes("isin", *array_arguments("isin", element, test_elements))
    table = lax.reshape(table, (table.size,))
    if x.size == 0 or table.size == 0:
        return lax.full(x.shape, invert, dtypes.bool_)
    few = not isinstance(table.size, SymbolicDim) and table.size <= FEW_TO_COMPARE
    if method == "compare_all" or (method == "auto" and few):
        shape = (*x.shape, table.size)
        each = lax.broadcast_in_dim(x, shape, tuple(range(x.ndim)))
        is_member = lax.reduce_or(lax.eq(each, lax.broadcast_in_dim(table, shape, (x.ndim,))), (x.ndim,))
    else:
        table = lax.sort(table)
        places = searchsorted(table, x, method="sort" if method == "sort" else "scan")
        last = lax.full_like(places, table.size - 1)
        is_member = lax.eq(table[lax.min(places, last)], x)
    return lax.bitwise_not(is_member) if invert else is_member


_isin_of_few = remembered(_isin)
