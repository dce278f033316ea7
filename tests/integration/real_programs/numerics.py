"""Differential equations, optimisation, images, bits."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tests.integration.real_programs.registry import floats, integers, program


@program(np.array([1.0, 1.0, 1.0], np.float32), np.float32(0.02))
def rk4_lorenz(jax: Any, y0: Any, dt: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax

    def f(t, y):
        x, y_, z = y
        return jnp.array([10.0 * (y_ - x), x * (28.0 - z) - y_, x * y_ - 8.0 / 3.0 * z])

    def step(y, t):
        k1 = f(t, y)
        k2 = f(t + dt / 2, y + dt * k1 / 2)
        k3 = f(t + dt / 2, y + dt * k2 / 2)
        k4 = f(t + dt, y + dt * k3)
        y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y, y

    ts = jnp.linspace(0.0, 1.0, 10, endpoint=False)
    return lax.scan(step, y0, ts)


@program(np.array([1.0, 0.0], np.float32), grad=None)
def dormand_prince(jax: Any, y0: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax
    c = jnp.array([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0])
    beta = jnp.array(
        [
            [1 / 5, 0, 0, 0, 0, 0, 0],
            [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
            [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
            [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
            [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
            [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
        ]
    )
    c_err = jnp.array(
        [
            35 / 384 - 1951 / 21600,
            0,
            500 / 1113 - 22642 / 50085,
            125 / 192 - 451 / 720,
            -2187 / 6784 + 12231 / 42400,
            11 / 84 - 649 / 6300,
            -1 / 60,
        ]
    )

    def func(y, t):
        return jnp.array([y[1], -y[0]]) * (1 + 0.1 * t)

    def step(y, t, dt):
        k = jnp.zeros((7, 2)).at[0].set(func(y, t))

        def body(i, k):
            yi = y + dt * jnp.dot(beta[i - 1], k)
            return k.at[i].set(func(yi, t + dt * c[i]))

        k = lax.fori_loop(1, 7, body, k)
        y1 = y + dt * jnp.dot(beta[-1], k)
        err = dt * jnp.dot(c_err, k)
        return y1, jnp.sqrt(jnp.mean((err / (1e-4 + 1e-4 * jnp.maximum(jnp.abs(y), jnp.abs(y1)))) ** 2))

    def cond(s):
        _y, t, _dt, n = s
        return (t < 2.0) & (n < 200)

    def body(s):
        y, t, dt, n = s
        dt = jnp.minimum(dt, 2.0 - t)
        y1, err = step(y, t, dt)
        factor = jnp.clip(0.9 * jnp.where(err == 0, 10.0, err**-0.2), 0.2, 10.0)
        ok = err <= 1.0
        return jnp.where(ok, y1, y), jnp.where(ok, t + dt, t), dt * factor, n + 1

    return lax.while_loop(cond, body, (y0, 0.0, 0.1, 0))


@program(floats(5, 3), floats(5, 3, seed=1), np.abs(floats(5, seed=2)) + 1)
def n_body(jax: Any, pos: Any, vel: Any, mass: Any) -> Any:
    jnp = jax.numpy

    def pair(xi, xj, mj):
        d = xj - xi
        r2 = jnp.sum(d * d) + 1e-2
        return mj * d * r2**-1.5

    def acc(pos):
        return jax.vmap(lambda xi: jax.vmap(pair, in_axes=(None, 0, 0))(xi, pos, mass).sum(axis=0))(pos)

    def leapfrog(carry, _):
        pos, vel = carry
        vel = vel + 0.005 * acc(pos)
        pos = pos + 0.01 * vel
        vel = vel + 0.005 * acc(pos)
        energy = 0.5 * jnp.sum(mass * (vel**2).sum(-1))
        return (pos, vel), energy

    return jax.lax.scan(leapfrog, (pos, vel), xs=None, length=4)


@program(integers(2, 9, 10).astype(np.uint8), grad=None)
def game_of_life(jax: Any, board: Any) -> Any:
    jnp = jax.numpy

    def torus(b):
        n = sum(jnp.roll(b, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        return ((n == 3) | ((b == 1) & (n == 2))).astype(b.dtype)

    def dead_edges(b):
        p = jnp.pad(b, 1)
        h, w = b.shape
        n = sum(p[1 + i : 1 + i + h, 1 + j : 1 + j + w] for i in (-1, 0, 1) for j in (-1, 0, 1)) - b
        return jnp.where(b, (n == 2) | (n == 3), n == 3).astype(jnp.uint8)

    a = jax.lax.fori_loop(0, 4, lambda i, b: torus(b), board)
    b = jax.lax.fori_loop(0, 4, lambda i, b: dead_edges(b), board)
    return a, b, jnp.count_nonzero(a), jnp.packbits(b, axis=-1)


@program(np.linspace(-2, 0.5, 7, dtype=np.float32), np.linspace(-1, 1, 5, dtype=np.float32), grad=None)
def mandelbrot(jax: Any, xs: Any, ys: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax
    X, Y = jnp.meshgrid(xs, ys)
    c = X + 1j * Y

    def point(c):
        def cond(s):
            z, i = s
            return (i < 50) & (jnp.abs(z) <= 2)

        return lax.while_loop(cond, lambda s: (s[0] ** 2 + c, s[1] + 1), (jnp.zeros_like(c), 0))[1]

    return jax.vmap(jax.vmap(point))(c), jnp.real(c), lax.complex(X, Y).conj()


@program(integers(256, 10, 12).astype(np.uint8), grad=None)
def histogram_equalisation(jax: Any, image: Any) -> Any:
    jnp = jax.numpy
    hist, edges = jnp.histogram(image, bins=16, range=(0, 256))
    counts = jnp.bincount(image.ravel(), length=256)
    cdf = counts.cumsum()
    lo = cdf[jnp.nonzero(counts, size=1)[0][0]]
    out = jnp.round((cdf - lo) / (cdf[-1] - lo) * 255).astype(jnp.uint8)
    lut = jnp.interp(jnp.arange(256), jnp.array([0, 128, 255]), jnp.array([0.0, 200.0, 255.0]))
    return hist, edges, out[image], lut[image], jnp.percentile(image, jnp.array([5, 50, 95])), jnp.median(image)


@program(floats(6, 7, 3), np.float32(0.2), grad=(0,))
def augmentation(jax: Any, image: Any, factor: Any) -> Any:
    jnp = jax.numpy
    big = jax.image.resize(image, (9, 11, 3), method="bilinear")
    small = jax.image.resize(image, shape=(3, 4, 3), method="nearest")
    cubic = jax.image.resize(image, (4, 9, 3), "bicubic", antialias=False)
    crop = jax.lax.dynamic_slice(big, (jnp.int32(2), 3, 0), (5, 5, 3))
    flip = jnp.flip(crop, axis=1)
    grey = flip @ jnp.array([0.299, 0.587, 0.114])
    contrast = jnp.clip((flip - flip.mean()) * (1 + factor) + flip.mean(), -2, 2)
    rot = jnp.rot90(contrast, k=1, axes=(0, 1))
    padded = jnp.pad(rot, ((2, 2), (2, 2), (0, 0)), mode="reflect")
    return padded, small, cubic, grey[..., None]


@program(floats(9, 9), grad=(0,))
def filters(jax: Any, image: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax
    t = jnp.arange(-2, 3)
    g = jnp.exp(-(t**2) / 2.0)
    g = g / g.sum()
    blur = jnp.apply_along_axis(lambda r: jnp.convolve(r, g, mode="same"), 0, image)
    blur = jax.vmap(lambda r: jnp.convolve(r, g, mode="same"))(blur)
    sobel = jnp.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]], dtype=jnp.float32)
    both = jnp.stack([sobel, sobel.T])[:, None]
    edges = lax.conv(image[None, None], both, (1, 1), "SAME")
    mag = jnp.hypot(edges[0, 0], edges[0, 1] + 0.01)
    up = lax.conv_transpose(image[None, :, :, None], jnp.ones((2, 2, 1, 1)), (2, 2), "SAME")
    gy, gx = jnp.gradient(image)
    return blur, mag, up, jnp.arctan2(gy, gx + 3.0), jnp.correlate(image[0], g, "valid")


@program(floats(9), floats(5, seed=1), np.sort(integers(6, 9)), integers(5, 9, seed=2), grad=(0, 1))
def sparse_matvec(jax: Any, data: Any, x: Any, rows: Any, cols: Any) -> Any:
    jnp = jax.numpy
    y = jax.ops.segment_sum(data * x[cols], rows, num_segments=6, indices_are_sorted=True)
    dense = jnp.zeros((6, 5)).at[rows, cols].add(data, mode="drop")
    yt = jnp.zeros(5).at[cols].add(data * y[rows], unique_indices=False)
    return y, dense @ x - y, yt, dense[jnp.array([0, -1])][:, ::2]


@program(np.float32(0.7), np.array([0.1, 0.5, 0.9], np.float32), grad=(0, 1))
def implicit_differentiation(jax: Any, a: Any, xs: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax

    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def fixed_point(f, a, x0):
        def cond(c):
            prev, cur = c
            return jnp.abs(prev - cur) > 1e-6

        return lax.while_loop(cond, lambda c: (c[1], f(a, c[1])), (x0, f(a, x0)))[1]

    def fwd(f, a, x0):
        x = fixed_point(f, a, x0)
        return x, (a, x)

    def bwd(f, res, ct):
        a, x = res
        _, vjp_a = jax.vjp(lambda a: f(a, x), a)
        _, vjp_x = jax.vjp(lambda x: f(a, x), x)
        w = lax.fori_loop(0, 40, lambda i, w: ct + vjp_x(w)[0], ct)
        return vjp_a(w)[0], jnp.zeros_like(x)

    fixed_point.defvjp(fwd, bwd)

    def newton_sqrt(a, x):
        return fixed_point(lambda a, x: 0.5 * (x + a / x), a, x)

    return jax.vmap(newton_sqrt, in_axes=(None, 0))(a, xs + 1.0), jax.vmap(
        lambda x: fixed_point(lambda a, x: jnp.cos(a * x), a, x)
    )(xs)


@program(floats(4), grad=None, tol=2e-3)
def l_bfgs(jax: Any, x0: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax
    m, n = 3, 4
    A = jnp.diag(jnp.arange(1.0, 5.0))

    def f(x):
        return 0.5 * x @ A @ x + jnp.sum(jnp.cos(x))

    def direction(g, S, Y, rho, k):
        def first(i, c):
            q, al = c
            j = m - 1 - i
            a = rho[j] * jnp.vdot(S[j], q)
            return q - a * Y[j], al.at[j].set(a)

        q, al = lax.fori_loop(0, m, first, (g, jnp.zeros(m)))
        gamma = jnp.where(k > 0, jnp.vdot(S[-1], Y[-1]) / jnp.maximum(jnp.vdot(Y[-1], Y[-1]), 1e-10), 0.1)

        def second(j, r):
            b = rho[j] * jnp.vdot(Y[j], r)
            return r + S[j] * (al[j] - b)

        return -lax.fori_loop(0, m, second, gamma * q)

    def body(k, state):
        x, g, S, Y, rho = state
        p = direction(g, S, Y, rho, k)

        def ls_cond(t):
            return (f(x + t * p) > f(x) + 1e-4 * t * jnp.vdot(g, p)) & (t > 1e-4)

        t = lax.while_loop(ls_cond, lambda t: t * 0.5, 1.0)
        xn = x + t * p
        gn = jax.grad(f)(xn)
        s, y = xn - x, gn - g
        ys = jnp.vdot(y, s)
        return lax.cond(
            ys > 1e-10,
            lambda: (
                xn,
                gn,
                jnp.roll(S, -1, 0).at[-1].set(s),
                jnp.roll(Y, -1, axis=0).at[-1].set(y),
                jnp.roll(rho, -1).at[-1].set(1 / ys),
            ),
            lambda: (xn, gn, S, Y, rho),
        )

    x, g, *_ = lax.fori_loop(0, 10, body, (x0, jax.grad(f)(x0), jnp.zeros((m, n)), jnp.zeros((m, n)), jnp.zeros(m)))
    return x, jnp.max(jnp.abs(g)) < 1e-2


@program(integers(2**31 - 1, 8).astype(np.uint32), grad=None)
def bit_tricks(jax: Any, x: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax

    def rotl(x, r):
        return (x << jnp.uint32(r)) | (x >> jnp.uint32(32 - r))

    def murmur(h):
        h ^= h >> 16
        h *= jnp.uint32(0x85EBCA6B)
        h ^= h >> 13
        h *= np.uint32(0xC2B2AE35)
        return h ^ (h >> 16)

    bits = (x[:, None] >> jnp.arange(32, dtype=jnp.uint32)) & 1
    f = lax.bitcast_convert_type((murmur(x) >> np.uint32(9)) | np.uint32(0x3F800000), jnp.float32) - 1.0
    return (
        lax.population_count(x),
        lax.clz(x),
        rotl(x, 7),
        murmur(x),
        bits.sum(-1),
        f,
        jnp.bitwise_count(x),
        ~x,
        x ^ x[::-1],
        jnp.invert(x),
        (-x),
        lax.shift_right_logical(x, jnp.uint32(3)),
        jnp.unpackbits(x.astype(jnp.uint8)),
        x.view(jnp.int32),
        x % 7,
        x // 3,
    )


@program(floats(6, 2), floats(6, seed=1), floats(4, 2, seed=2), grad=(1, 2), tol=5e-3)
def rbf_interpolation(jax: Any, pts: Any, vals: Any, query: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax

    def phi(a, b):
        return jnp.exp(-jnp.sum((a - b) ** 2))

    gram = jax.vmap(jax.vmap(phi, (None, 0)), (0, None))
    A = gram(pts, pts) + 0.1 * jnp.eye(len(pts))

    def cg(A, b, n=8):
        def body(c, _):
            x, r, p = c
            Ap = A @ p
            rr = r @ r
            a = rr / (p @ Ap + 1e-12)
            x, r2 = x + a * p, r - a * Ap
            return (x, r2, r2 + (r2 @ r2) / (rr + 1e-12) * p), None

        (x, _, _), _ = lax.scan(body, (jnp.zeros_like(b), b, b), length=n)
        return x

    w = lax.custom_linear_solve(lambda v: A @ v, vals, lambda mv, b: cg(A, b), symmetric=True)
    return gram(query, pts) @ w


@program(np.float32(1.3), floats(5), grad=(0, 1))
def transformations(jax: Any, a: Any, x: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax

    def f(x):
        return jnp.sum(jnp.sin(a * x) * x)

    _, hvp = jax.jvp(jax.grad(f), (x,), (jnp.ones_like(x),))
    y, lin = jax.linearize(f, x)
    _, pull = jax.vjp(lambda x: {"s": jnp.sin(x), "c": (jnp.cos(x), x[:2])}, x)
    (pulled,) = pull({"s": x, "c": (x, x[:2])})
    H = jax.hessian(f)(x)
    branch = lax.switch(jnp.array(1), [jnp.sin, jnp.cos, lambda x: x], x)
    picked = lax.cond(a > 1, lambda t: t * 2, lambda t: t - 1, x)
    assoc = lax.associative_scan(jnp.add, x)

    @jax.custom_jvp
    def log1pexp(x):
        return jnp.log(1.0 + jnp.exp(x))

    @log1pexp.defjvp
    def _(primals, tangents):
        (x,), (t,) = primals, tangents
        return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * t

    flat, unravel = jax.flatten_util.ravel_pytree({"a": a, "x": x})
    shape = jax.eval_shape(f, jax.ShapeDtypeStruct((5,), jnp.float32))
    assert shape.shape == () and shape.dtype == jnp.float32
    return (
        hvp,
        y,
        lin(x),
        pulled,
        H,
        branch,
        picked,
        assoc,
        log1pexp(x),
        unravel(2 * flat),
        jax.lax.map(lambda t: t**2, x),
        jnp.vectorize(lambda m, v: m @ v, signature="(n,m),(m)->(n)")(H, x),
    )
