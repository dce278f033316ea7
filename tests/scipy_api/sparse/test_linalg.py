"""`corejax.scipy.sparse.linalg`: solutions, derivatives through the equation, pytrees, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.scipy.sparse import linalg

RNG = np.random.default_rng(11)
N = 6
BASE = RNG.standard_normal((N, N))
POSITIVE = BASE @ BASE.T + N * np.eye(N)
GENERAL = BASE + N * np.eye(N)
COMPLEX = GENERAL + 1j * RNG.standard_normal((N, N))
HERMITIAN = COMPLEX @ COMPLEX.conj().T + np.eye(N)
B = RNG.standard_normal(N)
SOLVERS = {"cg": (POSITIVE, HERMITIAN), "bicgstab": (GENERAL, COMPLEX), "gmres": (GENERAL, COMPLEX)}


@pytest.mark.parametrize("name", SOLVERS)
def test_solutions(name):
    solve = getattr(linalg, name)
    for a in SOLVERS[name]:
        b = B.astype(a.dtype)
        x, info = solve(a, b, tol=1e-12)
        assert info is None and x.dtype == a.dtype
        np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-8)
    a = SOLVERS[name][0]
    inverse = np.diag(1 / np.diag(a))
    got = corejax.jit(lambda a, b: solve(lambda x: a @ x, b, x0=b, M=inverse, tol=1e-12)[0])(a, B)
    np.testing.assert_allclose(got, np.linalg.solve(a, B), rtol=1e-8)
    np.testing.assert_array_equal(solve(a, np.zeros(N))[0], np.zeros(N))


@pytest.mark.parametrize("name", SOLVERS)
def test_derivatives_are_those_of_the_equation(name):
    solve, a = getattr(linalg, name), SOLVERS[name][0]
    weights = RNG.standard_normal(N)

    def loss(solver, a, b):
        return jnp.sum(weights * solver(a, b) ** 2)

    got = corejax.grad(lambda a, b: loss(lambda a, b: solve(a, b, tol=1e-13)[0], a, b), (0, 1))(a, B)
    x = np.linalg.solve(a, B)
    adjoint = np.linalg.solve(a.T, 2 * weights * x)
    np.testing.assert_allclose(got[1], adjoint, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(got[0], -np.outer(adjoint, x), rtol=1e-7, atol=1e-9)
    tangent = corejax.jvp(lambda b: solve(a, b, tol=1e-13)[0], (B,), (weights,))[1]
    np.testing.assert_allclose(tangent, np.linalg.solve(a, weights), rtol=1e-7)
    batch = corejax.vmap(lambda b: solve(a, b, tol=1e-12)[0])(np.stack([B, weights, 0 * B]))
    np.testing.assert_allclose(batch, np.linalg.solve(a, np.stack([B, weights, 0 * B]).T).T, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("name", SOLVERS)
def test_pytrees(name):
    def matvec(tree):
        u, v = tree["u"], tree["v"]
        return {"u": 4 * u + v.sum(), "v": 3 * v + u.sum()}

    b = {"u": jnp.arange(2.0), "v": jnp.ones((1, 3))}
    x, _ = getattr(linalg, name)(matvec, b, tol=1e-7)
    again = matvec(x)
    for key in b:
        np.testing.assert_allclose(again[key], b[key], atol=1e-4)


def test_restarts():
    x, _ = linalg.gmres(GENERAL, B, restart=2, tol=1e-11, maxiter=200)
    np.testing.assert_allclose(x, np.linalg.solve(GENERAL, B), rtol=1e-8)
    x, _ = linalg.gmres(GENERAL, B, restart=3, maxiter=1, solve_method="incremental")
    assert np.abs(GENERAL @ np.asarray(x) - B).max() > 1e-8  # one cycle of three is not enough


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: linalg.cg(np.ones((2, 3)), B),
            ValueError,
            r"cg: A must be a function or a square matrix, .* \(2, 3\)",
        ),
        (lambda: linalg.cg(3, B), ValueError, "cg: A must be a function or a square matrix"),
        (lambda: linalg.cg("A", B), TypeError, "cg: A must be a function or a square matrix, got 'A'"),
        (
            lambda: linalg.bicgstab(GENERAL, B, x0=B[:2]),
            ValueError,
            r"bicgstab: x0 and b must have arrays of equal shapes",
        ),
        (
            lambda: linalg.bicgstab(GENERAL, B, x0=(B,)),
            ValueError,
            r"bicgstab: x0 and b must be pytrees of one structure",
        ),
        (lambda: linalg.gmres(GENERAL, B, restart=0), ValueError, "gmres: restart must be 1 or more, got 0"),
        (lambda: linalg.gmres(GENERAL, B, solve_method="qr"), ValueError, "gmres: solve_method must be .* got 'qr'"),
        (lambda: linalg.cg(GENERAL, B[:2]), ValueError, r"cg: A of shape .* requires an array b .* of shape \(2,\)"),
        (lambda: linalg.bicgstab(GENERAL, {"b": B}), ValueError, "bicgstab: A of shape .* b is a pytree"),
        (lambda: linalg.cg(GENERAL, B, tol="small"), TypeError, "cg takes arrays and scalars, got 'small' .* as tol"),
        (lambda: linalg.gmres(GENERAL, "b"), TypeError, "gmres: b must be an array or a pytree of arrays, got 'b'"),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call()
