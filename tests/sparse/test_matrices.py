"""`COO`, `CSR` and `CSC` beside jax's and scipy's matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import corejax
import corejax.numpy as jnp
from corejax.experimental import sparse
from corejax.experimental.sparse import BCOO
from tests.sparse.samples import check, dense

js = pytest.importorskip("jax.experimental.sparse")

FORMATS = ["COO", "CSR", "CSC"]
PARTS = {"COO": ("data", "row", "col"), "CSR": ("data", "indices", "indptr"), "CSC": ("data", "indices", "indptr")}


@pytest.mark.parametrize("name", FORMATS)
def test_conversions(name: str) -> None:
    kind, x = getattr(sparse, name), dense((4, 6), seed=3)
    ours, theirs = kind.fromdense(x), getattr(js, name).fromdense(x)
    for part in PARTS[name]:
        np.testing.assert_array_equal(getattr(ours, part), getattr(theirs, part))
    assert (ours.shape, ours.nse, ours.ndim, ours.dtype) == (theirs.shape, theirs.nse, 2, x.dtype)
    assert repr(ours) == repr(theirs)
    again = [
        kind.from_bcoo(ours.to_bcoo()),
        kind.from_scipy_sparse(scipy.sparse.coo_matrix(x)),
        kind.fromdense(x, nse=20),
    ]
    for mat in (ours, *again, ours.T.T, corejax.jit(lambda mat: mat)(ours)):
        assert type(mat) is kind
        check(mat.todense(), x)
    check(ours.T.todense(), x.T)
    check(corejax.jit(lambda x: kind.fromdense(x, nse=24).todense())(x), x)
    assert kind.fromdense(x, index_dtype="int16").to_bcoo().indices.dtype == "int16"


@pytest.mark.parametrize("name", FORMATS)
def test_products(name: str) -> None:
    x, rng = dense((4, 6), seed=1), np.random.default_rng(0)
    mat = getattr(sparse, name).fromdense(x, nse=18)
    for shape in ((6,), (6, 3)):
        y = rng.normal(size=shape).astype("float32")
        check(mat @ y, x @ y)
        check(corejax.jit(lambda mat, y: mat @ y)(mat, y), x @ y)

    def total(data: Any) -> Any:
        (_, *places), static = mat.tree_flatten()
        return (type(mat).tree_unflatten(static, (data, *places)) @ jnp.arange(6.0)).sum()

    indices = np.asarray(mat.to_bcoo().indices)
    check(corejax.grad(total)(mat.data), np.where(indices[:, 0] < 4, indices[:, 1], 0).astype("float32"))


@pytest.mark.parametrize("name", ["coo", "csr"])
def test_functions(name: str) -> None:
    x = dense((4, 6), seed=2)
    fromdense, todense, matvec, matmat = [
        getattr(sparse, f"{name}_{f}") for f in ("fromdense", "todense", "matvec", "matmat")
    ]
    theirs = getattr(js, f"{name}_fromdense")(x)
    mat = fromdense(x)
    check(todense(mat), x)
    for transpose in (False, True):
        v, y = jnp.arange(4.0 if transpose else 6.0), dense((4 if transpose else 6, 3), seed=5)
        check(matvec(mat, v, transpose), getattr(js, f"{name}_matvec")(theirs, np.asarray(v), transpose))
        check(matmat(mat, y, transpose=transpose), getattr(js, f"{name}_matmat")(theirs, y, transpose=transpose))


@pytest.mark.parametrize("name", ["coo", "csr", "csc"])
@pytest.mark.parametrize("k", [-5, -1, 0, 2, 7])
def test_eye_and_empty(name: str, k: int) -> None:
    ours, theirs = (m.eye(3, 5, k=k, sparse_format=name, dtype="float32") for m in (sparse, js))
    assert type(ours).__name__ == type(theirs).__name__
    check(ours, theirs)
    empty = sparse.empty((3, 5), sparse_format=name, dtype="int32")
    assert (empty.shape, empty.nse, empty.dtype) == ((3, 5), 0, jnp.int32)
    check(empty, np.zeros((3, 5), "int32"))


def test_sorted_coordinates() -> None:
    mat = sparse.COO((jnp.array([1.0, 2.0, 3.0]), jnp.array([2, 0, 1]), jnp.array([0, 1, 1])), shape=(3, 2))
    ordered = mat._sort_indices()
    np.testing.assert_array_equal(ordered.row, [0, 1, 2])
    assert ordered._rows_sorted and not mat._rows_sorted and ordered._sort_indices() is ordered
    check(ordered, mat.todense())


def test_maps_and_loops() -> None:
    x = dense((5, 4, 3), seed=8)
    mats = corejax.vmap(lambda x: sparse.CSR.fromdense(x, nse=12))(x)
    check(corejax.vmap(lambda mat: mat @ jnp.ones(3))(mats), x.sum(-1))
    total, _ = corejax.lax.scan(lambda c, mat: (c + mat.todense(), None), jnp.zeros((4, 3)), mats)
    check(total, x.sum(0))


def test_what_is_refused() -> None:
    mat = sparse.CSR.fromdense(dense((3, 4)))
    calls: list[tuple[type[Exception], str, Any]] = [
        (ValueError, "two dimensions", lambda: sparse.COO((jnp.ones(1),) * 3, shape=(3,))),
        (ValueError, "row must be a vector", lambda: sparse.COO((jnp.ones(1), 0, jnp.zeros(1, int)), shape=(3, 3))),
        (ValueError, "expected data, row, col", lambda: sparse.COO((jnp.ones(1),), shape=(3, 3))),
        (ValueError, "expected a matrix", lambda: sparse.CSC.fromdense(jnp.ones(3))),
        (ValueError, "two dimensions", lambda: sparse.empty((3,), sparse_format="csr")),
        (ValueError, "expected an array with 1 dimensions", lambda: sparse.csr_matvec(mat, jnp.ones((4, 4)))),
        (NotImplementedError, "another sparse matrix", lambda: mat @ mat.T),
        (NotImplementedError, "convert it to BCOO", lambda: mat @ jnp.ones((2, 4, 4))),
        (NotImplementedError, "exchanges rows and columns", lambda: mat.transpose((0, 1))),
        (NotImplementedError, "two sparse dimensions", lambda: sparse.CSR.from_bcoo(BCOO.fromdense(jnp.ones(3)))),
        (
            ValueError,
            "sparse_format must be one of bcoo, bcsr, coo, csr, csc",
            lambda: sparse.eye(3, sparse_format="x"),
        ),
    ]
    for error, text, call in calls:
        with pytest.raises(error, match=text):
            call()
