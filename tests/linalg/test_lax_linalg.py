"""`corejax.lax.linalg` beside jax's: eager and compiled, every dtype, stacks and matrices without elements."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.lax import linalg
from corejax_linalg._base import eager
from tests.linalg.matrices import DTYPES, adjoint, check, close, definite, random
from tests.signatures import difference, public

theirs = pytest.importorskip("jax.lax.linalg")

SQUARE, TALL, WIDE = (4, 4), (2, 4, 3), (3, 4)


def test_names_and_signatures_are_jaxs() -> None:
    names = [n for n in public(theirs) if n != "qdwh" or hasattr(linalg, "qdwh")]
    assert set(names) <= set(dir(linalg))
    functions = [n for n in names if not isinstance(getattr(theirs, n), enum.EnumType)]
    found = {n: difference(getattr(linalg, n), getattr(theirs, n)) for n in functions if not n.endswith("_p")}
    assert not {name: text for name, text in found.items() if text}


def rows(dtype: str) -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    a, p = random(*SQUARE, dtype=dtype), definite(2, 4, 4, dtype=dtype)
    tall, wide = random(*TALL, dtype=dtype), random(*WIDE, dtype=dtype)
    diagonals = [random(4, dtype=dtype), random(4, dtype=dtype) + 5, random(4, dtype=dtype, seed=1)]
    found = [
        ("cholesky", (p,), {}),
        ("cholesky", (-p,), {"symmetrize_input": False}),
        ("eig", (a,), {}),
        ("eigh", (a,), {}),
        ("eigh", (p,), {"symmetrize_input": False, "lower": False}),
        ("hessenberg", (a,), {}),
        ("lu", (tall,), {}),
        ("lu", (wide,), {}),
        ("qr", (tall,), {}),
        ("qr", (wide,), {"full_matrices": False}),
        ("qr", (tall,), {"full_matrices": False, "pivoting": True}),
        ("schur", (a,), {}),
        ("svd", (tall,), {}),
        ("svd", (wide,), {"full_matrices": False}),
        ("tridiagonal", (p,), {"lower": False}),
        ("tridiagonal_solve", (*diagonals, random(4, 2, dtype=dtype)), {}),
        ("ormqr", (random(5, 3, dtype=dtype), random(3, dtype=dtype), random(5, 2, dtype=dtype)), {"transpose": True}),
    ]
    if dtype == "float32":
        found += [
            ("cholesky_update", (np.triu(p[0]), random(4, dtype=dtype)), {}),
            ("symmetric_product", (wide.T, p[0]), {"alpha": 2.0, "beta": 3.0, "symmetrize_output": True}),
            ("tridiagonal_solve", (*diagonals, random(4, 2, dtype=dtype)), {"perturb_singular": True}),
            ("lu_pivots_to_permutation", (np.array([[1, 1, 3], [2, 2, 2]], np.int32), 5), {}),
        ]
    return found


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_results_are_jaxs(dtype: str) -> None:
    for i, (name, args, kwargs) in enumerate(rows(dtype)):
        compiled = dtype == "float32" and name != "lu_pivots_to_permutation" and i % 2 == 0
        check(getattr(linalg, name), getattr(theirs, name), *args, compiled=compiled, **kwargs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_is_eager(dtype: str) -> None:
    """All in one program."""
    table = [row for row in rows(dtype) if row[0] != "lu_pivots_to_permutation"]

    def everything(operands: Any) -> list[Any]:
        return [getattr(linalg, name)(*args, **kw) for (name, _, kw), args in zip(table, operands, strict=True)]

    operands = [args for _, args, _ in table]
    eager, compiled = everything(operands), corejax.jit(everything)(operands)
    for (name, _, _), got, wanted in zip(table, compiled, eager, strict=True):
        for x, y in zip(got if isinstance(got, list | tuple) else [got], corejax.tree.leaves(wanted), strict=True):
            assert x.aval is y.aval, name
            close(x, y, message=name)


@pytest.mark.parametrize("left_side", [True, False])
@pytest.mark.parametrize("transpose_a", [True, False])
@pytest.mark.parametrize("conjugate_a", [True, False])
def test_triangular_solve_solves(left_side: bool, transpose_a: bool, conjugate_a: bool) -> None:
    for lower in (True, False):
        for unit in (True, False):
            a = random(2, 3, 3, dtype="complex128") + 3 * np.eye(3)
            b = random(2, 3, 3, dtype="complex128", seed=1)
            flags = {"lower": lower, "transpose_a": transpose_a, "conjugate_a": conjugate_a, "unit_diagonal": unit}
            x = np.asarray(linalg.triangular_solve(a, b, left_side=left_side, **flags))
            t = np.tril(a) if lower else np.triu(a)
            t = np.where(np.eye(3) == 1, 1, t) if unit else t
            t = np.conj(t) if conjugate_a else t
            t = np.swapaxes(t, -1, -2) if transpose_a else t
            close(t @ x if left_side else x @ t, b)


def test_triangular_solve_takes_vectors_and_half_dtypes() -> None:
    a = np.triu(random(3, 3, dtype="float32")) + 3 * np.eye(3, dtype="float32")
    b = random(3, dtype="float32")
    for left in (True, False):
        got = linalg.triangular_solve(a, b, left_side=left)
        close(got, np.linalg.solve(a if left else a.T, b))
        half = linalg.triangular_solve(jnp.asarray(a, "bfloat16"), jnp.asarray(b, "bfloat16"), left_side=left)
        assert half.dtype == "bfloat16"
        np.testing.assert_allclose(np.asarray(half, "float32"), np.asarray(got), rtol=0.1, atol=0.05)


def test_matrices_without_elements() -> None:
    for name, shape in [(n, s) for n in ("qr", "svd", "lu") for s in ((0, 3), (2, 3, 0), (0, 3, 3))]:
        check(getattr(linalg, name), getattr(theirs, name), np.zeros(shape, "float32"), compiled=name != "lu")
    for name in ("cholesky", "eigh", "eig", "schur"):
        check(getattr(linalg, name), getattr(theirs, name), np.zeros((2, 0, 0), "float32"))
    order = linalg.qr(np.zeros((0, 3), "float32"), pivoting=True)[2]
    np.testing.assert_array_equal(np.asarray(order), [0, 1, 2])


def test_subsets() -> None:
    a, p = random(4, 3), definite(4, 4)
    u, s, vh = linalg.svd(a, full_matrices=False, subset_by_index=(0, 2))
    whole = linalg.svd(a, full_matrices=False)
    close(u, whole[0][:, :2])
    close(s, whole[1][:2])
    close(vh, whole[2][:2])
    v, w = linalg.eigh(p, subset_by_index=(2, 4))
    close(w, np.linalg.eigvalsh(p)[2:])
    close(p @ np.asarray(v), np.asarray(v) * np.asarray(w))


def test_algorithms() -> None:
    a = random(4, 3)
    close(linalg.svd(a, compute_uv=False, algorithm=linalg.SvdAlgorithm.QR), np.linalg.svd(a, compute_uv=False))
    u, s, vh = corejax.jit(lambda a: linalg.svd(a, full_matrices=False, algorithm=linalg.SvdAlgorithm.QR))(a)
    close((np.asarray(u) * np.asarray(s)) @ np.asarray(vh), a)
    for call in (
        lambda: linalg.svd(a, algorithm=linalg.SvdAlgorithm.JACOBI),
        lambda: linalg.eigh(definite(3, 3), implementation=linalg.EighImplementation.QDWH),
        lambda: corejax.jit(lambda a: linalg.eig(a, implementation=linalg.EigImplementation.CUSOLVER))(definite(3, 3)),
    ):
        with pytest.raises(NotImplementedError, match=r"cpu does not support the .*; leave it out"):
            call()


def test_reflectors_multiply_to_a_unitary_matrix() -> None:
    a = random(5, 3, dtype="complex128")
    packed, taus = jnp.linalg.qr(a, mode="raw")
    q = np.asarray(linalg.householder_product(packed.T, taus))
    close(adjoint(q) @ q, np.eye(3, dtype="complex128"))
    close(linalg.ormqr(packed.T, taus, jnp.eye(5, 3, dtype="complex128")), q)


def test_a_vmap_is_a_loop() -> None:
    batch = definite(3, 4, 4, dtype="complex128")
    rhs = random(3, 4, 2, dtype="complex128")
    for name in ("cholesky", "eigh", "lu", "qr", "svd", "schur", "hessenberg", "tridiagonal", "eig"):
        function = getattr(linalg, name)
        for got, *wanted in zip(
            *(
                corejax.tree.leaves(x)
                for x in (corejax.vmap(function, in_axes=1)(np.moveaxis(batch, 0, 1)), *(function(b) for b in batch))
            ),
            strict=True,
        ):
            close(got, np.stack([np.asarray(x) for x in wanted]), message=name)
    solve = lambda a, b: linalg.triangular_solve(a, b, left_side=True)
    for axes in ((0, None), (None, 2), (0, 0)):
        a = batch if axes[0] is not None else batch[0]
        b = rhs[0] if axes[1] is None else np.moveaxis(rhs, 0, axes[1])
        got = np.asarray(corejax.vmap(solve, in_axes=axes)(a, b))
        for k in range(3):
            close(got[k], solve(a if axes[0] is None else a[k], b if axes[1] is None else rhs[k]))


@pytest.mark.parametrize("reduce", [linalg.hessenberg, linalg.tridiagonal])
def test_batches_of_matrices_of_one_element(reduce: Any) -> None:
    """Whose reflectors have no elements."""
    matrices = np.array([[[4.0]], [[2.0]]], np.float32)
    for got in (corejax.vmap(reduce)(matrices), reduce(matrices), corejax.jit(corejax.vmap(reduce))(matrices)):
        np.testing.assert_array_equal(got[0], matrices)
        assert got[-1].shape == (2, 0)


_MANY = {
    "lu": lambda x: linalg.lu(x),
    "qr": lambda x: linalg.qr(x, full_matrices=False),
    "eigh": lambda x: linalg.eigh(x + adjoint(x)),
    "cholesky": lambda x: linalg.cholesky(x @ adjoint(x) + np.eye(3, dtype=x.dtype)),
    "triangular_solve": lambda x: linalg.triangular_solve(x, x, left_side=True, lower=True),
}


@pytest.mark.parametrize("name", _MANY)
@pytest.mark.engine
def test_many_small_matrices_are_compiled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are one by one until the same call comes again, but where that would make a difference to last bits."""
    f = _MANY[name]
    x = random(8, 9, 3, 3, dtype="float32") + 2 * np.eye(3, dtype="float32")
    if name in ("lu", "cholesky"):
        x[1, 2] = np.nan
    rows_of = [map(np.asarray, corejax.tree.leaves(f(row))) for row in x]
    wanted = [np.stack(results) for results in zip(*rows_of, strict=True)]
    corejax.clear_caches()
    found = []
    one_by_one = eager._one_by_one
    monkeypatch.setattr(eager, "_one_by_one", lambda *args: (found.append(args), one_by_one(*args))[1])
    counts = []
    for _ in range(4):
        for got, want in zip(corejax.tree.leaves(f(x)), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        counts.append(len(found))
    first, _, third, fourth = counts  # qr is made of others, which come again at the third call
    assert first == (name not in eager._OTHER_BITS) and third == fourth
    with corejax.config.override(linalg_errors=True):
        f(np.broadcast_to(np.eye(3, dtype="float32"), x.shape))
    assert len(found) == fourth + 1, "whose errors name the matrix"
