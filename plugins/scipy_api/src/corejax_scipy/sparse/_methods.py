"""The iterations of `cg`, `bicgstab` and `gmres` on one vector."""

from __future__ import annotations

from typing import Any

import corejax.numpy as jnp
from corejax_lax_basic import lax

_HIGHEST = lax.Precision.HIGHEST


def _inner(x: Any, y: Any) -> Any:
    """Return `conj(x) . y`."""
    return jnp.vdot(x, y, precision=_HIGHEST)


def _square(x: Any) -> Any:
    """Return `|x|**2`, a real number."""
    return jnp.real(_inner(x, x))


def _limit(b: Any, tol: Any, atol: Any) -> Any:
    """Return the square of the residual's norm at which the iteration ends."""
    return jnp.maximum(jnp.square(tol) * _square(b), jnp.square(atol)).astype(jnp.real(b).dtype)


def cg_vectors(A: Any, M: Any, b: Any, x: Any, *, tol: Any, atol: Any, maxiter: Any) -> Any:
    """Solve by preconditioned conjugate gradients (Saad 2003, algorithm 9.1)."""
    limit = _limit(b, tol, atol)

    def going(state: Any) -> Any:
        _, r, _, _, k = state
        return (_square(r) > limit) & (k < maxiter)

    def step(state: Any) -> Any:
        x, r, p, gamma, k = state
        image = A(p)
        alpha = gamma / _inner(p, image)
        x, r = x + alpha * p, r - alpha * image
        z = M(r)
        new = _inner(r, z)
        return x, r, z + (new / gamma) * p, new, k + 1

    r = b - A(x)
    z = M(r)
    return lax.while_loop(going, step, (x, r, z, _inner(r, z), 0))[0]


def bicgstab_vectors(A: Any, M: Any, b: Any, x: Any, *, tol: Any, atol: Any, maxiter: Any) -> Any:
    """Solve by preconditioned BiCGSTAB (van der Vorst 1992); ends if a denominator is 0."""
    limit = _limit(b, tol, atol)

    def going(state: Any) -> Any:
        _, r, *_, k = state
        return (_square(r) > limit) & (k < maxiter)

    def step(state: Any) -> Any:
        x, r, shadow, p, q, rho, alpha, omega, k = state
        new_rho = _inner(shadow, r)
        p = r + (new_rho / rho) * (alpha / omega) * (p - omega * q)
        direction = M(p)
        q = A(direction)
        alpha = new_rho / _inner(shadow, q)
        s = r - alpha * q
        enough = _square(s) <= limit
        other = M(s)
        image = A(other)
        omega = _inner(image, s) / jnp.where(enough, 1, _inner(image, image))
        half = x + alpha * direction
        x = jnp.where(enough, half, half + omega * other)
        r = jnp.where(enough, s, s - omega * image)
        broken = (omega == 0) | (alpha == 0) | (new_rho == 0)
        return x, r, shadow, p, q, new_rho, alpha, omega, jnp.where(broken & ~enough, maxiter, k + 1)

    r = b - A(x)
    one = jnp.ones((), b.dtype)
    start = (x, r, r, jnp.zeros_like(r), jnp.zeros_like(r), one, one, one, jnp.asarray(0))
    return lax.while_loop(going, step, start)[0]


# -- gmres -------------------------------------------------------------------------------------------------------


def _rotated(column: Any, cosines: Any, sines: Any, k: Any) -> Any:
    """Apply the first `k` plane rotations to a column of the Hessenberg matrix."""

    def rotate(i: Any, column: Any) -> Any:
        upper, lower = column[i], column[i + 1]
        turned = column.at[i].set(cosines[i] * upper + sines[i] * lower)
        return turned.at[i + 1].set(-jnp.conj(sines[i]) * upper + cosines[i] * lower)

    return lax.fori_loop(0, k, rotate, column)


def _rotation(upper: Any, lower: Any) -> tuple[Any, Any]:
    """Return the (real) cosine and the sine of the rotation that makes `lower` zero."""
    size = jnp.sqrt(jnp.square(jnp.abs(upper)) + jnp.square(jnp.abs(lower)))
    safe = jnp.where(size == 0, 1, size)
    top = jnp.abs(upper)
    phase = jnp.where(top == 0, 1, upper / jnp.where(top == 0, 1, top))
    return jnp.where(size == 0, 1, top / safe).astype(upper.dtype), phase * jnp.conj(lower) / safe


def _arnoldi(A: Any, M: Any, vectors: Any, k: Any) -> tuple[Any, Any]:
    """Compute the next orthonormal vector, and its column of the Hessenberg matrix."""
    image = M(A(vectors[k]))
    before = jnp.sqrt(_square(image))
    column = jnp.zeros(vectors.shape[0], vectors.dtype)
    for _ in range(2):  # orthogonalise twice, since once loses digits
        parts = jnp.matmul(jnp.conj(vectors), image, precision=_HIGHEST)
        image = image - jnp.matmul(parts, vectors, precision=_HIGHEST)
        column = column + parts
    size = jnp.sqrt(_square(image))
    size = jnp.where(size > jnp.finfo(size.dtype).eps * before, size, 0)
    unit = jnp.where(size > 0, image / jnp.where(size > 0, size, 1), 0).astype(image.dtype)
    return vectors.at[k + 1].set(unit), column.at[k + 1].set(size.astype(column.dtype))


def _back_substitution(R: Any, g: Any) -> Any:
    """Solve `R y = g` with upper triangular `R`."""
    count = g.shape[0]

    def row(i: Any, y: Any) -> Any:
        at = count - 1 - i
        rest = g[at] - jnp.sum(R[at] * y)
        pivot = R[at, at]
        return y.at[at].set(jnp.where(pivot == 0, 0, rest / jnp.where(pivot == 0, 1, pivot)))

    return lax.fori_loop(0, count, row, jnp.zeros_like(g))


def gmres_vectors(A: Any, M: Any, b: Any, x: Any, *, tol: Any, atol: Any, restart: int, maxiter: Any) -> Any:
    """Solve by restarted GMRES with plane rotations (Saad 2003, section 6.5.3)."""
    count = min(restart, b.size)
    if not b.size:
        return b
    limit = jnp.sqrt(_limit(b, tol, atol))
    size_b, size_mb = jnp.sqrt(_square(b)), jnp.sqrt(_square(M(b)))
    inner_limit = size_mb * jnp.minimum(1, limit / jnp.where(size_b == 0, 1, size_b))

    def cycle(state: Any) -> Any:
        x, _, done = state
        r = M(b - A(x))
        beta = jnp.sqrt(_square(r))
        first = r / jnp.where(beta == 0, 1, beta)
        vectors = jnp.zeros((count + 1, b.size), b.dtype).at[0].set(first)
        g = jnp.zeros(count + 1, b.dtype).at[0].set(beta.astype(b.dtype))
        start = (vectors, jnp.eye(count, dtype=b.dtype), g, jnp.zeros(count, b.dtype), jnp.zeros(count, b.dtype), 0)
        vectors, R, g, _, _, k = lax.while_loop(unfinished, add_vector, start)
        y = _back_substitution(R, jnp.where(jnp.arange(count) < k, g[:-1], 0))
        x = x + jnp.matmul(y, vectors[:-1], precision=_HIGHEST)
        return x, jnp.sqrt(_square(b - A(x))), done + 1

    def unfinished(state: Any) -> Any:
        *_, g, _, _, k = state
        return (k < count) & (jnp.abs(g[k]) > inner_limit)

    def add_vector(state: Any) -> Any:
        vectors, R, g, cosines, sines, k = state
        vectors, column = _arnoldi(A, M, vectors, k)
        column = _rotated(column, cosines, sines, k)
        c, s = _rotation(column[k], column[k + 1])
        g = g.at[k + 1].set(-jnp.conj(s) * g[k]).at[k].set(c * g[k])
        column = column.at[k].set(c * column[k] + s * column[k + 1])
        R = R.at[:, k].set(jnp.where(jnp.arange(count) <= k, column[:-1], 0))
        return vectors, R, g, cosines.at[k].set(c), sines.at[k].set(s), k + 1

    def going(state: Any) -> Any:
        _, residual, done = state
        return (residual > limit) & (done < maxiter)

    return lax.while_loop(going, cycle, (x, jnp.sqrt(_square(b - A(x))), 0))[0]
