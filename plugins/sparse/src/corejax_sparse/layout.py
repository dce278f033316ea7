"""How elements of BCOO arrays are stored: conversions from and to dense arrays, order, duplicates, layouts."""

from __future__ import annotations

import warnings
from typing import Any

import corejax
import corejax.numpy as jnp
from corejax_sparse._base import (
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    concrete_size,
    over_batch,
)
from corejax_sparse.indices import (
    added,
    are_first,
    are_new,
    columns,
    gathered,
    in_bounds,
    masked,
    or_padding,
    order_of,
    padding,
)

# -- dense arrays --------------------------------------------------------------------------------------------------


def todense(mat: Any) -> Any:
    """Return the dense array: stored elements of one place are added, and padding is dropped."""
    sizes, tail = mat.sparse_shape, mat.dense_shape

    def one(data: Any, indices: Any) -> Any:
        if not sizes:
            return data.any(0) if data.dtype == bool else data.sum(0, dtype=data.dtype)
        return added(sizes + tail, columns(indices), data)

    return over_batch(one, mat.n_batch, mat.data, mat.indices)


def values_at(indices: Any, dense: Any, n_batch: int) -> Any:
    """Return the elements of a dense array at indices, 0 for padding."""

    def one(indices: Any, dense: Any) -> Any:
        if not indices.shape[1]:
            return jnp.broadcast_to(dense, (indices.shape[0], *dense.shape))
        return gathered(dense, columns(indices))

    return over_batch(one, n_batch, indices, dense)


def parts_of_dense(dense: Any, nse: int | None, n_batch: int, n_dense: int, index_dtype: Any) -> tuple[Any, Any]:
    """Return the data and indices of the elements of a dense array that are not zero."""
    n_sparse = dense.ndim - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse) < 0:
        raise ValueError(f"fromdense: n_batch={n_batch} and n_dense={n_dense} exceed the dimensions of {dense.shape}")
    mask = dense != 0
    if n_dense:
        mask = mask.any(tuple(range(dense.ndim - n_dense, dense.ndim)))
    counts = mask.sum(tuple(range(n_batch, mask.ndim)))
    if nse is None:
        nse = concrete_size(counts.max() if counts.size else 0, "fromdense")
    nse = concrete_size(nse, "fromdense")

    def one(mask: Any, dense: Any) -> tuple[Any, Any]:
        if not mask.ndim:
            keep = jnp.arange(nse) < mask
            return masked(keep, jnp.broadcast_to(dense, (nse, *dense.shape))), jnp.zeros((nse, 0), index_dtype)
        found = jnp.nonzero(mask, size=nse, fill_value=tuple(mask.shape))
        indices = jnp.stack(found, 1).astype(index_dtype)
        return values_at(indices, dense, 0), indices

    data, indices = over_batch(one, n_batch, mask, dense)
    return data, indices


def extract(sparr: Any, arr: Any, *, assume_unique: bool | None = None) -> Any:
    """Return a BCOO array with the places of `sparr` and the elements of a dense array.

    Args:
        sparr: a BCOO array.
        arr: an array of the same shape.
        assume_unique: True takes the element for each stored place; False only for the first of equal places, so that
            the result's dense array has it once. By default `sparr.unique_indices`.

    Raises:
        TypeError: `sparr` is not a BCOO array.
        ValueError: the shapes differ.
    """
    if not hasattr(sparr, "sparse_shape"):
        raise TypeError(f"bcoo_extract: the first argument must be a BCOO array, got {type(sparr).__name__}")
    arr = jnp.asarray(arr)
    if arr.shape != sparr.shape:
        raise ValueError(f"bcoo_extract: the shapes {sparr.shape} and {arr.shape} differ")
    data = values_at(sparr.indices, arr, sparr.n_batch)
    if not (sparr.unique_indices if assume_unique is None else assume_unique):
        data = over_batch(lambda data, indices: masked(are_first(indices), data), sparr.n_batch, data, sparr.indices)
    return sparr.with_parts(data, sparr.indices)


# -- order and duplicates ------------------------------------------------------------------------------------------


def sort_indices(mat: Any) -> Any:
    """Return the array with its stored elements in the lexicographic order of their indices."""

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        order = order_of(indices)
        return data[order], indices[order]

    if mat.indices_sorted:
        return mat
    data, indices = over_batch(one, mat.n_batch, mat.data, mat.indices)
    return mat.with_parts(data, indices, indices_sorted=True)


def sum_duplicates(mat: Any, nse: int | None = None, remove_zeros: bool = True) -> Any:
    """Return the array with sorted indices and one stored element for each place.

    Args:
        mat: a BCOO array.
        nse: the number of stored elements; by default the smallest one, which must not depend on traced values.
        remove_zeros: whether stored zeros are dropped, too.
    """
    sizes = mat.sparse_shape

    def ordered(data: Any, indices: Any) -> tuple[Any, Any, Any]:
        keep = in_bounds(indices, sizes)
        if remove_zeros:
            keep = keep & (data != 0).any(tuple(range(1, data.ndim)))
        indices = or_padding(keep, indices, sizes)
        order = order_of(indices)
        keep, indices = keep[order], indices[order]
        # Without sparse dimensions padding looks like the others, so it is marked here; it adds zeros.
        return masked(keep, data[order]), indices, are_new(indices) & (keep if sizes else keep.any())

    data, indices, new = over_batch(ordered, mat.n_batch, mat.data, mat.indices)
    if nse is None:
        counts = new.sum(-1)
        nse = concrete_size(counts.max() if counts.size else 0, "sum_duplicates")
    size = concrete_size(nse, "sum_duplicates")

    def summed(data: Any, indices: Any, new: Any) -> tuple[Any, Any]:
        place = jnp.cumsum(new) - 1
        place = jnp.where(place < 0, size, place)
        if sizes:
            place = jnp.where(in_bounds(indices, sizes), place, size)
        out = added((size, *data.shape[1:]), place, data)
        empty = jnp.broadcast_to(padding(indices, sizes), (size, len(sizes)))
        return out, empty.at[place].set(indices, mode="drop")

    data, indices = over_batch(summed, mat.n_batch, data, indices, new)
    return mat.with_parts(data, indices, indices_sorted=True, unique_indices=True)


# -- layouts -------------------------------------------------------------------------------------------------------


def update_layout(
    mat: Any, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> Any:
    """Return the same array with other numbers of batch and dense dimensions.

    Args:
        mat: a BCOO array.
        n_batch: the number of leading dimensions for each element of which elements are stored apart.
        n_dense: the number of trailing dimensions along which all elements are stored.
        on_inefficient: what to do if more elements have to be stored: "error", "warn" or None.

    Raises:
        SparseEfficiencyError: more elements would have to be stored, and `on_inefficient` is "error".
        ValueError: the numbers exceed the dimensions, or `on_inefficient` is something else.
    """
    n_batch = mat.n_batch if n_batch is None else n_batch
    n_dense = mat.n_dense if n_dense is None else n_dense
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(
            f"bcoo_update_layout: n_batch={n_batch} and n_dense={n_dense} exceed the {mat.ndim} dimensions"
        )
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"bcoo_update_layout: on_inefficient must be 'error', 'warn' or None, got {on_inefficient!r}")
    if n_batch > mat.n_batch or n_dense > mat.n_dense:
        text = (
            f"bcoo_update_layout: from n_batch={mat.n_batch}, n_dense={mat.n_dense} to n_batch={n_batch}, "
            f"n_dense={n_dense} stores zeros; on_inefficient=None allows it"
        )
        if on_inefficient == "error":
            raise SparseEfficiencyError(text)
        if on_inefficient == "warn":
            warnings.warn(text, SparseEfficiencyWarning, stacklevel=3)
    while mat.n_dense > n_dense:
        mat = _dense_to_sparse(mat)
    while mat.n_batch > n_batch:
        mat = _batch_to_sparse(mat)
    while mat.n_batch < n_batch:
        mat = _sparse_to_batch(mat)
    while mat.n_dense < n_dense:
        mat = _sparse_to_dense(mat)
    return mat


def _dense_to_sparse(mat: Any) -> Any:
    """Make the first dense dimension the last sparse one."""
    size = mat.dense_shape[0]

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        nse = indices.shape[0]
        column = jnp.tile(jnp.arange(size, dtype=indices.dtype), nse)
        indices = jnp.concatenate([jnp.repeat(indices, size, 0), column[:, None]], 1)
        return data.reshape(nse * size, *data.shape[2:]), indices

    data, indices = over_batch(one, mat.n_batch, mat.data, mat.indices)
    return mat.with_parts(data, indices, (*mat.sparse_shape, size))


def _batch_to_sparse(mat: Any) -> Any:
    """Make the last batch dimension the first sparse one."""
    kept, size = mat.n_batch - 1, mat.shape[mat.n_batch - 1]
    data, indices = full_batches(mat)

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        nse, n_sparse = indices.shape[1:]
        column = jnp.repeat(jnp.arange(size, dtype=indices.dtype), nse)
        indices = jnp.concatenate([column[:, None], indices.reshape(size * nse, n_sparse)], 1)
        return data.reshape(size * nse, *data.shape[2:]), indices

    data, indices = over_batch(one, kept, data, indices)
    return mat.with_parts(data, indices, (size, *mat.sparse_shape))


def _sparse_to_batch(mat: Any) -> Any:
    """Make the first sparse dimension the last batch one: each element of it stores all, most of it padding."""
    size, sizes = mat.sparse_shape[0], mat.sparse_shape[1:]

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        def element(i: Any) -> tuple[Any, Any]:
            keep = indices[:, 0] == i
            return masked(keep, data), or_padding(keep, indices[:, 1:], sizes)

        return corejax.vmap(element)(jnp.arange(size, dtype=indices.dtype))

    data, indices = over_batch(one, mat.n_batch, mat.data, mat.indices)
    return mat.with_parts(data, indices, sizes, unique_indices=mat.unique_indices and bool(sizes))


def _sparse_to_dense(mat: Any) -> Any:
    """Make the last sparse dimension the first dense one."""
    sizes, size = mat.sparse_shape[:-1], mat.sparse_shape[-1]

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        nse = indices.shape[0]
        out = jnp.zeros((nse, size, *data.shape[1:]), data.dtype)
        out = out.at[jnp.arange(nse), indices[:, -1]].set(data, mode="drop")
        keep = in_bounds(indices, mat.sparse_shape)
        return out, or_padding(keep, indices[:, :-1], sizes)

    data, indices = over_batch(one, mat.n_batch, mat.data, mat.indices)
    return mat.with_parts(data, indices, sizes, unique_indices=False)


def full_batches(mat: Any) -> tuple[Any, Any]:
    """Return data and indices, of which none is the same for several elements of a batch."""
    batch = mat.shape[: mat.n_batch]
    data, indices = mat.data, mat.indices
    data = jnp.broadcast_to(data, batch + data.shape[mat.n_batch :])
    return data, jnp.broadcast_to(indices, batch + indices.shape[mat.n_batch :])
