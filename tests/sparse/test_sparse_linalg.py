"""`sparse.linalg` beside scipy's and numpy's dense results, and jax's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.experimental import sparse
from corejax.experimental.sparse import BCOO, CSR
from corejax.experimental.sparse.linalg import lobpcg_standard, spsolve
from corejax.test_util import check_grads
from tests.sparse.samples import dense


def matrix(n: int, dtype: Any = "float64") -> Any:
    """A sparse matrix that is far from singular."""
    return (dense((n, n), density=0.2, seed=4) / 9 + 3 * np.eye(n)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("jit", [False, True])
def test_spsolve(dtype: str, jit: bool) -> None:
    x, b = matrix(12, dtype), np.arange(12).astype(dtype)
    mat = CSR.fromdense(x)
    solve = corejax.jit(spsolve) if jit else spsolve
    out = solve(mat.data, mat.indices, mat.indptr, b)
    assert out.dtype == dtype
    np.testing.assert_allclose(x @ np.asarray(out), b, rtol=1e-4, atol=1e-4)


def test_derivatives_of_spsolve() -> None:
    x, b = matrix(6), jnp.arange(6.0, dtype="float64")
    mat = CSR.fromdense(x)

    def solution(data: Any, b: Any) -> Any:
        return spsolve(data, mat.indices, mat.indptr, b)

    check_grads(solution, (mat.data, b), 2, rtol=1e-4, atol=1e-4)

    def loss(data: Any) -> Any:
        return (solution(data, b) ** 2).sum()

    def dense_loss(x: Any) -> Any:
        return (jnp.linalg.solve(x, b) ** 2).sum()

    row, column = mat.to_bcoo().indices.T
    for transform in (corejax.grad, lambda f: corejax.jit(corejax.grad(f))):
        np.testing.assert_allclose(
            transform(loss)(mat.data), corejax.grad(dense_loss)(jnp.asarray(x))[row, column], rtol=1e-8
        )


def test_spsolve_of_batches() -> None:
    x = matrix(5)
    mat, bs = CSR.fromdense(x), np.random.default_rng(0).normal(size=(3, 5))
    out = corejax.vmap(lambda b: spsolve(mat.data, mat.indices, mat.indptr, b))(bs)
    np.testing.assert_allclose(out, np.linalg.solve(x, bs.T).T, rtol=1e-8)


def test_what_spsolve_refuses() -> None:
    mat = CSR.fromdense(matrix(4, "float32"))
    with pytest.raises(ValueError, match="b must be a vector with 4 elements"):
        spsolve(mat.data, mat.indices, mat.indptr, jnp.ones((4, 1)))
    with pytest.raises(TypeError, match="numbers of one dtype, got float32 and int32"):
        spsolve(mat.data, mat.indices, mat.indptr, jnp.arange(4))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("form", ["dense", "sparse", "function"])
def test_lobpcg(dtype: str, form: str) -> None:
    rng = np.random.default_rng(2)
    x = matrix(40)
    x = (x + 0.3j * dense((40, 40), seed=9) if dtype == "complex128" else x).astype(dtype)
    x = (x + x.conj().T) / 2
    A = {"dense": x, "sparse": BCOO.fromdense(x), "function": lambda v: x @ v}[form]
    X = rng.normal(size=(40, 3)).astype(dtype)
    w, v, count = lobpcg_standard(A, X)
    tolerance = 1e-3 if dtype == "float32" else 1e-9
    np.testing.assert_allclose(w, np.linalg.eigvalsh(x)[::-1][:3], rtol=tolerance)
    np.testing.assert_allclose(x @ v, np.asarray(v) * w, atol=20 * tolerance)
    np.testing.assert_allclose(np.conj(v).T @ v, np.eye(3), atol=tolerance)
    assert 0 < count < 100
    assert corejax.jit(lambda X: lobpcg_standard(A, X, m=2))(X)[2] == 2


def test_lobpcg_is_as_fast_as_jaxs() -> None:
    theirs = pytest.importorskip("jax.experimental.sparse.linalg")
    x = matrix(30, "float32")
    x, X = (x + x.T) / 2, np.random.default_rng(0).normal(size=(30, 2)).astype("float32")
    ours, other = lobpcg_standard(x, X), theirs.lobpcg_standard(x, X)
    np.testing.assert_allclose(ours[0], other[0], rtol=1e-4)
    assert int(ours[2]) <= int(other[2]) + 3


def test_what_lobpcg_refuses() -> None:
    with pytest.raises(ValueError, match=r"0 < 5 \* k < n, got \(10, 2\)"):
        lobpcg_standard(jnp.eye(10), jnp.ones((10, 2)))
    with pytest.raises(ValueError, match="must be a square matrix of the dtype of X"):
        lobpcg_standard(jnp.ones((10, 20)), jnp.ones((20, 1)))
    assert sparse.linalg.spsolve is spsolve
