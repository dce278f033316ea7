"""`BCOO`: arrays of which only some elements are stored, with an index for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import tree
from corejax_sparse import layout, products, structure
from corejax_sparse._base import JAXSparse, canonical, sequence_of


@tree.register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array in coordinate format, with batch and dense dimensions.

    Its shape consists of `n_batch` batch dimensions, `n_sparse` sparse ones and `n_dense` dense ones. Each element of a
    batch stores `nse` elements. Stored elements with equal indices are added. Those with indices out of bounds are
    padding, which counts as absent. An array is a pytree with the leaves `data` and `indices`: `vmap` and `scan` take
    and give batch dimensions.

    Args:
        args: `(data, indices)`: `data[*batch, nse, *dense]` and integers `indices[*batch, nse, n_sparse]`. Either may
            have size 1 along a batch dimension.
        shape: the shape of the array.
        indices_sorted: whether indices are known to be in lexicographic order.
        unique_indices: whether indices are known to be different, except for padding.

    Raises:
        TypeError: the indices are not integers.
        ValueError: the shapes do not fit together.
    """

    data: Any
    indices: Any
    sparse_shape: tuple[int, ...]

    def __init__(
        self, args: tuple[Any, Any], *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ) -> None:
        data, indices = map(jnp.asarray, args)
        shape = sequence_of(tuple(shape), "BCOO: shape")
        if not jnp.issubdtype(indices.dtype, jnp.integer):
            raise TypeError(f"BCOO: indices must be integers, got {indices.dtype.name}")
        if indices.ndim < 2:
            raise ValueError(f"BCOO: indices must have the shape [*batch, nse, n_sparse], got {indices.shape}")
        n_batch, (nse, n_sparse) = indices.ndim - 2, indices.shape[-2:]
        batch, tail = shape[:n_batch], shape[n_batch + n_sparse :]
        if len(shape) < n_batch + n_sparse:
            raise ValueError(f"BCOO: indices of shape {indices.shape} are for more dimensions than {shape} has")
        fits = data.ndim == n_batch + 1 + len(tail) and data.shape[n_batch:] == (nse, *tail)
        if not fits or any(n not in (1, size) for n, size in zip(data.shape, batch, strict=False)):
            raise ValueError(
                f"BCOO: data of shape {data.shape} do not fit: for indices {indices.shape} and the shape {shape} "
                f"it should be {(*batch, nse, *tail)}"
            )
        if any(n not in (1, size) for n, size in zip(indices.shape, batch, strict=False)):
            raise ValueError(f"BCOO: the batch dimensions of indices, {indices.shape}, do not fit to the shape {shape}")
        if np.broadcast_shapes(data.shape[:n_batch], indices.shape[:n_batch]) != batch:
            data = jnp.broadcast_to(data, batch + data.shape[n_batch:])
        self.data, self.indices, self.sparse_shape = data, indices, shape[n_batch : n_batch + n_sparse]
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)

    # The shape is that of the leaves, so that `vmap` and `scan` take batch dimensions off and put them on.

    def tree_flatten(self) -> tuple[tuple[Any, Any], tuple[Any, ...]]:
        """Return the leaves, and what is static."""
        return (self.data, self.indices), (self.sparse_shape, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, aux_data: tuple[Any, ...], children: Sequence[Any]) -> BCOO:
        """Return an array with other leaves, which may be anything."""
        self = object.__new__(cls)
        self.data, self.indices = children
        self.sparse_shape, self.indices_sorted, self.unique_indices = aux_data
        return self

    def with_parts(self, data: Any, indices: Any, sizes: Sequence[int] | None = None, **flags: bool) -> BCOO:
        """Return an array with other parts. If the sizes of sparse dimensions change, nothing is known of the indices.

        Args:
            data: the stored elements.
            indices: their indices.
            sizes: the sizes of the sparse dimensions, by default those of this array.
            flags: `indices_sorted` and `unique_indices`, by default those of this array.
        """
        known = sizes is None
        ordered = flags.get("indices_sorted", known and self.indices_sorted)
        unique = flags.get("unique_indices", known and self.unique_indices)
        sparse = self.sparse_shape if sizes is None else tuple(sizes)
        return BCOO.tree_unflatten((sparse, ordered, unique), (data, indices))

    def with_data(self, data: Any, stacked: bool = False) -> BCOO:
        """Return an array of the same places with other elements; with `stacked`, for each index of leading axes."""
        more = (1,) * (data.ndim - self.data.ndim) if stacked else ()
        return self.with_parts(data, self.indices.reshape(*more, *self.indices.shape))

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions."""
        return int(self.indices.ndim - 2)

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions."""
        return int(self.indices.shape[-1])

    @property
    def n_dense(self) -> int:
        """The number of dense dimensions."""
        return int(self.data.ndim - self.n_batch - 1)

    @property
    def nse(self) -> int:
        """The number of stored elements of each batch."""
        return int(self.indices.shape[-2])

    @property
    def dense_shape(self) -> tuple[int, ...]:
        """The sizes of the dense dimensions."""
        return tuple(self.data.shape[self.n_batch + 1 :])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        n = self.n_batch
        batch = np.broadcast_shapes(tuple(self.data.shape[:n]), tuple(self.indices.shape[:n]))
        return (*batch, *self.sparse_shape, *self.dense_shape)

    # -- conversions

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """Return the sparse array of the elements of a dense array that are not zero.

        Args:
            mat: the dense array.
            nse: the number of elements to store, by default the smallest. It must be given if `mat` is traced.
            index_dtype: the dtype of the indices.
            n_dense: the number of dense dimensions.
            n_batch: the number of batch dimensions.
        """
        mat = jnp.asarray(mat)
        parts = layout.parts_of_dense(mat, nse, n_batch, n_dense, index_dtype)
        return cls(parts, shape=mat.shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCOO:
        """Return the array of a matrix of `scipy.sparse`; there are no batch or dense dimensions."""
        if n_dense or n_batch:
            raise NotImplementedError("BCOO.from_scipy_sparse: n_batch and n_dense must be 0")
        coo = mat.tocoo()
        indices = np.stack([coo.row, coo.col], 1).astype(np.int32 if index_dtype is None else index_dtype)
        return cls((coo.data, indices), shape=coo.shape)

    @classmethod
    def _empty(
        cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32", n_dense: int = 0,
        n_batch: int = 0, nse: int = 0,
    ) -> BCOO:  # fmt: skip
        shape = tuple(shape)
        n_sparse = len(shape) - n_batch - n_dense
        if min(n_sparse, n_batch, n_dense) < 0:
            raise ValueError(f"empty: n_batch={n_batch} and n_dense={n_dense} exceed the dimensions of {shape}")
        batch, sizes, tail = shape[:n_batch], shape[n_batch : n_batch + n_sparse], shape[n_batch + n_sparse :]
        indices = jnp.broadcast_to(jnp.asarray(sizes, index_dtype), (*batch, nse, n_sparse))
        data = jnp.zeros((*batch, nse, *tail), dtype)
        return cls((data, indices), shape=shape, indices_sorted=True, unique_indices=True)

    def todense(self) -> Any:
        """Return the dense array: stored elements of one place are added."""
        return layout.todense(self)

    def astype(self, dtype: Any) -> BCOO:
        """Convert the elements."""
        return self.with_parts(self.data.astype(dtype), self.indices)

    # -- structure

    def sort_indices(self) -> BCOO:
        """Return the array with its stored elements in the order of their indices."""
        return layout.sort_indices(self)  # type: ignore[no-any-return]  # of untyped functions

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """Return the array with sorted indices and one stored element for each place.

        Args:
            nse: the number of stored elements, by default the smallest. It must be given if the array is traced.
            remove_zeros: whether stored zeros are dropped, too.
        """
        return layout.sum_duplicates(self, nse, remove_zeros)  # type: ignore[no-any-return]  # of untyped functions

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str = "error"
    ) -> BCOO:
        """Return the same array with other numbers of batch and dense dimensions, as `bcoo_update_layout`."""
        return layout.update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)  # type: ignore[no-any-return]  # of untyped functions

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """Permute the dimensions; by default reverse them."""
        order = tuple(range(self.ndim))[::-1] if axes is None else canonical(axes, self.ndim, "transpose")
        return structure.transpose(self, permutation=order)  # type: ignore[no-any-return]  # of untyped functions

    def reshape(self, *shape: Any) -> BCOO:
        """Reshape batch, sparse and dense dimensions, each by themselves."""
        sizes = shape[0] if len(shape) == 1 else shape
        return structure.reshape(self, new_sizes=sequence_of(sizes, "reshape"))  # type: ignore[no-any-return]  # of untyped functions

    def sum(self, axis: Any = None) -> Any:
        """Sum over dimensions; the result is sparse, except for the sum of all elements."""
        out = structure.reduce_sum(self, axes=canonical(axis, self.ndim, "sum"))
        return out if out.shape else out.todense()

    def __getitem__(self, index: Any) -> BCOO:
        return structure.take(self, index)  # type: ignore[no-any-return]  # of untyped functions

    def __iter__(self) -> Iterator[BCOO]:
        return (self[i] for i in range(len(self)))

    # -- operators

    def _with_data(self, f: Callable[[Any], Any]) -> BCOO:
        """Apply a function that maps sums to sums."""
        return self.with_parts(f(self.data), self.indices)

    def __neg__(self) -> BCOO:
        return self._with_data(lambda x: -x)

    def __pos__(self) -> BCOO:
        return self

    def __add__(self, other: Any) -> BCOO:
        if not isinstance(other, BCOO):
            raise NotImplementedError("addition of a sparse and a dense array; call todense() or BCOO.fromdense first")
        return products.add(self, other)  # type: ignore[no-any-return]  # of untyped functions

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __mul__(self, other: Any) -> BCOO:
        by = products.multiply_sparse if isinstance(other, BCOO) else products.multiply_dense
        return by(self, other)  # type: ignore[no-any-return]  # of untyped functions

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> BCOO:
        if isinstance(other, JAXSparse):
            raise NotImplementedError("division by a sparse array, with 0 for absent elements")
        return products.multiply_dense(self, 1 / jnp.asarray(other))  # type: ignore[no-any-return]  # of untyped functions

    def __pow__(self, exponent: Any) -> BCOO:
        if not isinstance(exponent, int) or exponent < 1:
            raise NotImplementedError(f"a sparse array to a power that is no positive int, {exponent!r}")
        mat = self if self.unique_indices else self.sum_duplicates(self.nse, remove_zeros=False)
        return mat._with_data(lambda x: x**exponent)

    def __abs__(self) -> BCOO:
        mat = self if self.unique_indices else self.sum_duplicates(self.nse, remove_zeros=False)
        return mat._with_data(jnp.abs)

    def __matmul__(self, other: Any) -> Any:
        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(other, self)


def matmul(lhs: Any, rhs: Any) -> Any:
    """Multiply matrices or stacks of matrices, of which one or both are sparse."""
    lhs, rhs = (x if isinstance(x, BCOO) else jnp.asarray(x) for x in (lhs, rhs))
    if not lhs.ndim or not rhs.ndim:
        raise ValueError("matmul: the operands must have dimensions; `*` multiplies by scalars")
    batch = max(0, min(lhs.ndim, rhs.ndim) - 2)
    right = max(0, rhs.ndim - 2)
    if min(lhs.ndim, rhs.ndim) > 1 and lhs.shape[:-2] != rhs.shape[:-2] and batch:
        raise NotImplementedError(
            f"matmul of shapes {lhs.shape} and {rhs.shape}: the leading dimensions must be equal; "
            "bcoo_broadcast_in_dim broadcasts them"
        )
    batch = range(batch)
    out = products.dot_general(lhs, rhs, dimension_numbers=(((lhs.ndim - 1,), (right,)), (batch, batch)))
    if not batch and right and lhs.ndim > 1:  # the result has the rows of `lhs` before the batch of `rhs`
        rows = lhs.ndim - 1
        order = [*range(rows - 1), *range(rows, rows + right), rows - 1, *range(rows + right, out.ndim)]
        return out.transpose(order)
    return out


def fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = np.int32
) -> BCOO:
    """Return the sparse array of the elements of a dense array that are not zero, as `BCOO.fromdense`."""
    return BCOO.fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
