"""Functions that move the elements of BCOO arrays: transpose, reshape, slice and others, and their sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import corejax.numpy as jnp
from corejax import lax
from corejax_sparse._base import canonical, over_batch, sequence_of
from corejax_sparse.indices import columns, in_bounds, masked, or_padding, padding, selected
from corejax_sparse.layout import full_batches

# -- dimensions ----------------------------------------------------------------------------------------------------


def transpose(mat: Any, *, permutation: Sequence[int]) -> Any:
    """Permute dimensions: batch, sparse and dense ones among themselves.

    Raises:
        NotImplementedError: a dimension would become one of another kind; `bcoo_update_layout` does that first.
        ValueError: the permutation is none.
    """
    axes = canonical(list(permutation), mat.ndim, "bcoo_transpose")
    if len(axes) != mat.ndim:
        raise ValueError(f"bcoo_transpose: {tuple(permutation)} is no permutation of {mat.ndim} dimensions")
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    batch, sparse, dense = axes[:first], axes[first:last], axes[last:]
    if sorted(batch) != list(range(first)) or sorted(sparse) != list(range(first, last)):
        raise NotImplementedError(
            f"bcoo_transpose: the permutation {axes} mixes batch, sparse and dense dimensions of {mat!r} with "
            f"n_batch={first} and n_dense={mat.n_dense}; bcoo_update_layout changes their numbers"
        )
    data = mat.data.transpose(*batch, first, *(axis - mat.n_sparse + 1 for axis in dense))
    indices = mat.indices.transpose(*batch, first, first + 1)[..., [axis - first for axis in sparse]]
    sizes = tuple(mat.shape[axis] for axis in sparse)
    return mat.with_parts(data, indices, sizes, indices_sorted=mat.indices_sorted and sparse == tuple(sorted(sparse)))


def reshape(
    mat: Any, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: None = None
) -> Any:
    """Reshape batch, sparse and dense dimensions, each by themselves.

    Raises:
        NotImplementedError: `dimensions` are given, or the new shape does not keep the kinds of dimensions apart.
        ValueError: the sizes differ.
    """
    _no_sharding("bcoo_reshape", sharding)
    if dimensions is not None and tuple(dimensions) != tuple(range(mat.ndim)):
        raise NotImplementedError("bcoo_reshape: dimensions; call bcoo_transpose first")
    new = sequence_of(new_sizes, "bcoo_reshape: new_sizes")
    if -1 in new and new.count(-1) == 1:
        rest = -math.prod(new)
        new = tuple(mat.size // rest if size == -1 and rest else size for size in new)
    if math.prod(new) != mat.size:
        raise ValueError(f"bcoo_reshape: an array of shape {mat.shape} has no shape {tuple(new_sizes)}")
    n_batch = _leading(new, mat.shape[: mat.n_batch])
    n_dense = _leading(new[::-1], mat.dense_shape[::-1])
    if n_batch is None or n_dense is None or n_batch + n_dense > len(new):
        raise NotImplementedError(
            f"bcoo_reshape: the shape {new} mixes batch, sparse and dense dimensions of {mat!r} with "
            f"n_batch={mat.n_batch} and n_dense={mat.n_dense}"
        )
    batch, sizes, tail = new[:n_batch], new[n_batch : len(new) - n_dense], new[len(new) - n_dense :]
    old = mat.sparse_shape
    if math.prod(sizes) != math.prod(old):
        raise NotImplementedError(f"bcoo_reshape: sparse dimensions {old} do not become {sizes}")
    data, indices = full_batches(mat) if mat.n_batch else (mat.data, mat.indices)
    data = data.reshape(*batch, mat.nse, *tail)
    indices = indices.reshape(*batch, mat.nse, mat.n_sparse)

    def one(indices: Any) -> Any:
        keep = in_bounds(indices, old)
        place = jnp.zeros(indices.shape[0], indices.dtype)
        for column, size in zip(columns(indices), old, strict=True):
            place = place * size + column
        found = []
        for size in reversed(sizes):
            found.append(place % max(size, 1))
            place = place // max(size, 1)
        stacked = jnp.stack(found[::-1], 1) if found else jnp.zeros((indices.shape[0], 0), indices.dtype)
        return or_padding(keep, stacked, sizes)

    if old != sizes:
        indices = over_batch(one, n_batch, indices)
    return mat.with_parts(data, indices, sizes)


def _no_sharding(name: str, sharding: Any) -> None:
    if sharding is not None:
        raise NotImplementedError(f"{name}: the sharding of a sparse array cannot be given")


def _leading(new: Sequence[int], old: Sequence[int]) -> int | None:
    """Return how many leading sizes have the product of `old`; None if none have it."""
    if not old:
        return 0
    return next((k for k in range(1, len(new) + 1) if math.prod(new[:k]) == math.prod(old)), None)


def broadcast_in_dim(
    mat: Any, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: None = None
) -> Any:
    """Add dimensions, and repeat elements along them and along those of size 1, as `lax.broadcast_in_dim`."""
    _no_sharding("bcoo_broadcast_in_dim", sharding)
    shape, dims = tuple(shape), tuple(broadcast_dimensions)
    fits = len(dims) == mat.ndim and list(dims) == sorted(set(dims)) and all(0 <= d < len(shape) for d in dims)
    if not fits or any(size not in (1, shape[d]) for size, d in zip(mat.shape, dims, strict=True)):
        raise ValueError(f"bcoo_broadcast_in_dim: {mat.shape} does not broadcast to {shape} by dimensions {dims}")
    n_batch = dims[mat.n_batch - 1] + 1 if mat.n_batch else 0
    last = mat.n_batch + mat.n_sparse
    n_dense = len(shape) - dims[last] if mat.n_dense else 0
    batch, tail = shape[:n_batch], shape[len(shape) - n_dense :]
    data, indices = full_batches(mat)
    nse, n_sparse, batch_dims = mat.nse, mat.n_sparse, dims[: mat.n_batch]
    dense_dims = tuple(n_batch + 1 + d - (len(shape) - n_dense) for d in dims[last:])
    data = lax.broadcast_in_dim(data, (*batch, nse, *tail), (*batch_dims, n_batch, *dense_dims))
    indices = lax.broadcast_in_dim(indices, (*batch, nse, n_sparse), (*batch_dims, n_batch, n_batch + 1))
    sizes, old = (
        shape[n_batch : len(shape) - n_dense],
        dict(zip(dims[mat.n_batch : last], range(n_sparse), strict=True)),
    )
    repeated = [
        (k, size)
        for k, size in enumerate(sizes)
        if n_batch + k not in old or mat.sparse_shape[old[n_batch + k]] != size
    ]

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        keep = in_bounds(indices, mat.sparse_shape)
        named = {d - n_batch: indices[:, k] for d, k in old.items()}
        for k, size in repeated:
            count = data.shape[0]
            data, keep = jnp.repeat(data, size, 0), jnp.repeat(keep, size)
            named = {d: jnp.repeat(column, size) for d, column in named.items()}
            named[k] = jnp.tile(jnp.arange(size, dtype=indices.dtype), count)
        stacked = [named[k] for k in range(len(sizes))]
        out = jnp.stack(stacked, 1) if stacked else indices
        return data, or_padding(keep, out, sizes)

    data, indices = over_batch(one, n_batch, data, indices)
    return mat.with_parts(data, indices, sizes, indices_sorted=False)


def squeeze(arr: Any, *, dimensions: Sequence[int]) -> Any:
    """Remove dimensions of size 1."""
    dims = canonical(dimensions, arr.ndim, "bcoo_squeeze")
    if any(arr.shape[d] != 1 for d in dims):
        raise ValueError(f"bcoo_squeeze: dimensions {dims} of {arr.shape} are not all of size 1")
    last = arr.n_batch + arr.n_sparse
    batch = tuple(d for d in dims if d < arr.n_batch)
    kept = [k for k in range(arr.n_sparse) if arr.n_batch + k not in dims]
    sizes = tuple(arr.sparse_shape[k] for k in kept)
    keep = over_batch(lambda indices: in_bounds(indices, arr.sparse_shape), arr.n_batch, arr.indices)
    data = arr.data
    if not sizes and arr.n_sparse:  # nothing marks padding any more
        data = over_batch(masked, arr.n_batch, keep, data)
    indices = over_batch(lambda keep, i: or_padding(keep, selected(i, kept), sizes), arr.n_batch, keep, arr.indices)
    data = jnp.squeeze(data, (*batch, *(d - arr.n_sparse + 1 for d in dims if d >= last)))
    return arr.with_parts(data, jnp.squeeze(indices, batch), sizes)


def concatenate(operands: Sequence[Any], *, dimension: int) -> Any:
    """Concatenate arrays along a dimension; they have the same numbers of batch and dense dimensions.

    Raises:
        TypeError: an operand is not a BCOO array.
        ValueError: the shapes or the numbers of dimensions differ.
    """
    mats = list(operands)
    if not mats or not all(hasattr(mat, "sparse_shape") for mat in mats):
        raise TypeError("bcoo_concatenate: the operands must be BCOO arrays, at least one")
    first = mats[0]
    (dimension,) = canonical(dimension, first.ndim, "bcoo_concatenate")
    rest = {mat.shape[:dimension] + mat.shape[dimension + 1 :] for mat in mats}
    if len(rest) > 1 or len({(mat.n_batch, mat.n_dense, mat.ndim) for mat in mats}) > 1:
        raise ValueError(
            f"bcoo_concatenate: the operands differ in other dimensions than {dimension}, or in n_batch or n_dense: "
            f"{', '.join(f'{m!r} with n_batch={m.n_batch}, n_dense={m.n_dense}' for m in mats)}"
        )
    parts = [full_batches(mat) for mat in mats]
    n_batch, last = first.n_batch, first.n_batch + first.n_sparse
    if dimension < n_batch:
        nse = max(mat.nse for mat in mats)
        parts = [_with_nse(mat, *pair, nse) for mat, pair in zip(mats, parts, strict=True)]
        data, indices = (jnp.concatenate(xs, dimension) for xs in zip(*parts, strict=True))
        return first.with_parts(data, indices, unique_indices=all(m.unique_indices for m in mats))
    if dimension >= last:
        position, total = dimension - last, sum(mat.shape[dimension] for mat in mats)
        datas, start = [], 0
        for mat, (data, _) in zip(mats, parts, strict=True):
            after = total - start - mat.shape[dimension]
            widths = [(start, after) if k == n_batch + 1 + position else (0, 0) for k in range(data.ndim)]
            datas.append(jnp.pad(data, widths))
            start += mat.shape[dimension]
        data = jnp.concatenate(datas, n_batch)
        return first.with_parts(data, jnp.concatenate([i for _, i in parts], n_batch), unique_indices=False)
    column, total = dimension - n_batch, sum(mat.shape[dimension] for mat in mats)
    sizes = (*first.sparse_shape[:column], total, *first.sparse_shape[column + 1 :])
    moved, start = [], 0
    for mat, (_, indices) in zip(mats, parts, strict=True):
        moved.append(_shifted(mat, indices, column, start, sizes))
        start += mat.shape[dimension]
    data = jnp.concatenate([data for data, _ in parts], n_batch)
    unique = all(m.unique_indices for m in mats)
    return first.with_parts(data, jnp.concatenate(moved, n_batch), sizes, unique_indices=unique)


def _with_nse(mat: Any, data: Any, indices: Any, nse: int) -> tuple[Any, Any]:
    """Return parts with padding, so that `nse` elements are stored."""
    more = nse - mat.nse
    if not more:
        return data, indices
    widths = [(0, more) if k == mat.n_batch else (0, 0) for k in range(data.ndim)]
    empty = jnp.broadcast_to(padding(indices, mat.sparse_shape), (*indices.shape[: mat.n_batch], more, mat.n_sparse))
    return jnp.pad(data, widths), jnp.concatenate([indices, empty], mat.n_batch)


def _shifted(mat: Any, indices: Any, column: int, start: int, sizes: Sequence[int]) -> Any:
    def one(indices: Any) -> Any:
        keep = in_bounds(indices, mat.sparse_shape)
        return or_padding(keep, indices.at[:, column].add(start), sizes)

    return over_batch(one, mat.n_batch, indices)


def rev(operand: Any, dimensions: Sequence[int]) -> Any:
    """Reverse the order of elements along dimensions."""
    dims = canonical(dimensions, operand.ndim, "bcoo_rev")
    last, sizes = operand.n_batch + operand.n_sparse, operand.sparse_shape
    turned = [d - operand.n_batch for d in dims if operand.n_batch <= d < last]
    batch = [d for d in dims if d < operand.n_batch]
    data = jnp.flip(operand.data, (*batch, *(d - operand.n_sparse + 1 for d in dims if d >= last)))

    def one(indices: Any) -> Any:
        keep = in_bounds(indices, sizes)
        found = [sizes[k] - 1 - c if k in turned else c for k, c in enumerate(columns(indices))]
        return or_padding(keep, jnp.stack(found, 1), sizes) if found else indices

    indices = over_batch(one, operand.n_batch, jnp.flip(operand.indices, batch))
    return operand.with_parts(data, indices, indices_sorted=operand.indices_sorted and not turned)


# -- slices --------------------------------------------------------------------------------------------------------


def slice_(
    mat: Any, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Any:
    """Take a slice, as `lax.slice`. The number of stored elements stays: elements outside become padding."""
    start, limit = tuple(start_indices), tuple(limit_indices)
    step = tuple(strides) if strides is not None else (1,) * mat.ndim
    if not len(start) == len(limit) == len(step) == mat.ndim or any(s < 1 for s in step):
        raise ValueError(f"bcoo_slice: a start, limit and positive stride for each of {mat.ndim} dimensions are needed")
    if any(not 0 <= a <= b <= size for a, b, size in zip(start, limit, mat.shape, strict=True)):
        raise ValueError(f"bcoo_slice: slice from {start} to {limit} is out of bounds for {mat.shape}")
    return _sliced(mat, start, [len(range(*x)) for x in zip(start, limit, step, strict=True)], step)


def dynamic_slice(mat: Any, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> Any:
    """Take a slice from traced positions on, as `lax.dynamic_slice`: positions are clamped to bounds."""
    sizes = sequence_of(slice_sizes, "bcoo_dynamic_slice: slice_sizes")
    starts = list(start_indices)
    if not len(starts) == len(sizes) == mat.ndim or any(not 0 <= n <= m for n, m in zip(sizes, mat.shape, strict=True)):
        raise ValueError(f"bcoo_dynamic_slice: slice sizes {sizes} do not fit into {mat.shape}")
    starts = [jnp.clip(s, 0, m - n) for s, n, m in zip(starts, sizes, mat.shape, strict=True)]
    return _sliced(mat, starts, sizes, (1,) * mat.ndim)


def _sliced(mat: Any, start: Sequence[Any], count: Sequence[int], step: Sequence[int]) -> Any:
    n_batch, last, old = mat.n_batch, mat.n_batch + mat.n_sparse, mat.sparse_shape
    data, indices = mat.data, mat.indices

    def taken(x: Any, axis: int, d: int) -> Any:
        if isinstance(start[d], int):
            return lax.slice_in_dim(
                x, start[d], start[d] + max(0, (count[d] - 1) * step[d] + 1) * (count[d] > 0), step[d], axis
            )
        return lax.dynamic_slice_in_dim(x, start[d], count[d], axis)

    for d in range(n_batch):
        data, indices = (x if x.shape[d] != mat.shape[d] else taken(x, d, d) for x in (data, indices))
    for d in range(last, mat.ndim):
        data = taken(data, d - mat.n_sparse + 1, d)
    sizes = tuple(count[n_batch:last])
    whole = all(isinstance(s, int) and s == 0 for s in start[n_batch:last]) and sizes == old
    if whole:
        return mat.with_parts(data, indices, sizes)

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        keep, found = in_bounds(indices, old), []
        for k, column in enumerate(columns(indices)):
            moved = column - jnp.asarray(start[n_batch + k], column.dtype)
            place = moved // step[n_batch + k]
            keep = keep & (moved >= 0) & (moved % step[n_batch + k] == 0) & (place < sizes[k])
            found.append(place)
        return masked(keep, data), or_padding(keep, jnp.stack(found, 1), sizes)

    data, indices = over_batch(one, n_batch, data, indices)
    return mat.with_parts(data, indices, sizes, indices_sorted=False)


def take(mat: Any, index: Any) -> Any:
    """Index with integers, slices, None and an ellipsis; the result is sparse."""
    items = list(index) if isinstance(index, tuple) else [index]
    if sum(item is Ellipsis for item in items) > 1:
        raise IndexError("an index can have one ellipsis ('...')")
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > mat.ndim:
        raise IndexError(f"{used} indices for an array with {mat.ndim} dimensions")
    if Ellipsis not in [item for item in items if isinstance(item, type(Ellipsis))]:
        items.append(Ellipsis)
    at = next(k for k, item in enumerate(items) if item is Ellipsis)
    items[at : at + 1] = [slice(None)] * (mat.ndim - used)
    starts: list[Any] = []
    counts, steps, reversed_, d = [], [], [], 0
    dropped: list[int] = []
    added: list[int] = []
    for item in items:
        if item is None:
            added.append(d - len(dropped) + len(added))
            continue
        size = mat.shape[d]
        if isinstance(item, slice):
            places = range(*item.indices(size))
            if places.step < 0:
                reversed_.append(d)
                places = places[::-1]
            starts.append(places.start if len(places) else 0)
            counts.append(len(places))
            steps.append(places.step)
        else:
            starts.append(_position(item, size, d))
            counts.append(1)
            steps.append(1)
            dropped.append(d)
        d += 1
    out = rev(_sliced(mat, starts, counts, steps), reversed_) if reversed_ else _sliced(mat, starts, counts, steps)
    out = squeeze(out, dimensions=dropped) if dropped else out
    if added:
        shape = list(out.shape)
        for axis in added:
            shape.insert(axis, 1)
        kept = [axis for axis in range(len(shape)) if axis not in added]
        out = broadcast_in_dim(out, shape=shape, broadcast_dimensions=kept)
    return out


def _position(item: Any, size: int, d: int) -> Any:
    if hasattr(item, "dtype") and not jnp.ndim(item) and jnp.issubdtype(item.dtype, jnp.integer):
        return jnp.clip(jnp.where(item < 0, item + size, item), 0, max(size - 1, 0))
    try:
        (position,) = sequence_of(item, "an index")
    except (TypeError, ValueError):
        raise NotImplementedError(
            f"a sparse array is indexed by integers, slices, None and '...', got {item!r}; index todense() with arrays"
        ) from None
    if not -size <= position < size:
        raise IndexError(f"index {position} out of bounds for axis {d} with size {size}")
    return position % size


# -- sums ----------------------------------------------------------------------------------------------------------


def reduce_sum(mat: Any, *, axes: Sequence[int]) -> Any:
    """Sum over dimensions; the result is sparse, with more than one stored element for a place."""
    dims = canonical(list(axes), mat.ndim, "bcoo_reduce_sum")
    n_batch, last = mat.n_batch, mat.n_batch + mat.n_sparse
    batch = [d for d in dims if d < n_batch]
    kept = [k for k in range(mat.n_sparse) if n_batch + k not in dims]
    sizes = tuple(mat.sparse_shape[k] for k in kept)
    dense = tuple(d - mat.n_sparse + 1 for d in dims if d >= last)
    data, indices = full_batches(mat) if batch else (mat.data, mat.indices)
    data = data.sum(dense, dtype=data.dtype) if dense else data
    if len(kept) < mat.n_sparse:

        def one(data: Any, indices: Any) -> tuple[Any, Any]:
            keep = in_bounds(indices, mat.sparse_shape)
            return masked(keep, data), or_padding(keep, selected(indices, kept), sizes)

        data, indices = over_batch(one, n_batch, data, indices)
    if batch:
        order = [d for d in range(n_batch) if d not in batch] + batch
        rest = [mat.shape[d] for d in order[: n_batch - len(batch)]]
        data = data.transpose(*order, *range(n_batch, data.ndim))
        indices = indices.transpose(*order, n_batch, n_batch + 1)
        nse = mat.nse * math.prod(mat.shape[d] for d in batch)
        data = data.reshape(*rest, nse, *data.shape[n_batch + 1 :])
        indices = indices.reshape(*rest, nse, len(kept))
    if not sizes:  # elements of one place: one is stored
        n_left = n_batch - len(batch)
        data = data.sum(n_left, keepdims=True, dtype=data.dtype)
        indices = (
            indices[(slice(None),) * n_left + (slice(0, 1),)] if indices.shape[n_left] else _one_row(indices, n_left)
        )
    unique = mat.unique_indices and not batch and len(kept) == mat.n_sparse
    ordered = mat.indices_sorted and not batch and kept == list(range(len(kept)))
    return mat.with_parts(data, indices, sizes, unique_indices=unique, indices_sorted=ordered)


def _one_row(indices: Any, n_batch: int) -> Any:
    return jnp.zeros((*indices.shape[:n_batch], 1, 0), indices.dtype)
