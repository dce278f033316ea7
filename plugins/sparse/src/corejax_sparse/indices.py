"""Functions of the indices of one batch: `indices[nse, n_sparse]`, rows that are out of bounds being padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import corejax.numpy as jnp


def columns(indices: Any) -> tuple[Any, ...]:
    """Return the indices along each sparse dimension."""
    return tuple(indices[:, k] for k in range(indices.shape[1]))


def selected(indices: Any, kept: Sequence[int]) -> Any:
    """Return the indices along some of the sparse dimensions."""
    if list(kept) == list(range(indices.shape[1])):
        return indices
    return jnp.concatenate([indices[:, k : k + 1] for k in kept] or [indices[:, :0]], 1)


def in_bounds(indices: Any, sizes: Sequence[int]) -> Any:
    """Return whether each row is the place of an element; the others are padding."""
    limits = jnp.asarray(sizes, indices.dtype)
    return ((indices >= 0) & (indices < limits)).all(1)


def padding(indices: Any, sizes: Sequence[int]) -> Any:
    """Return the row of indices that marks padding: the sizes, which are out of bounds."""
    return jnp.asarray(sizes, indices.dtype)


def or_padding(keep: Any, indices: Any, sizes: Sequence[int]) -> Any:
    """Return indices with padding where `keep` is False."""
    return jnp.where(keep[:, None], indices, padding(indices, sizes))


def order_of(indices: Any) -> Any:
    """Return the permutation that sorts rows in lexicographic order; equal rows keep their order."""
    if not indices.shape[1]:
        return jnp.arange(indices.shape[0])
    return jnp.lexsort(columns(indices)[::-1])


def are_new(ordered: Any) -> Any:
    """Return whether each of sorted rows differs from the row before."""
    different = (ordered[1:] != ordered[:-1]).any(1)
    return jnp.concatenate([jnp.ones(min(1, ordered.shape[0]), bool), different])


def are_first(indices: Any) -> Any:
    """Return whether each row is the first of those that are equal to it."""
    order = order_of(indices)
    return jnp.zeros(indices.shape[0], bool).at[order].set(are_new(indices[order]))


def matches(left: Any, right: Any) -> Any:
    """Return a matrix that says which rows are equal."""
    return (left[:, None, :] == right[None, :, :]).all(2)


def gathered(dense: Any, at: tuple[Any, ...]) -> Any:
    """Return the parts of a dense array at places along its leading dimensions, 0 out of bounds."""
    if 0 in dense.shape[: len(at)]:
        return jnp.zeros((*at[0].shape, *dense.shape[len(at) :]), dense.dtype)
    return dense.at[at].get(mode="fill", fill_value=0)


def added(shape: Sequence[int], at: Any, data: Any) -> Any:
    """Return zeros with the data added at places; those out of bounds are dropped. The sum of booleans is their or."""
    out = jnp.zeros(tuple(shape), data.dtype).at[at]
    return out.max(data, mode="drop") if data.dtype == bool else out.add(data, mode="drop")


def spread_to(keep: Any, data: Any) -> Any:
    """Return a mask of stored elements as one of `data`, which may have dense dimensions."""
    return keep.reshape(keep.shape + (1,) * (data.ndim - keep.ndim))


def masked(keep: Any, data: Any) -> Any:
    """Return the data with 0 where `keep` is False."""
    return jnp.where(spread_to(keep, data), data, jnp.zeros((), data.dtype))
