"""Sparse arrays that are made of nothing: empty ones, identity matrices and random ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import corejax
import corejax.numpy as jnp
from corejax import random
from corejax_sparse._base import JAXSparse, concrete_size, sequence_of
from corejax_sparse.bcoo import BCOO
from corejax_sparse.bcsr import BCSR
from corejax_sparse.matrices import COO, CSC, CSR

_FORMATS = {"bcoo": BCOO, "bcsr": BCSR, "coo": COO, "csr": CSR, "csc": CSC}


def todense(arr: Any) -> Any:
    """Return the dense array of a sparse one, and any other array unchanged."""
    return arr.todense() if isinstance(arr, JAXSparse) else jnp.asarray(arr)


def _format(name: str, sparse_format: str) -> Any:
    if sparse_format not in _FORMATS:
        raise ValueError(f"{name}: sparse_format must be one of {', '.join(_FORMATS)}, got {sparse_format!r}")
    return _FORMATS[sparse_format]


def empty(
    shape: Sequence[int], dtype: Any = None, index_dtype: Any = "int32", sparse_format: str = "bcoo", **kwds: Any
) -> Any:
    """Return a sparse array of zeros, of which none are stored.

    Args:
        shape: the shape.
        dtype: the dtype of the elements, by default the default floating-point dtype.
        index_dtype: the dtype of the indices.
        sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
        kwds: `n_batch`, `n_dense` and `nse`, the number of elements with padding, of "bcoo" and "bcsr".
    """
    kind = _format("empty", sparse_format)
    return kind._empty(sequence_of(tuple(shape), "empty: shape"), dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = None,
    index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
    n_batch: int = 0,
    n_dense: int = 0,
) -> Any:
    """Return a sparse matrix with ones on a diagonal, as `numpy.eye`.

    Args:
        N: the number of rows.
        M: the number of columns, by default that of rows.
        k: the diagonal; positive ones are above the main diagonal.
        dtype: the dtype of the elements, by default the default floating-point dtype.
        index_dtype: the dtype of the indices.
        sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
        n_batch: the number of batch dimensions.
        n_dense: the number of dense dimensions.
    """
    kind, columns = _format("eye", sparse_format), N if M is None else M
    start, count = (-min(k, 0), max(k, 0)), max(0, min(N + min(k, 0), columns - max(k, 0)))
    places = jnp.arange(count)[:, None] + jnp.asarray(start)
    out = BCOO(
        (jnp.ones(count, dtype), places.astype(index_dtype)),
        shape=(N, columns),
        indices_sorted=True,
        unique_indices=True,
    )
    if n_batch or n_dense:
        out = out.update_layout(n_batch=n_batch, n_dense=n_dense, on_inefficient=None)  # type: ignore[arg-type]  # any callable
        if n_batch and not n_batch == n_dense == 1:
            out = out.sum_duplicates(nse=min(1, out.nse))
    return out if kind is BCOO else kind.from_bcoo(out)


def random_bcoo(
    key: Any,
    shape: Sequence[int],
    *,
    dtype: Any = None,
    indices_dtype: Any = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    generator: Callable[..., Any] = random.uniform,
    **kwds: Any,
) -> BCOO:
    """Return an array with random elements at random places.

    Args:
        key: a key.
        shape: the shape.
        dtype: the dtype of the elements, by default the generator's.
        indices_dtype: the dtype of the indices, by default int32.
        nse: the number of stored elements of each batch, or below 1 the part of all elements.
        n_batch: the number of batch dimensions.
        n_dense: the number of dense dimensions.
        unique_indices: whether places are different.
        generator: draws the elements: `generator(key, shape, dtype, **kwds)`.
        kwds: passed to the generator.

    Raises:
        ValueError: there are fewer places than stored elements, or too few dimensions.
    """
    shape = sequence_of(tuple(shape), "random_bcoo: shape")
    n_sparse = len(shape) - n_batch - n_dense
    if min(n_sparse, n_batch, n_dense) < 0:
        raise ValueError(f"random_bcoo: n_batch={n_batch} and n_dense={n_dense} exceed the dimensions of {shape}")
    batch, sizes, tail = shape[:n_batch], shape[n_batch : n_batch + n_sparse], shape[n_batch + n_sparse :]
    total = math.prod(sizes)
    count = math.ceil(nse * total) if 0 < nse < 1 else concrete_size(nse, "random_bcoo")
    if unique_indices and count > total:
        raise ValueError(f"random_bcoo: {count} different places do not exist in sparse dimensions {sizes}")
    for_places, for_data = random.split(key)

    def places(key: Any) -> Any:
        chosen = random.choice(key, total, (count,), replace=not unique_indices) if count else jnp.zeros(0, int)
        found = jnp.unravel_index(chosen, sizes) if sizes else ()
        stacked = jnp.stack(found, 1) if found else jnp.zeros((count, 0), int)
        return stacked.astype("int32" if indices_dtype is None else indices_dtype)

    keys = random.split(for_places, math.prod(batch)) if batch else for_places
    indices = corejax.vmap(places)(keys) if batch else places(keys)
    drawn = generator(for_data, (*batch, count, *tail), **({} if dtype is None else {"dtype": dtype}), **kwds)
    indices = indices.reshape(*batch, count, n_sparse)
    return BCOO((drawn, indices), shape=shape, unique_indices=unique_indices)
