"""Probabilistic models, filters, sequences, statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.integration.real_programs.registry import floats, program


@program(floats(6, 2), floats(6), np.float32(0.3), grad=(0, 1, 2), tol=5e-3)
def gaussian_process(jax: Any, x: Any, y: Any, lengthscale: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax
    n = x.shape[0]

    def kernel(a, b):
        d2 = jnp.sum((a[:, None] - b[None]) ** 2, axis=-1)
        return jnp.exp(-d2 / (2 * jax.nn.softplus(lengthscale) ** 2))

    K = kernel(x, x) + 0.1 * jnp.identity(n)

    def cholesky(A):
        def column(L, j):
            s = A[:, j] - L @ L[j]
            d = jnp.sqrt(s[j])
            col = jnp.where(jnp.arange(n) >= j, s / d, 0.0)
            return L.at[:, j].set(col), None

        return lax.scan(column, jnp.zeros_like(A), jnp.arange(n))[0]

    def solve_lower(L, b):
        def row(i, z):
            return z.at[i].set((b[i] - jnp.dot(L[i], z)) / L[i, i])

        return lax.scan(lambda z, i: (row(i, z), None), jnp.zeros_like(b), jnp.arange(n))[0]

    L = cholesky(K)
    a = solve_lower(L, y)
    return 0.5 * a @ a + jnp.log(jnp.diag(L)).sum() + 0.5 * n * jnp.log(2 * jnp.pi)


@program(floats(32), np.random.default_rng(1).uniform(size=32).astype(np.float32), grad=(0,))
def particle_filter(jax: Any, particles: Any, u: Any) -> Any:
    jnp = jax.numpy
    n = particles.shape[0]
    logw = -0.5 * (particles - 0.3) ** 2
    w = jax.nn.softmax(logw)
    ess = 1.0 / jnp.sum(w**2)
    cdf = jnp.cumsum(jax.lax.stop_gradient(w))
    positions = (jnp.arange(n) + u[0]) / n
    idx = jnp.clip(jnp.searchsorted(cdf, positions), 0, n - 1)
    resampled = jnp.take(particles, idx, axis=0)
    loglik = jax.nn.logsumexp(logw) - jnp.log(n)
    return resampled, ess, loglik, idx, jnp.bincount(idx, length=n)


@program(floats(20, 2), grad=None)
def k_means(jax: Any, x: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax
    k = 3

    def assign(c):
        return jnp.argmin(((x[:, None, :] - c[None, :, :]) ** 2).sum(-1), axis=-1)

    def body(state):
        c, _, i = state
        a = assign(c)
        counts = jnp.bincount(a, length=k)
        new = jnp.zeros_like(c).at[a].add(x) / jnp.maximum(counts, 1)[:, None]
        return new, c, i + 1

    def cond(state):
        new, old, i = state
        return jnp.logical_and(i < 50, jnp.any(jnp.abs(new - old) > 1e-6))

    c, _, n = lax.while_loop(cond, body, (x[:k], x[:k] + 1, 0))
    return c, assign(c), n


@program(floats(10, 4), grad=(0,), tol=1e-3)
def pca(jax: Any, x: Any) -> Any:
    jnp = jax.numpy
    xc = x - x.mean(0, keepdims=True)
    cov = xc.T @ xc / (x.shape[0] - 1)
    comps = []
    for _i in range(2):

        def step(v, _, cov=cov):
            v = cov @ v
            return v / jnp.sqrt(jnp.vdot(v, v)), None

        v, _ = jax.lax.scan(step, jnp.ones(4) / 2.0, None, length=30)
        lam = v @ cov @ v
        cov = cov - lam * jnp.outer(v, v)
        comps.append(v * jnp.sign(v[jnp.argmax(jnp.abs(v))]))
    W = jnp.stack(comps)
    return jnp.abs(xc @ W.T), W.shape[0] * jnp.trace(cov), jnp.cov(x, rowvar=False)


@program(floats(6, 3), floats(3, 3, seed=1), floats(3, seed=2), grad=(0, 1, 2))
def hmm_forward_and_viterbi(jax: Any, loglik: Any, logtrans: Any, loginit: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax
    logtrans = jax.nn.log_softmax(logtrans, axis=1)
    init = jax.nn.log_softmax(loginit) + loglik[0]

    def forward(alpha, ll):
        alpha = jax.nn.logsumexp(alpha[:, None] + logtrans, axis=0) + ll
        return alpha, alpha

    def viterbi(delta, ll):
        scores = delta[:, None] + logtrans
        return jnp.max(scores, 0) + ll, jnp.argmax(scores, 0)

    alpha, _ = lax.scan(forward, init, loglik[1:])
    delta, back = lax.scan(viterbi, init, loglik[1:])
    last = jnp.argmax(delta)
    _, path = lax.scan(lambda s, b: (b[s], s), last, back, reverse=True)
    return jax.nn.logsumexp(alpha), delta.max(), path


@program(floats(8, 5), np.array([1, 2, 2], np.int32), grad=(0,))
def ctc_loss(jax: Any, logits: Any, labels: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax
    logp = jax.nn.log_softmax(logits)
    L = 2 * labels.shape[0] + 1
    ext = jnp.zeros(L, dtype=labels.dtype).at[1::2].set(labels)
    same = jnp.concatenate([jnp.ones(2, bool), ext[2:] == ext[:-2]])
    neg = -1e30
    a0 = jnp.full(L, neg).at[0].set(logp[0, 0]).at[1].set(logp[0, ext[1]])

    def step(a, lp):
        s1 = jnp.concatenate([jnp.array([neg]), a[:-1]])
        s2 = jnp.where(same, neg, jnp.pad(a, (2, 0), constant_values=neg)[:-2])
        a = jnp.logaddexp(jnp.logaddexp(a, s1), s2) + lp[ext]
        return a, None

    a, _ = lax.scan(step, a0, logp[1:])
    return -jnp.logaddexp(a[-1], a[-2])


@program(floats(7, 7), grad=None)
def beam_search(jax: Any, trans: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax
    logp = jax.nn.log_softmax(trans, axis=-1)
    beam, V, T = 3, 7, 4
    seqs = jnp.zeros((beam, T + 1), jnp.int32)
    scores = jnp.array([0.0] + [-jnp.inf] * (beam - 1))

    def step(carry, t):
        seqs, scores = carry
        last = seqs[:, t]
        total = scores[:, None] + logp[last]
        best, flat = lax.top_k(total.ravel(), beam)
        parent, token = flat // V, flat % V
        seqs = jnp.take(seqs, parent, axis=0).at[:, t + 1].set(token)
        return (seqs, best), parent

    (seqs, scores), parents = lax.scan(step, (seqs, scores), jnp.arange(T))
    return seqs, scores, parents, jnp.unravel_index(jnp.argmax(logp), logp.shape)


@program(floats(8, 2), np.float32(0.5), grad=(0, 1))
def kalman_filter(jax: Any, zs: Any, q: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax
    F = jnp.block([[jnp.eye(2), 0.1 * jnp.eye(2)], [jnp.zeros((2, 2)), jnp.eye(2)]])
    H = jnp.eye(2, 4)
    Q, R = q * jnp.eye(4), 0.1 * jnp.eye(2)

    def inv2(m):
        (a, b), (c, d) = m
        return jnp.array([[d, -b], [-c, a]]) / (a * d - b * c)

    def step(carry, z):
        m, P = carry
        m, P = F @ m, F @ P @ F.T + Q
        S = H @ P @ H.T + R
        K = P @ H.T @ inv2(S)
        r = z - H @ m
        m = m + K @ r
        P = (jnp.eye(4) - K @ H) @ P
        ll = -0.5 * (r @ inv2(S) @ r + jnp.log(S[0, 0] * S[1, 1] - S[0, 1] ** 2))
        return (m, P), (m, ll)

    (_m, P), (ms, lls) = lax.scan(step, (jnp.zeros(4), jnp.eye(4)), zs)
    return ms, lls.sum(), P


@program(floats(10, 3), floats(10, seed=1), grad=(0, 1), tol=1e-3)
def bayesian_linear_regression(jax: Any, X: Any, y: Any) -> Any:
    jnp = jax.numpy
    alpha, beta = 2.0, 25.0
    P = alpha * jnp.eye(3) + beta * X.T @ X

    def inv3(m):
        a, b, c = m
        cr = jnp.stack([jnp.cross(b, c), jnp.cross(c, a), jnp.cross(a, b)], axis=1)
        return cr / jnp.dot(a, jnp.cross(b, c))

    S = inv3(P)
    mu = beta * S @ X.T @ y
    var = 1 / beta + jnp.einsum("ni,ij,nj->n", X, S, X)
    return mu, var, jnp.corrcoef(X.T), jnp.vander(mu, 3), jnp.polyval(mu, y)


@program(floats(5, 6), grad=(0,))
def sinkhorn(jax: Any, cost: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax
    eps = 0.5
    n, m = cost.shape
    a, b = jnp.full((n,), 1 / n), jnp.full(m, 1.0 / m)
    K = -cost / eps

    def body(_, fg):
        f, g = fg
        f = jnp.log(a) - jax.nn.logsumexp(K + g[None, :], axis=1)
        g = jnp.log(b) - jax.nn.logsumexp(K + f[:, None], axis=0)
        return f, g

    f, g = lax.fori_loop(0, 5, body, (jnp.zeros(n), jnp.zeros(m)))
    return jnp.sum(jnp.exp(K + f[:, None] + g) * cost)


@program(floats(4, 3), np.array([True, False, True, True]), grad=(0,))
def masked_and_sorted(jax: Any, x: Any, mask: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax
    order = jnp.argsort(x[:, 0], descending=True)
    ranked = jnp.sort(x, axis=0)
    u, inv, counts = jnp.unique(jnp.array([3, 1, 3, 2]), return_inverse=True, return_counts=True, size=4, fill_value=-1)
    best, arg = lax.top_k(x, 2)
    quant = jnp.quantile(x, jnp.array([0.25, 0.5]), axis=0)
    (ind,) = jnp.where(mask, size=3)
    y = jnp.where(mask[:, None], x, 0).sum(0) / mask.sum()
    _keys, v1 = lax.sort((x[:, 1], x[:, 2]), num_keys=1)
    return (
        x[order],
        ranked,
        u,
        inv,
        counts,
        best,
        arg,
        quant,
        ind,
        y,
        v1,
        jnp.nanmean(jnp.where(mask[:, None], x, jnp.nan), axis=0),
        jnp.lexsort((x[:, 0], x[:, 1])),
    )
