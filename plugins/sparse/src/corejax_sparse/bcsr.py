"""`BCSR`: matrices with stored elements in the order of rows, which are ranges of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import tree
from corejax_sparse import layout, products, structure
from corejax_sparse._base import JAXSparse, over_batch, sequence_of
from corejax_sparse.bcoo import BCOO
from corejax_sparse.indices import in_bounds, or_padding


@tree.register_pytree_node_class
class BCSR(JAXSparse):
    """A sparse matrix in the format of compressed rows, with batch and dense dimensions.

    Args:
        args: `(data, indices, indptr)`: `data[*batch, nse, *dense]`, columns `indices[*batch, nse]`, and the position
            of the first element of each row, and after the last one, `indptr[*batch, rows + 1]`.
        shape: the shape of the array.
        indices_sorted: whether columns are known to be in order in each row.
        unique_indices: whether the columns of a row are known to be different.

    Raises:
        ValueError: the shapes do not fit together.
    """

    data: Any
    indices: Any
    indptr: Any
    sparse_shape: tuple[int, int]

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        data, indices, indptr = map(jnp.asarray, args)
        shape = sequence_of(tuple(shape), "BCSR: shape")
        n_batch = indices.ndim - 1
        if n_batch < 0 or len(shape) < n_batch + 2 or indptr.ndim != n_batch + 1:
            raise ValueError(f"BCSR: {indices.shape=} and {indptr.shape=} do not fit to the shape {shape}")
        rows, nse, tail = shape[n_batch], indices.shape[-1], shape[n_batch + 2 :]
        if indptr.shape[-1] != rows + 1 or data.shape[n_batch:] != (nse, *tail):
            raise ValueError(
                f"BCSR: {data.shape=}, {indices.shape=} and {indptr.shape=} do not fit to the shape {shape}, which has "
                f"{rows} rows"
            )
        for name, x in (("data", data), ("indices", indices), ("indptr", indptr)):
            if any(n not in (1, size) for n, size in zip(x.shape[:n_batch], shape[:n_batch], strict=True)):
                raise ValueError(f"BCSR: the batch dimensions of {name}, {x.shape}, do not fit to the shape {shape}")
        data = jnp.broadcast_to(data, shape[:n_batch] + data.shape[n_batch:])
        self.data, self.indices, self.indptr = data, indices, indptr
        self.sparse_shape = (rows, shape[n_batch + 1])
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the leaves, and what is static."""
        return (self.data, self.indices, self.indptr), (self.sparse_shape, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, aux_data: tuple[Any, ...], children: Sequence[Any]) -> BCSR:
        """Return an array with other leaves, which may be anything."""
        self = object.__new__(cls)
        self.data, self.indices, self.indptr = children
        self.sparse_shape, self.indices_sorted, self.unique_indices = aux_data
        return self

    def with_data(self, data: Any, stacked: bool = False) -> BCSR:
        """Return an array of the same places with other elements; with `stacked`, for each index of leading axes."""
        more = (1,) * (data.ndim - self.data.ndim) if stacked else ()
        _, static = self.tree_flatten()
        return BCSR.tree_unflatten(static, (data, *(x.reshape(*more, *x.shape) for x in (self.indices, self.indptr))))

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions."""
        return int(self.indices.ndim - 1)

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions, 2."""
        return 2

    @property
    def n_dense(self) -> int:
        """The number of dense dimensions."""
        return int(self.data.ndim - self.n_batch - 1)

    @property
    def nse(self) -> int:
        """The number of stored elements of each batch."""
        return int(self.indices.shape[-1])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        n = self.n_batch
        batch = np.broadcast_shapes(*(tuple(x.shape[:n]) for x in (self.data, self.indices, self.indptr)))
        return (*batch, *self.sparse_shape, *self.data.shape[n + 1 :])

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """Return the sparse array of the elements of a dense array that are not zero, as `BCOO.fromdense`."""
        if jnp.ndim(mat) - n_dense - n_batch != 2:
            raise ValueError(
                f"BCSR.fromdense: {jnp.shape(mat)=} must have two dimensions beside {n_batch=}, {n_dense=}"
            )
        return cls.from_bcoo(BCOO.fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch))

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """Return a BCOO array in the format of compressed rows; its elements are sorted.

        Raises:
            NotImplementedError: the array does not have two sparse dimensions.
        """
        if arr.n_sparse != 2:
            raise NotImplementedError(f"BCSR.from_bcoo: {arr!r} has {arr.n_sparse} sparse dimensions, not 2")
        sizes = arr.sparse_shape
        indices = over_batch(lambda i: or_padding(in_bounds(i, sizes), i, sizes), arr.n_batch, arr.indices)
        arr = layout.sort_indices(arr.with_parts(arr.data, indices, indices_sorted=False))
        edges = jnp.arange(sizes[0] + 1)
        indptr = over_batch(lambda i: jnp.searchsorted(i[:, 0], edges).astype(i.dtype), arr.n_batch, arr.indices)
        static = (sizes, True, arr.unique_indices)
        return cls.tree_unflatten(static, (arr.data, arr.indices[..., 1], indptr))

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCSR:
        """Return the array of a matrix of `scipy.sparse`; there are no batch or dense dimensions."""
        if n_dense or n_batch:
            raise NotImplementedError("BCSR.from_scipy_sparse: n_batch and n_dense must be 0")
        csr = mat.tocsr()
        dtype = np.int32 if index_dtype is None else index_dtype
        return cls((csr.data, csr.indices.astype(dtype), csr.indptr.astype(dtype)), shape=csr.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], **options: Any) -> BCSR:
        return cls.from_bcoo(BCOO._empty(shape, **options))

    def to_bcoo(self) -> BCOO:
        """Return the array with an index for each element."""

        def places(columns: Any, indptr: Any) -> Any:
            rows = jnp.searchsorted(indptr, jnp.arange(columns.shape[0]), side="right") - 1
            return jnp.stack([rows.astype(columns.dtype), columns], 1)

        indices = over_batch(places, self.n_batch, self.indices, self.indptr)
        static = (self.sparse_shape, self.indices_sorted, self.unique_indices)
        return BCOO.tree_unflatten(static, (self.data, indices))

    def todense(self) -> Any:
        """Return the dense array."""
        return self.to_bcoo().todense()

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """Return the array with one stored element for each place, as `BCOO.sum_duplicates`."""
        return self.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """Raise NotImplementedError: rows are not columns; `to_bcoo()` has a transpose."""
        raise NotImplementedError("transpose of BCSR; to_bcoo().transpose() is the transpose in coordinate format")

    def __neg__(self) -> BCSR:
        return self.with_data(-self.data)

    def __mul__(self, other: Any) -> BCSR:
        return self.from_bcoo(self.to_bcoo() * (other.to_bcoo() if isinstance(other, BCSR) else other))

    __rmul__ = __mul__

    def __add__(self, other: Any) -> BCSR:
        return self.from_bcoo(self.to_bcoo() + (other.to_bcoo() if isinstance(other, BCSR) else other))

    def __matmul__(self, other: Any) -> Any:
        out = self.to_bcoo() @ (other.to_bcoo() if isinstance(other, BCSR) else other)
        return self.from_bcoo(out) if isinstance(out, BCOO) and out.n_sparse == 2 else out

    def __rmatmul__(self, other: Any) -> Any:
        return other @ self.to_bcoo()


def fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = np.int32
) -> BCSR:
    """Return the sparse array of the elements of a dense array that are not zero, as `BCSR.fromdense`."""
    return BCSR.fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)


def todense(mat: BCSR) -> Any:
    """Return the dense array."""
    return mat.todense()


def extract(indices: Any, indptr: Any, mat: Any) -> Any:
    """Return the elements of a dense array at the places of compressed rows, `[*batch, nse, *dense]`."""
    indices, indptr, mat = map(jnp.asarray, (indices, indptr, mat))
    n_batch = indices.ndim - 1
    data = jnp.zeros((*indices.shape, *mat.shape[n_batch + 2 :]), mat.dtype)
    places = BCSR((data, indices, indptr), shape=mat.shape).to_bcoo().indices
    return layout.values_at(places, mat, n_batch)


def sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Return the array with one stored element for each place."""
    return mat.sum_duplicates(nse)


def dot_general(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: Any = None, preferred_element_type: Any = None,
    out_sharding: None = None,
) -> Any:  # fmt: skip
    """Contract a BCSR array with a dense array, as `bcoo_dot_general`."""
    lhs, rhs = (x.to_bcoo() if isinstance(x, BCSR) else x for x in (lhs, rhs))
    return products.dot_general(
        lhs, rhs, dimension_numbers=dimension_numbers, precision=precision,
        preferred_element_type=preferred_element_type, out_sharding=out_sharding,
    )  # fmt: skip


def concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Concatenate arrays along a dimension, as `bcoo_concatenate`."""
    return BCSR.from_bcoo(structure.concatenate([mat.to_bcoo() for mat in operands], dimension=dimension))


def broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: None = None
) -> BCSR:
    """Add dimensions, and repeat elements along them, as `bcoo_broadcast_in_dim`; new ones are batch dimensions."""
    n_batch = len(tuple(shape)) - 2 - mat.n_dense
    out = structure.broadcast_in_dim(
        mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding
    )
    return BCSR.from_bcoo(layout.update_layout(out, n_batch=n_batch, on_inefficient=None))
