"""`COO`, `CSR` and `CSC`: the simpler formats of matrices, whose operations are those of `BCOO`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

import corejax.numpy as jnp
from corejax.extend import tree
from corejax_sparse._base import JAXSparse, sequence_of
from corejax_sparse.bcoo import BCOO
from corejax_sparse.bcsr import BCSR

M = TypeVar("M", bound="Matrix")


class Matrix(JAXSparse):
    """The base class of the formats without batch and dense dimensions.

    A matrix is a pytree with its parts as leaves.
    """

    _parts: ClassVar[tuple[str, ...]]
    _flags: ClassVar[tuple[str, ...]] = ()
    _shape: tuple[int, int]

    def __init__(self, args: tuple[Any, ...], *, shape: Sequence[int]) -> None:
        kind, sizes = type(self).__name__, sequence_of(tuple(shape), f"{type(self).__name__}: shape")
        if len(sizes) != 2:
            raise ValueError(f"{kind}: a matrix has two dimensions, got the shape {sizes}")
        if len(args) != len(self._parts):
            raise ValueError(f"{kind}: expected {', '.join(self._parts)}, got {len(args)} arrays")
        self._shape = (sizes[0], sizes[1])
        for name, x in zip(self._parts, map(jnp.asarray, args), strict=True):
            if x.ndim != 1:
                raise ValueError(f"{kind}: {name} must be a vector, got shape {x.shape}")
            setattr(self, name, x)

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the parts, and the shape and what is known of the order."""
        static = (self._shape, *[getattr(self, name) for name in self._flags])
        return tuple([getattr(self, name) for name in self._parts]), static

    @classmethod
    def tree_unflatten(cls: type[M], aux_data: tuple[Any, ...], children: Sequence[Any]) -> M:
        """Return a matrix with other parts, which may be anything."""
        self = object.__new__(cls)
        names = (*cls._parts, "_shape", *cls._flags)
        for name, x in zip(names, (*children, *aux_data), strict=True):
            setattr(self, name, x)
        return self

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        return self._shape

    @property
    def nse(self) -> int:
        """The number of stored elements."""
        return int(self.data.shape[0])

    @classmethod
    def from_bcoo(cls: type[M], mat: BCOO) -> M:
        """Convert a `BCOO` matrix without batch and dense dimensions."""
        raise NotImplementedError

    def to_bcoo(self) -> BCOO:
        """Convert the matrix to `BCOO`."""
        raise NotImplementedError

    @classmethod
    def fromdense(cls: type[M], mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> M:
        """Return the matrix of the elements of a dense matrix that are not zero.

        Args:
            mat: the dense matrix.
            nse: the number of elements to store, by default the smallest. It must be given if `mat` is traced.
            index_dtype: the dtype of the indices.
        """
        if jnp.ndim(mat) != 2:
            raise ValueError(f"{cls.__name__}.fromdense: expected a matrix, got an array of shape {jnp.shape(mat)}")
        return cls.from_bcoo(BCOO.fromdense(mat, nse=nse, index_dtype=index_dtype))

    @classmethod
    def from_scipy_sparse(cls: type[M], mat: Any, *, index_dtype: Any = None) -> M:
        """Return the matrix of a matrix of `scipy.sparse`."""
        return cls.from_bcoo(BCOO.from_scipy_sparse(mat, index_dtype=index_dtype))

    @classmethod
    def _empty(cls: type[M], shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32") -> M:
        if len(tuple(shape)) != 2:
            raise ValueError(f"{cls.__name__}: a matrix has two dimensions, got the shape {tuple(shape)}")
        return cls.from_bcoo(BCOO._empty(shape, dtype=dtype, index_dtype=index_dtype))

    def todense(self) -> Any:
        """Return the dense matrix."""
        return self.to_bcoo().todense()

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, JAXSparse):
            raise NotImplementedError(
                f"the product of {self!r} and another sparse matrix; convert both by to_bcoo() for a sparse product"
            )
        other = jnp.asarray(other)
        if other.ndim not in (1, 2):
            raise NotImplementedError(
                f"the product of {self!r} and an array of shape {other.shape}; convert it to BCOO"
            )
        return self.to_bcoo() @ other


def _no_axes(mat: Matrix, axes: Any) -> None:
    if axes is not None and tuple(axes) != (1, 0):
        raise NotImplementedError(f"{type(mat).__name__}.transpose exchanges rows and columns, got axes={axes!r}")


@tree.register_pytree_node_class
class COO(Matrix):
    """A sparse matrix in coordinate format. `BCOO` has more operations.

    Args:
        args: `(data, row, col)`: the stored elements, their rows and their columns. Elements of one place are added;
            those out of bounds are absent.
        shape: the shape of the matrix.
        rows_sorted: whether the elements are known to be in the order of rows, and of columns in a row.
        cols_sorted: whether the elements are known to be in the order of columns, and of rows in a column.

    Raises:
        ValueError: the parts are not vectors, or the shape is not that of a matrix.
    """

    _parts = ("data", "row", "col")
    _flags = ("_rows_sorted", "_cols_sorted")
    row: Any
    col: Any

    def __init__(
        self, args: tuple[Any, Any, Any], *, shape: Sequence[int], rows_sorted: bool = False, cols_sorted: bool = False
    ) -> None:
        super().__init__(args, shape=shape)
        self._rows_sorted, self._cols_sorted = bool(rows_sorted), bool(cols_sorted)

    @classmethod
    def from_bcoo(cls, mat: BCOO) -> COO:
        """Convert a `BCOO` matrix without batch and dense dimensions."""
        _check_matrix("COO", mat)
        row, col = mat.indices[:, 0], mat.indices[:, 1]
        return cls((mat.data, row, col), shape=mat.shape, rows_sorted=mat.indices_sorted)

    def to_bcoo(self) -> BCOO:
        """Convert the matrix to `BCOO`."""
        indices = jnp.stack([self.row, self.col], 1)
        return BCOO((self.data, indices), shape=self.shape, indices_sorted=self._rows_sorted)

    def _sort_indices(self) -> COO:
        return self if self._rows_sorted else COO.from_bcoo(self.to_bcoo().sort_indices())

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        """Exchange rows and columns."""
        _no_axes(self, axes)
        flags = {"rows_sorted": self._cols_sorted, "cols_sorted": self._rows_sorted}
        return COO((self.data, self.col, self.row), shape=self.shape[::-1], **flags)


class _Compressed(Matrix):
    _parts = ("data", "indices", "indptr")
    indices: Any
    indptr: Any


@tree.register_pytree_node_class
class CSR(_Compressed):
    """A sparse matrix with compressed rows. `BCSR` and `BCOO` have more operations.

    Args:
        args: `(data, indices, indptr)`: the stored elements in the order of rows, their columns, and the position of
            the first element of each row, and after the last one.
        shape: the shape of the matrix.

    Raises:
        ValueError: the parts are not vectors, or the shape is not that of a matrix.
    """

    @classmethod
    def from_bcoo(cls, mat: BCOO) -> CSR:
        """Convert a `BCOO` matrix without batch and dense dimensions; its elements are sorted."""
        _check_matrix("CSR", mat)
        rows = BCSR.from_bcoo(mat)
        return cls((rows.data, rows.indices, rows.indptr), shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        """Convert the matrix to `BCOO`."""
        return BCSR((self.data, self.indices, self.indptr), shape=self.shape).to_bcoo()

    def transpose(self, axes: Sequence[int] | None = None) -> CSC:
        """Exchange rows and columns: the parts are those of a `CSC` matrix."""
        _no_axes(self, axes)
        return CSC((self.data, self.indices, self.indptr), shape=self.shape[::-1])


@tree.register_pytree_node_class
class CSC(_Compressed):
    """A sparse matrix with compressed columns, the transpose of a `CSR` matrix.

    Args:
        args: `(data, indices, indptr)`: the stored elements in the order of columns, their rows, and the position of
            the first element of each column, and after the last one.
        shape: the shape of the matrix.

    Raises:
        ValueError: the parts are not vectors, or the shape is not that of a matrix.
    """

    @classmethod
    def from_bcoo(cls, mat: BCOO) -> CSC:
        """Convert a `BCOO` matrix without batch and dense dimensions; its elements are sorted."""
        _check_matrix("CSC", mat)
        rows: CSR = CSR.from_bcoo(mat.T)
        return rows.transpose()

    def to_bcoo(self) -> BCOO:
        """Convert the matrix to `BCOO`."""
        return self.transpose().to_bcoo().transpose()

    def transpose(self, axes: Sequence[int] | None = None) -> CSR:
        """Exchange rows and columns: the parts are those of a `CSR` matrix."""
        _no_axes(self, axes)
        return CSR((self.data, self.indices, self.indptr), shape=self.shape[::-1])


def _check_matrix(kind: str, mat: BCOO) -> None:
    if mat.n_sparse != 2 or mat.n_batch or mat.n_dense:
        raise NotImplementedError(f"{kind}.from_bcoo: {mat!r} is not a matrix with two sparse dimensions")


# -- functions -----------------------------------------------------------------------------------------------------


def coo_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
    """Return the `COO` matrix of the elements of a dense matrix that are not zero, as `COO.fromdense`."""
    return COO.fromdense(mat, nse=nse, index_dtype=index_dtype)


def coo_todense(mat: COO) -> Any:
    """Return the dense matrix of a `COO` matrix."""
    return mat.todense()


def coo_matvec(mat: COO, v: Any, transpose: bool = False) -> Any:
    """Multiply a `COO` matrix, or its transpose, by a vector."""
    return _product("coo_matvec", mat, v, transpose, 1)


def coo_matmat(mat: COO, B: Any, *, transpose: bool = False) -> Any:
    """Multiply a `COO` matrix, or its transpose, by a dense matrix."""
    return _product("coo_matmat", mat, B, transpose, 2)


def csr_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
    """Return the `CSR` matrix of the elements of a dense matrix that are not zero, as `CSR.fromdense`."""
    return CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)


def csr_todense(mat: CSR) -> Any:
    """Return the dense matrix of a `CSR` matrix."""
    return mat.todense()


def csr_matvec(mat: CSR, v: Any, transpose: bool = False) -> Any:
    """Multiply a `CSR` matrix, or its transpose, by a vector."""
    return _product("csr_matvec", mat, v, transpose, 1)


def csr_matmat(mat: CSR, B: Any, *, transpose: bool = False) -> Any:
    """Multiply a `CSR` matrix, or its transpose, by a dense matrix."""
    return _product("csr_matmat", mat, B, transpose, 2)


def _product(name: str, mat: Matrix, x: Any, transpose: bool, ndim: int) -> Any:
    x = jnp.asarray(x)
    if x.ndim != ndim:
        raise ValueError(f"{name}: expected an array with {ndim} dimensions, got shape {x.shape}")
    return (mat.T if transpose else mat) @ x
