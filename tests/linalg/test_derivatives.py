"""Derivatives beside differences and jax's: forward, reverse, twice, of real and complex matrices.

Functions here do not depend on the signs and phases of vectors, which LAPACK chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.lax as lax
import corejax.numpy as jnp
from tests.linalg.matrices import close, definite, random

jax = pytest.importorskip("jax")
jax_numpy = pytest.importorskip("jax.numpy")

WEIGHTS = random(8, 8, seed=5)


def weigh(library: Any, x: Any) -> Any:
    """A number of an array, to which every element counts differently."""
    w = WEIGHTS.ravel()[: x.size].reshape(x.shape)
    return library.sum(library.real(x * w)) + (library.sum(library.imag(x) * w * w) if x.dtype.kind == "c" else 0)


def _projectors(m: Any, v: Any) -> Any:
    """Products of each vector with its conjugate: without its phase."""
    return m.einsum("...ik,...jk->...ijk", v, v.conj())


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "cholesky": lambda m, a: m.linalg.cholesky(a @ m.swapaxes(a, -1, -2).conj() + 2 * m.eye(a.shape[-1])),
    "cond": lambda m, a: m.linalg.cond(a),
    "det": lambda m, a: m.linalg.det(a),
    "eigvals": lambda m, a: m.sum(m.linalg.eigvals(a) ** 3, -1),
    "eigvalsh": lambda m, a: m.linalg.eigvalsh(a),
    "eigh": lambda m, a: _projectors(m, m.linalg.eigh(a)[1][..., :2]),
    "inv": lambda m, a: m.linalg.inv(a),
    "lstsq": lambda m, a: m.linalg.lstsq(a[:, :3], a[:, 3])[0],
    "matrix_power": lambda m, a: m.linalg.matrix_power(a, -2),
    "norm nuc": lambda m, a: m.linalg.norm(a, "nuc"),
    "pinv": lambda m, a: m.linalg.pinv(a[..., :3, :]),
    "pinv tall": lambda m, a: m.linalg.pinv(a[..., :3]),
    "qr": lambda m, a: m.linalg.qr(a)[0] * 2 + m.linalg.qr(a)[1],
    "qr tall": lambda m, a: m.linalg.qr(a[..., :3])[0],
    "qr complete": lambda m, a: m.linalg.qr(a[..., :3], mode="complete")[0],
    "qr wide": lambda m, a: m.linalg.qr(a[..., :3, :])[1],
    "slogdet": lambda m, a: m.linalg.slogdet(a)[1],
    "slogdet sign": lambda m, a: m.linalg.slogdet(a)[0],
    "solve": lambda m, a: m.linalg.solve(a, a[..., :2] ** 2),
    "solve a vector": lambda m, a: m.linalg.solve(a, a[0]),
    "svdvals": lambda m, a: m.linalg.svdvals(a[..., :3]),
    "svd": lambda m, a: _projectors(m, m.linalg.svd(a[..., :3], full_matrices=False)[0]),
    "svd wide": lambda m, a: (
        m.linalg.svd(a[..., :3, :], full_matrices=False)[2][..., :2, :].conj().swapaxes(-1, -2)
        @ m.linalg.svd(a[..., :3, :], full_matrices=False)[2][..., :2, :]
    ),
}


BESIDE_JAX = ("cholesky", "eigvals", "qr complete", "slogdet sign")


def differences(f: Callable[[Any], Any], x: Any, dx: Any, step: float = 1e-6) -> Any:
    return (np.asarray(f(x + step * dx)) - np.asarray(f(x - step * dx))) / (2 * step)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_derivatives(name: str, dtype: str) -> None:
    f = lambda a: weigh(jnp, FUNCTIONS[name](jnp, a))
    x = random(4, 4, dtype=dtype, seed=3) + 3 * np.diag([1.0, -2, 3, 5]).astype(dtype)
    dx = random(4, 4, dtype=dtype, seed=4)
    _, tangent = corejax.jvp(f, (jnp.asarray(x),), (jnp.asarray(dx),))
    close(tangent, differences(f, x, dx), 1e-6)
    gradient = corejax.grad(f)(jnp.asarray(x))
    close(np.real(np.sum(np.asarray(gradient) * dx)), np.asarray(tangent), 1e-8)
    if name in BESIDE_JAX and dtype == "complex128":  # the same conventions of complex gradients
        with jax.enable_x64(True):
            theirs = jax.grad(lambda a: weigh(jax_numpy, FUNCTIONS[name](jax_numpy, a)))(x)
        close(gradient, theirs, 1e-7)


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"qr complete", "cond"}))
def test_second_derivatives(name: str) -> None:
    f = lambda a: weigh(jnp, FUNCTIONS[name](jnp, a))
    x = random(4, 4, seed=3) + 3 * np.diag([1.0, -2, 3, 5])
    dx = random(4, 4, seed=4)
    forward_over_reverse = corejax.jvp(corejax.grad(f), (jnp.asarray(x),), (jnp.asarray(dx),))[1]
    close(forward_over_reverse, differences(corejax.grad(f), x, dx), 1e-4)
    reverse_over_forward = corejax.grad(lambda a: corejax.jvp(f, (a,), (jnp.asarray(dx),))[1])(jnp.asarray(x))
    close(reverse_over_forward, np.asarray(forward_over_reverse), 1e-8)


def test_derivatives_of_eigenvectors_with_leave() -> None:
    eig = lambda a: lax.linalg.eig(a, enable_eigvec_derivs=True)
    x, dx = random(4, 4, seed=1), random(4, 4, seed=2)
    _, tangents = corejax.jvp(eig, (jnp.asarray(x),), (jnp.asarray(dx),))
    for k, tangent in enumerate(tangents):
        close(tangent, differences(lambda a: eig(a)[k], x, dx), 1e-5)  # noqa: B023
    with pytest.raises(NotImplementedError, match="enable_eigvec_derivs=True"):
        corejax.jvp(jnp.linalg.eig, (jnp.asarray(x),), (jnp.asarray(dx),))


def test_determinants_of_singular_matrices_have_derivatives() -> None:
    dependent, first_column, first_pivot = (random(4, 4, seed=1) for _ in range(3))
    dependent[3] = dependent[0] + dependent[1]
    first_column[:, 0] = 0
    first_pivot[:, 0] = first_pivot[0] = 0
    for x in (dependent, first_column, first_pivot, 1e-3 * first_column):
        cofactors = np.array(
            [[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x, i, 0), j, 1)) for j in range(4)] for i in range(4)]
        )
        for grad in (corejax.grad(jnp.linalg.det), corejax.jit(corejax.grad(jnp.linalg.det))):
            close(grad(jnp.asarray(x)), cofactors, 1e-7)
    for rank in (0, 1, 2, 3):
        x = np.diag([1.0] * rank + [0.0] * (5 - rank))
        close(corejax.grad(jnp.linalg.det)(jnp.asarray(x)), np.zeros((5, 5)))
        close(corejax.jacfwd(jnp.linalg.det)(jnp.asarray(x, "float32")), np.zeros((5, 5), "float32"))


def test_equal_singular_values_do_not_matter_to_pseudo_inverses() -> None:
    x, dx = np.eye(4, 3), random(4, 3)
    tangent = corejax.jvp(jnp.linalg.pinv, (jnp.asarray(x),), (jnp.asarray(dx),))[1]
    close(tangent, differences(np.linalg.pinv, x, dx), 1e-6)


def test_what_is_not_symmetrized_is_read_from_one_triangle() -> None:
    p, dp = definite(3, 3), random(3, 3, seed=2)
    for f in (
        lambda a: lax.linalg.cholesky(a, symmetrize_input=False),
        lambda a: lax.linalg.eigh(a, lower=False, symmetrize_input=False)[1],
    ):
        close(corejax.jvp(f, (jnp.asarray(p),), (jnp.asarray(dp),))[1], differences(f, p, dp), 1e-6)


# -- compositions --------------------------------------------------------------------------------------------------


def likelihood(library: Any, solve: Any, theta: Any, x: Any, y: Any) -> Any:
    """The logarithm of a Gaussian process's likelihood, but for a constant."""
    distance = (x[:, None] - x[None, :]) / theta[0]
    covariance = theta[1] * library.exp(-0.5 * distance**2) + theta[2] * library.eye(x.shape[0])
    factor = library.linalg.cholesky(covariance)
    scaled = solve(factor, y[:, None], left_side=True, lower=True)
    return -0.5 * library.sum(scaled**2) - library.sum(library.log(library.diagonal(factor)))


def test_gradients_of_a_likelihood_compiled_and_batched() -> None:
    x = np.linspace(0, 1, 7)
    ys = np.stack([np.sin(6 * x), np.cos(4 * x), x])
    theta = np.array([0.3, 1.0, 0.1])

    def of(library: Any, linalg: Any, transforms: Any) -> Any:
        f = lambda theta, y: likelihood(library, linalg.triangular_solve, theta, x, y)
        return transforms.jit(transforms.vmap(transforms.grad(f), in_axes=(None, 0)))(theta, ys)

    with jax.enable_x64(True):
        wanted = of(jax_numpy, jax.lax.linalg, jax)
    close(of(jnp, lax.linalg, corejax), wanted, 1e-8)
    outside = corejax.grad(
        lambda t: corejax.vmap(lambda y: likelihood(jnp, lax.linalg.triangular_solve, t, x, y))(ys).sum()
    )
    close(outside(jnp.asarray(theta)), np.sum(np.asarray(wanted), axis=0), 1e-8)


def test_a_hessian_of_a_logarithm_of_a_determinant() -> None:
    p = definite(3, 3)
    hessian = corejax.jit(corejax.hessian(lambda a: jnp.linalg.slogdet(a)[1]))(p)
    inverse = np.linalg.inv(p)
    close(hessian, -np.einsum("li,jk->ijkl", inverse, inverse), 1e-9)


def test_a_scan_of_solutions_is_differentiated() -> None:
    a, b = random(4, 4) + 4 * np.eye(4), random(4)

    def f(library: Any, scan: Any, a: Any) -> Any:
        step = lambda x, k: (library.linalg.solve(a + k * library.eye(4), x + b), x[0])
        last, seen = scan(step, library.zeros(4, "float64"), library.arange(3.0, dtype="float64"))
        return library.sum(last**2) + library.sum(seen)

    with jax.enable_x64(True):
        wanted = jax.grad(lambda a: f(jax_numpy, jax.lax.scan, a))(a)
    ours = lambda a: f(jnp, lax.scan, a)
    close(corejax.grad(ours)(jnp.asarray(a)), wanted)
    close(corejax.jit(corejax.grad(corejax.checkpoint(ours)))(a), wanted)


def test_solutions_share_their_factors_with_derivatives() -> None:
    a, b = random(4, 4), random(4)
    program = corejax.make_jaxpr(corejax.grad(lambda a: jnp.sum(jnp.linalg.solve(a, b))))(a)
    assert str(program).count(" lu ") == 1
