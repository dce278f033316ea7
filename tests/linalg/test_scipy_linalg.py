"""`corejax.scipy.linalg`: names and signatures are jax's, values SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import corejax
import corejax.numpy as jnp
import corejax.scipy.linalg as linalg
from corejax.lax import linalg as lax_linalg
from tests.linalg.matrices import adjoint, close, definite, flat, random
from tests.signatures import difference, public

theirs = pytest.importorskip("jax.scipy.linalg")

A, C, P, V = random(4, 4), random(4, 4, dtype="complex128"), definite(4, 4), random(4)
H, TALL, WIDE = definite(4, 4, dtype="complex128"), random(5, 3), random(3, 5)
D, E = random(5), random(4)

ROWS: dict[str, list[tuple[Any, ...]]] = {
    "block_diag": [(A, random(2, 3), V, 2.0)],
    "cholesky": [(P,), (H,), (H, {"lower": True})],
    "cho_solve": [((np.linalg.cholesky(P), True), V), ((adjoint(np.linalg.cholesky(H)), False), C)],
    "circulant": [(V,)],
    "companion": [(V,)],
    "convolution_matrix": [(V, 3), (V, 6, "same"), (V, 3, "valid")],
    "det": [(A,)],
    "eigh_tridiagonal": [(D, E, {"eigvals_only": True, "select": "i", "select_range": (1, 3)})],
    "expm": [(A,), (A * 9,), (C,), (np.triu(A),), (A * 1e-3,), (random(2, 3, 3) * np.array([1, 20])[:, None, None],)],
    "expm_frechet": [(A, P)],
    "fiedler": [(V,)],
    "fiedler_companion": [(random(6),), (random(2),), (random(7),)],
    "hankel": [(V,), (V, random(3))],
    "hessenberg": [(A,)],
    "inv": [(A,)],
    "leslie": [(V, random(3))],
    "lu": [(A,), (TALL,), (WIDE, {"permute_l": True})],
    "lu_factor": [(A,)],
    "polar": [(TALL,), (WIDE, {"side": "left"}), (C,)],
    "qr": [(TALL,), (TALL, {"mode": "economic"}), (WIDE, {"mode": "economic", "pivoting": True})],
    "qr_multiply": [(TALL, random(2, 5)), (TALL, random(3, 2), "left"), (C, C), (TALL, random(5), "right", True)],
    "schur": [(A,), (C,)],
    "solve": [(A, V), (P, A, {"assume_a": "pos"}), (H, V, {"assume_a": "pos", "lower": True})],
    "solve_sylvester": [(A, random(3, 3), random(4, 3)), (C, P + 0j, C)],
    "solve_triangular": [(A, V), (C, C, {"trans": "C", "lower": True}), (A, P, {"unit_diagonal": True, "trans": 1})],
    "svd": [(TALL,), (TALL, {"compute_uv": False})],
    "toeplitz": [(V,), (C[0],), (V, random(3))],
}


def test_names_and_signatures_are_jaxs() -> None:
    names = public(theirs)
    assert set(names) == set(linalg.__all__)
    found = {n: difference(getattr(linalg, n), getattr(theirs, n)) for n in names}
    assert not {name: text for name, text in found.items() if text}


@pytest.mark.parametrize("name", ROWS)
def test_results_are_scipys(name: str) -> None:
    for row in ROWS[name]:
        args, kwargs = (row[:-1], row[-1]) if isinstance(row[-1], dict) else (row, {})
        wanted = flat(getattr(scipy.linalg, name)(*args, **kwargs))
        for _ in range(2):  # the second time from a remembered program
            for got, expected in zip(flat(getattr(linalg, name)(*args, **kwargs)), wanted, strict=True):
                np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-9, atol=1e-9)


def test_compiled_in_one_program() -> None:
    table = [(name, rows[0]) for name, rows in ROWS.items() if not isinstance(rows[0][-1], dict)]
    table = [(name, args) for name, args in table if name not in ("convolution_matrix", "cho_solve")]
    everything = lambda operands: [getattr(linalg, n)(*x) for (n, _), x in zip(table, operands, strict=True)]
    operands = [args for _, args in table]
    eager, compiled = everything(operands), corejax.jit(everything)(operands)
    for got, wanted in zip(corejax.tree.leaves(compiled), corejax.tree.leaves(eager), strict=True):
        close(got, wanted)


def test_matrices_of_a_size() -> None:
    for name in ("pascal", "invpascal"):  # of numbers that int64 does not hold
        for kind in ("symmetric", "lower", "upper"):
            wanted = getattr(scipy.linalg, name)(40, kind, exact=True).astype(np.float64)
            np.testing.assert_allclose(getattr(linalg, name)(40, kind), wanted, rtol=1e-5)
    for name, n in (("hilbert", 4), ("invhilbert", 4), ("pascal", 5), ("invpascal", 4), ("helmert", 4)):
        got = getattr(linalg, name)(n)
        assert got.dtype == "float32"
        np.testing.assert_allclose(np.asarray(got), getattr(scipy.linalg, name)(n), rtol=1e-6)
    assert linalg.hadamard(4).dtype == "int32"
    np.testing.assert_array_equal(np.asarray(linalg.hadamard(4, "float32")), scipy.linalg.hadamard(4))
    np.testing.assert_allclose(np.asarray(linalg.dft(4, "n", dtype="complex128")), scipy.linalg.dft(4, "n"), atol=1e-12)


def test_functions_of_matrices() -> None:
    func = lambda x: jnp.sin(x) + x * x
    got, error = linalg.funm(A, func, disp=False)
    np.testing.assert_allclose(np.asarray(got), scipy.linalg.funm(A, lambda x: np.sin(x) + x * x), atol=1e-9)
    assert 0 < float(error) < 1e-10
    for x in (P, A, C, np.stack([P, A])):
        root = np.asarray(linalg.sqrtm(x))
        np.testing.assert_allclose(root @ root, x, atol=1e-9)
    assert not np.isfinite(np.asarray(linalg.expm(A * 100, max_squarings=2))).any()


def test_exponentials_have_derivatives() -> None:
    for x in (A, A * 20, np.zeros((4, 4))):
        wanted = scipy.linalg.expm_frechet(x, P, compute_expm=False)
        tangent = np.asarray(corejax.jvp(linalg.expm, (jnp.asarray(x),), (jnp.asarray(P),))[1])
        np.testing.assert_allclose(tangent, wanted, rtol=1e-8, atol=1e-8 * np.abs(wanted).max())
        gradient = corejax.grad(lambda x: jnp.sum(linalg.expm(x) * A))(jnp.asarray(x))
        dot = float(jnp.sum(gradient * P))
        np.testing.assert_allclose(dot, np.sum(wanted * A), rtol=1e-8, atol=1e-8 * np.abs(wanted).max())
    batch = corejax.vmap(linalg.expm)(np.stack([A, A * 20]))
    for got, x in zip(batch, (A, A * 20), strict=True):
        np.testing.assert_allclose(np.asarray(got), scipy.linalg.expm(x), rtol=1e-8)


def test_definite_equations_have_derivatives() -> None:
    solve = lambda a, b: linalg.solve(a, b, assume_a="pos")
    a, b = jnp.asarray(H), jnp.asarray(C[0])
    tangents = jnp.asarray(definite(4, 4, dtype="complex128", seed=3)), jnp.asarray(C[1])
    _, got = corejax.jvp(solve, (a, b), tangents)
    _, wanted = corejax.jvp(jnp.linalg.solve, (a, b), tangents)
    close(got, wanted)
    gradients = [corejax.grad(lambda b: jnp.sum(f(a, b).imag))(b) for f in (solve, jnp.linalg.solve)]  # noqa: B023
    close(*gradients)


def test_factors_serve_for_transposes() -> None:
    factors = linalg.lu_factor(C)
    for trans, x in enumerate((C, C.T, C.conj().T)):
        close(linalg.lu_solve(factors, V, trans=trans), np.linalg.solve(x, V))
    close(linalg.cho_solve(linalg.cho_factor(H), C), np.linalg.solve(H, C))


def test_a_real_schur_form_made_complex() -> None:
    t, z = (np.asarray(x) for x in linalg.rsf2csf(*scipy.linalg.schur(A)))
    np.testing.assert_allclose(z @ t @ adjoint(z), A, atol=1e-9)
    np.testing.assert_allclose(np.tril(t, -1), 0, atol=1e-12)


def test_schur_forms_made_complex_in_batches_that_broadcast() -> None:
    forms = [scipy.linalg.schur(x) for x in np.random.default_rng(0).standard_normal((3, 5, 5))]
    t, z = (np.stack(x) for x in zip(*forms, strict=True))
    for operands in ((t, z), (t, z[0]), (t[1], z[:, None])):
        for got, want in zip(linalg.rsf2csf(*operands), scipy.linalg.rsf2csf(*operands), strict=True):
            np.testing.assert_allclose(got, want, atol=1e-9)


def test_eigenvectors_of_tridiagonal_matrices() -> None:
    w, v = (np.asarray(x) for x in linalg.eigh_tridiagonal(D, E))
    matrix = np.diag(D) + np.diag(E, 1) + np.diag(E, -1)
    np.testing.assert_allclose(matrix @ v, v * w, atol=1e-9)


def test_halleys_iteration() -> None:
    ours = corejax.jit(lambda x: lax_linalg.qdwh(x))
    for x in (TALL, C, TALL.astype("float32"), np.diag([1.0, 1e-9, 3.0])):
        u, h, steps, converged = (np.asarray(y) for y in ours(x))
        assert converged
        assert steps <= 7
        tolerance = 1e-5 if x.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(u @ h, x, atol=tolerance)
        np.testing.assert_allclose(adjoint(u) @ u, np.eye(x.shape[1]), atol=tolerance)
    part = np.pad(TALL, ((0, 1), (0, 1)), constant_values=7.0)
    close(np.asarray(lax_linalg.qdwh(part, dynamic_shape=(5, 3))[1])[:3, :3], lax_linalg.qdwh(TALL)[1])


@pytest.mark.parametrize("scale", [1e30, 1e-30, 1e37])
def test_polar_of_huge_and_tiny_matrices(scale: float) -> None:
    for x in (TALL.astype("float32"), C.astype("complex64")):
        u, p = (np.asarray(y) for y in linalg.polar(x * np.float32(scale)))
        np.testing.assert_allclose(adjoint(u) @ u, np.eye(x.shape[1]), atol=1e-5)
        np.testing.assert_allclose(u @ (p / np.float32(scale)), x, atol=1e-5)


def test_matrices_without_elements() -> None:
    none = np.zeros((0, 0))
    for method in ("schur", "eigen"):
        assert linalg.solve_sylvester(none, none, none, method=method).shape == (0, 0)
        assert linalg.solve_sylvester(none, np.eye(3), np.zeros((0, 3)), method=method).shape == (0, 3)
    f, error = linalg.funm(none, jnp.exp, disp=False)
    assert f.shape == (0, 0)
    assert float(error) < 1e-12


@pytest.mark.parametrize("batches", [((), (4,)), ((3,), (2, 5, 3)), ((3, 1), (4, 3, 2)), ((1,), (2, 1)), ((2,), ())])
def test_right_hand_sides_of_one_matrix_stand_beside_each_other(batches: Any) -> None:
    """Where axes broadcast, against the solutions of each alone; and no matrix is repeated for them."""
    of_a, of_b = batches
    a, b = definite(*of_a, 4, 4), random(*of_b, 4, 2)
    batch = np.broadcast_shapes(of_a, of_b)
    full = np.broadcast_to(a, (*batch, 4, 4)), np.broadcast_to(b, (*batch, 4, 2))
    lower = np.linalg.cholesky(a)
    close(linalg.solve(a, b), np.linalg.solve(*full))
    close(jnp.linalg.solve(a, b), np.linalg.solve(*full))
    close(linalg.solve(a, b, assume_a="pos"), np.linalg.solve(*full))
    close(linalg.cho_solve((lower, True), b), np.linalg.solve(*full))
    close(linalg.lu_solve(linalg.lu_factor(a), b, trans=1), np.linalg.solve(full[0].swapaxes(-1, -2), full[1]))
    triangles = np.broadcast_to(lower, full[0].shape)
    close(linalg.solve_triangular(lower, b, lower=True), np.linalg.solve(triangles, full[1]))
    program = corejax.make_jaxpr(lambda c, b: linalg.cho_solve((c, True), b))(lower, b)
    solving = [eqn for eqn in program.jaxpr.eqns if eqn.primitive.name == "triangular_solve"]
    shared = batch[len(batch) - len(of_a) :]
    assert [eqn.invars[0].aval.shape for eqn in solving] == [(*shared, 4, 4)] * 2
