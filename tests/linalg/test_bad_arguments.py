"""What is refused, in sentences with function, argument and value; and matrices for which there is no result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
import corejax.scipy.linalg as scipy_linalg
from corejax import lax
from tests.linalg.matrices import random

A, TALL, V = random(3, 3), random(4, 3), random(3)

BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: jnp.linalg.solve(np.ones((2, 3, 3)), np.ones((4, 3, 1))), ValueError, r"solve: the batch .* f64\[2,3,3\]"),
    (lambda: jnp.linalg.cond(A, p="z"), ValueError, "cond: p must be 'fro', 'nuc', .* or None, got 'z'"),
    (lambda: lax.linalg.cholesky(TALL), ValueError, r"cholesky: x must be a square matrix .* got f64\[4,3\]"),
    (lambda: lax.linalg.qr(V), TypeError, r"qr: x must have shape \[..., m, n\], got f64\[3\]"),
    (lambda: lax.linalg.eigh(A.astype("float16")), TypeError, r"eigh: x must be float32.* got f16\[3,3\]; convert"),
    (lambda: lax.linalg.lu(np.eye(3, dtype=int)), TypeError, "lu: x must be float32"),
    (
        lambda: lax.linalg.triangular_solve(A, TALL, left_side=True),
        ValueError,
        "and left_side=True",
    ),
    (
        lambda: lax.linalg.triangular_solve(A, A.astype("float32")),
        TypeError,
        r"the dtypes must be equal, got a f64",
    ),
    (lambda: lax.linalg.triangular_solve(np.stack([A, A]), A[None]), TypeError, "differ in their batch axes"),
    (lambda: lax.linalg.tridiagonal_solve(V, V, V[:2], A), TypeError, "tridiagonal_solve"),
    (
        lambda: lax.linalg.householder_product(A[:2], V[:2]),
        ValueError,
        "householder_product: a .* with m >= n",
    ),
    (lambda: lax.linalg.eigh(A, subset_by_index=(1, 5)), ValueError, r"eigh: subset_by_index .* 0 to 3, got \(1, 5\)"),
    (lambda: lax.linalg.svd(A, subset_by_index=(0, 1)), ValueError, "svd: subset_by_index=.* full_matrices=False"),
    (lambda: lax.linalg.lu_pivots_to_permutation(np.arange(3), 2), ValueError, "permutation_size must be at least"),
    (lambda: lax.linalg.symmetric_product(A, random(2, 2)), ValueError, "symmetric_product: a_matrix must have shape"),
    (lambda: lax.linalg.cholesky_update(A + 0j, V + 0j), TypeError, "cholesky_update: r_matrix .* real"),
    (
        lambda: corejax.jvp(lambda a: lax.linalg.cholesky_update(a, a[0]), (A + 0j,), (A + 0j,)),
        TypeError,
        r"cholesky_update: r_matrix .* real.* got c128\[3,3\]",
    ),
    (
        lambda: corejax.jvp(lambda a: lax.linalg.symmetric_product(a, a), (TALL,), (TALL,)),
        ValueError,
        r"symmetric_product: a_matrix must have shape .* got f64\[4,3\]",
    ),
    (lambda: corejax.jvp(lax.linalg.svd, (V,), (V,)), TypeError, r"svd: x must have shape \[..., m, n\], got f64\[3\]"),
    (lambda: lax.linalg.schur(A, sort_eig_vals=True), NotImplementedError, "schur: sorting eigenvalues is not"),
    (lambda: lax.linalg.qdwh(TALL.T), ValueError, r"qdwh takes a matrix \[m, n\] with m >= n"),
    (lambda: lax.linalg.qdwh(A.astype("float16")), TypeError, r"qdwh: x must be float32.* got f16\[3,3\]; convert"),
    (lambda: scipy_linalg.polar(jnp.ones((2, 2), "bfloat16")), TypeError, r"x must be float32.* got bf16\[2,2\]"),
    (lambda: jnp.linalg.inv(TALL), ValueError, r"inv takes square matrices, \[..., n, n\], got f64\[4,3\]"),
    (lambda: jnp.linalg.det([[1.0]]), TypeError, "det takes arrays and scalars, got list at position 0"),
    (lambda: jnp.linalg.solve(A, TALL), ValueError, r"solve takes a .* got a f64\[3,3\] and b f64\[4,3\]"),
    (lambda: jnp.linalg.solve(np.stack([A, A]), random(2, 3)), ValueError, r"solve\(a, b\[..., None\]\)"),
    (lambda: jnp.linalg.eigh(A, UPLO="X"), ValueError, "eigh: UPLO must be one of None, 'L', 'U', got 'X'"),
    (lambda: jnp.linalg.qr(A, mode="economic"), ValueError, "qr: mode must be one of"),
    (lambda: jnp.linalg.norm(A, ord="nix"), ValueError, "ord must be 'fro', 'nuc'"),
    (lambda: jnp.linalg.norm(random(2, 2, 2), ord=2), ValueError, "norm: axis must be one axis of vectors"),
    (lambda: jnp.linalg.matrix_power(A, 0.5), TypeError, "matrix_power: n must be a static integer, got 0.5"),
    (lambda: jnp.linalg.cond(TALL, p=1), ValueError, "cond: with p=1 matrices must be square"),
    (lambda: jnp.linalg.pinv(A, 0.1, rcond=0.1), ValueError, "pinv: rcond is an alias of rtol"),
    (lambda: jnp.linalg.lstsq(A, TALL), ValueError, r"lstsq takes a \[m, n\]"),
    (lambda: jnp.linalg.tensorinv(A, 0), ValueError, "tensorinv: ind must be at least 1, got 0"),
    (lambda: jnp.linalg.multi_dot([A]), ValueError, "multi_dot takes two arrays or more, got 1"),
    (lambda: jnp.linalg.slogdet(A + 0j, method="qr"), NotImplementedError, "slogdet: method='qr' is for real"),
    (lambda: jnp.polyfit(V, TALL, 2), ValueError, "polyfit takes x"),
    (lambda: jnp.polyfit(V, V, -1), ValueError, "polyfit: deg must be at least 0, got -1"),
    (lambda: scipy_linalg.solve(A, V, assume_a="banded"), ValueError, "solve: assume_a must be one of"),
    (lambda: scipy_linalg.solve_triangular(A, V, trans="X"), ValueError, "solve_triangular: trans must be one of"),
    (lambda: scipy_linalg.eigh(A, A), NotImplementedError, "eigh: b, eigvals and types"),
    (lambda: scipy_linalg.hadamard(6), ValueError, "hadamard: n must be a power of 2, got 6"),
    (lambda: scipy_linalg.expm(TALL), ValueError, "expm takes square matrices"),
    (lambda: scipy_linalg.toeplitz("abc"), TypeError, "toeplitz takes arrays"),
    (lambda: scipy_linalg.solve_sylvester(A, A, TALL), ValueError, "solve_sylvester takes A"),
    (lambda: scipy_linalg.eigh_tridiagonal(V, V), ValueError, r"eigh_tridiagonal takes d \[n\] and e \[n - 1\]"),
    (lambda: corejax.grad(lambda a: lax.linalg.schur(a)[0].sum())(A), TypeError, "schur.* not differentiable"),
    (lambda: corejax.grad(lambda a: lax.linalg.svd(a)[0].sum())(TALL), NotImplementedError, "use full_matrices=False"),
]


@pytest.mark.parametrize("i", range(len(BAD)))
def test_refusals_name_function_argument_and_value(i: int) -> None:
    call, error, text = BAD[i]
    with pytest.raises(error, match=text):
        call()


def singular() -> np.ndarray:
    return np.array([[1.0, 2.0], [2.0, 4.0]])


def test_no_result_is_nan() -> None:
    stack = np.stack([np.eye(2), -np.eye(2)])
    for call in (jnp.linalg.cholesky, corejax.jit(jnp.linalg.cholesky)):
        got = np.asarray(call(stack))
        np.testing.assert_array_equal(got, [[[1, 0], [0, 1]], [[np.nan, 0], [np.nan, np.nan]]])
    broken = np.full((2, 2), np.nan)
    for name in ("eigvals", "svdvals", "eigvalsh", "inv", "det"):
        assert np.isnan(np.asarray(getattr(jnp.linalg, name)(broken))).any(), name
    for call in (jnp.linalg.inv, corejax.jit(jnp.linalg.inv)):
        assert not np.isfinite(np.asarray(call(singular()))).all()


def test_a_setting_makes_errors_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = np.stack([np.eye(2), -np.eye(2)])
    rows: list[tuple[Callable[[], Any], str]] = [
        (lambda: jnp.linalg.cholesky(stack), r"cholesky: matrix \(1,\) of the stack: not positive definite"),
        (lambda: jnp.linalg.cholesky(-np.eye(2)), "cholesky: the matrix: not positive definite .*minor of order 1"),
        (lambda: jnp.linalg.solve(singular(), np.ones(2)), "triangular_solve: the matrix: singular .element 1 of"),
        (lambda: jnp.linalg.inv(singular()), "triangular_solve: the matrix: singular"),
        (lambda: jnp.linalg.eigvals(np.full((2, 2), np.nan)), "eig: the matrix: it has elements that are not finite"),
        (lambda: lax.linalg.tridiagonal_solve(*np.zeros((3, 3)), A), "tridiagonal_solve: the matrix: singular"),
    ]
    monkeypatch.setattr(corejax.config, "linalg_errors", True)
    for call, text in rows:
        for _ in range(2):
            with pytest.raises(np.linalg.LinAlgError, match=text):
                call()
    assert np.isnan(np.asarray(corejax.jit(jnp.linalg.cholesky)(-np.eye(2)))).any()
    assert float(jnp.linalg.det(singular())) == 0


def test_namespaces_are_imported_like_modules() -> None:
    import corejax.lax.linalg as first
    import corejax.numpy.linalg as second
    from corejax.scipy import linalg as third

    assert (first, second, third) == (lax.linalg, jnp.linalg, scipy_linalg)
