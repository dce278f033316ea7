"""Neural networks and what trains them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tests.integration.real_programs.registry import floats, integers, program


@program(
    {"w1": floats(4, 8), "b1": floats(8), "w2": floats(8, 3, seed=1), "b2": floats(3)}, floats(16, 4), integers(3, 16)
)
def mlp_with_adam(jax: Any, params: Any, x: Any, y: Any) -> Any:
    jnp = jax.numpy

    def predict(p, x):
        h = jax.nn.gelu(jnp.dot(x, p["w1"]) + p["b1"])
        return jnp.dot(h, p["w2"]) + p["b2"]

    def loss(p):
        logp = jax.nn.log_softmax(predict(p, x))
        l2 = sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree_util.tree_leaves(p))
        return -jnp.take_along_axis(logp, y[:, None], axis=1).mean() + 1e-4 * l2

    m = jax.tree.map(jnp.zeros_like, params)
    v = jax.tree.map(jnp.zeros_like, params)

    @jax.jit
    def step(i, state):
        p, m, v = state
        value, g = jax.value_and_grad(loss)(p)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, v, g)
        mhat = jax.tree.map(lambda m: m / (1 - 0.9 ** (i + 1)), m)
        vhat = jax.tree.map(lambda v: v / (1 - 0.999 ** (i + 1)), v)
        p = jax.tree.map(lambda p, m, v: p - 1e-2 * m / (jnp.sqrt(v) + 1e-8), p, mhat, vhat)
        return (p, m, v), value

    state = params, m, v
    for i in range(2):
        state, value = step(i, state)
    correct = jnp.argmax(predict(state[0], x), axis=-1) == y
    return state[0], value, jnp.mean(correct)


@program(
    {"conv1": floats(3, 3, 1, 4), "conv2": floats(3, 3, 4, 8, seed=1), "dense": floats(8, 10)},
    floats(2, 8, 8, 1),
    integers(10, 2),
)
def cnn(jax: Any, params: Any, images: Any, labels: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax

    def conv(x, w, stride=1):
        return lax.conv_general_dilated(
            x, w, window_strides=(stride, stride), padding="SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def max_pool(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def avg_pool(x):
        s = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return s / 4

    x = max_pool(jax.nn.relu(conv(images, params["conv1"])))
    x = avg_pool(jax.nn.elu(conv(x, params["conv2"])))
    x = x.mean(axis=(1, 2))
    logits = x @ params["dense"]
    onehot = jax.nn.one_hot(labels, 10, dtype=logits.dtype)
    return -jnp.mean(jnp.sum(onehot * jax.nn.log_softmax(logits, axis=-1), axis=-1)), logits


@program(floats(2, 6, 6, 4), floats(3, 3, 4, 4), floats(3, 3, 4, 4, seed=1), floats(4), floats(4), grad=(0, 1, 2, 3, 4))
def resnet_block(jax: Any, x: Any, w1: Any, w2: Any, scale: Any, bias: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax
    dn = lax.conv_dimension_numbers(x.shape, w1.shape, ("NHWC", "HWIO", "NHWC"))

    def norm(x):
        mean = jnp.mean(x, axis=(0, 1, 2), keepdims=True)
        var = jnp.var(x, axis=(0, 1, 2), keepdims=True)
        return (x - mean) * lax.rsqrt(var + 1e-5) * scale + bias

    h = jax.nn.relu(norm(lax.conv_general_dilated(x, w1, (2, 2), "SAME", dimension_numbers=dn)))
    h = norm(lax.conv_general_dilated(h, w2, (1, 1), [(1, 1), (1, 1)], dimension_numbers=dn))
    shortcut = lax.conv_general_dilated(x, jnp.eye(4)[None, None], (2, 2), "SAME", dimension_numbers=dn)
    return jax.nn.relu(h + shortcut)


@program(
    {
        "qkv": floats(8, 24, scale=0.3),
        "o": floats(8, 8),
        "up": floats(8, 16),
        "down": floats(16, 8),
        "emb": floats(11, 8),
        "ln": np.ones(8, np.float32),
    },
    integers(11, 2, 5),
)
def transformer(jax: Any, p: Any, tokens: Any) -> Any:
    jnp = jax.numpy

    def rms(x):
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * p["ln"]

    def rope(x):
        d = x.shape[-1]
        freqs = 1.0 / (10000 ** (jnp.arange(0, d, 2, dtype=jnp.float32) / d))
        angles = jnp.outer(jnp.arange(x.shape[1]), freqs)
        cos, sin = jnp.cos(angles)[None, :, None, :], jnp.sin(angles)[None, :, None, :]
        x1, x2 = x[..., ::2], x[..., 1::2]
        return jnp.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], axis=-1).reshape(x.shape)

    def attend(x):
        B, T, C = x.shape
        q, k, v = jnp.split(x @ p["qkv"], 3, axis=-1)
        q, k, v = (t.reshape(B, T, 2, C // 2) for t in (q, k, v))
        q, k = rope(q), rope(k)
        s = jnp.einsum("bthd,bshd->bhts", q, k) / math.sqrt(C // 2)
        mask = jnp.tril(jnp.ones((T, T), dtype=bool))
        s = jnp.where(mask, s, jnp.finfo(s.dtype).min)
        out = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(s, axis=-1), v)
        return out.reshape(B, T, C) @ p["o"]

    @jax.checkpoint
    def block(x):
        x = x + attend(rms(x))
        return x + jax.nn.silu(rms(x) @ p["up"]) @ p["down"]

    x = p["emb"][tokens]
    for _ in range(2):
        x = block(x)
    logits = rms(x) @ p["emb"].T
    targets = jnp.roll(tokens, -1, axis=1)
    logp = jax.nn.log_softmax(logits[:, :-1])
    nll = -jnp.take_along_axis(logp, targets[:, :-1, None], axis=-1).squeeze(-1)
    return nll.mean(), jnp.exp(nll.mean())


@program(floats(3, 8, 2, 4), floats(3, 8, 2, 4, seed=1), floats(3, 8, 2, 4, seed=2), grad=(0, 1, 2))
def kv_cache_decoding(jax: Any, q: Any, k: Any, v: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax

    class Cache(NamedTuple):
        k: Any
        v: Any
        index: Any

    B, T, H, D = q.shape
    cache = Cache(jnp.zeros((B, T, H, D)), jnp.zeros((B, T, H, D)), jnp.array(0))

    def step(cache, qkv):
        q, k, v = qkv
        i = cache.index
        ks = lax.dynamic_update_slice(cache.k, k[:, None], (0, i, 0, 0))
        vs = lax.dynamic_update_slice_in_dim(cache.v, v[:, None], i, axis=1)
        scores = jnp.einsum("bhd,bthd->bht", q, ks) * D**-0.5
        scores = jnp.where(jnp.arange(T) <= i, scores, -jnp.inf)
        w = jax.nn.softmax(scores, axis=-1)
        return Cache(ks, vs, i + 1), jnp.einsum("bht,bthd->bhd", w, vs)

    swap = lambda x: jnp.swapaxes(x, 0, 1)
    cache, out = lax.scan(step, cache, jax.tree_util.tree_map(swap, (q, k, v)))
    return swap(out), cache.index, cache.k.sum()


@program((floats(3, 16, scale=0.5), floats(4, 16, scale=0.5, seed=1), floats(16)), floats(7, 2, 3))
def lstm(jax: Any, params: Any, xs: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax
    wx, wh, b = params

    def cell(carry, x):
        h, c = carry
        gates = x @ wx + h @ wh + b
        i, f, g, o = jnp.split(gates, indices_or_sections=4, axis=-1)
        c = jax.nn.sigmoid(f + 1.0) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    h0 = jnp.zeros((xs.shape[1], 4), xs.dtype)
    (h, c), hs = lax.scan(cell, (h0, h0), xs, unroll=2)
    return h, c, hs


@program((floats(3, 4), floats(4, 4, seed=1)), floats(6, 3), np.array([3, 6], np.int32))
def gru_with_lengths(jax: Any, params: Any, xs: Any, lengths: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax
    w, u = params

    def run(length):
        def body(t, h):
            z = jax.nn.sigmoid(xs[t] @ w + h @ u)
            cand = jnp.tanh(lax.dynamic_index_in_dim(xs, t, keepdims=False) @ w + (z * h) @ u)
            new = (1 - z) * h + z * cand
            return jnp.where(t < length, new, h)

        return lax.fori_loop(0, 6, body, jnp.zeros(4))

    return jax.vmap(run)(lengths)


@program(floats(5, 6), floats(6, 4), floats(2, 6, seed=2), floats(5, 2, seed=3), grad=(1, 2))
def vae_loss(jax: Any, x: Any, enc: Any, dec: Any, eps: Any) -> Any:
    jnp = jax.numpy
    stats = x @ enc
    mu, logvar = jnp.split(stats, [2], axis=-1)
    z = mu + jnp.exp(0.5 * logvar) * eps
    logits = z @ dec
    target = jax.nn.sigmoid(x)
    bce = jnp.sum(jnp.maximum(logits, 0) - logits * target + jnp.log1p(jnp.exp(-jnp.abs(logits))), axis=-1)
    kl = -0.5 * jnp.sum(1 + logvar - mu**2 - jnp.exp(logvar), axis=-1)
    return jnp.mean(bce + kl)


@program(floats(6, 4), floats(4, 4, seed=1), integers(6, 12), integers(6, 12, seed=1), grad=(0, 1))
def graph_network(jax: Any, nodes: Any, w: Any, senders: Any, receivers: Any) -> Any:
    jnp = jax.numpy
    n = nodes.shape[0]
    messages = jax.nn.leaky_relu((nodes @ w)[senders], 0.1)
    agg = jax.ops.segment_sum(messages, receivers, num_segments=n)
    deg = jax.ops.segment_sum(jnp.ones_like(receivers, dtype=jnp.float32), receivers, n)
    mean = agg / jnp.maximum(deg, 1)[:, None]
    logits = jnp.sum(nodes[senders] * nodes[receivers], axis=-1)
    mx = jax.ops.segment_max(logits, receivers, num_segments=n)
    mx = jnp.where(jnp.isfinite(mx), mx, 0.0)
    ex = jnp.exp(logits - jax.lax.stop_gradient(mx)[receivers])
    att = ex / jax.ops.segment_sum(ex, receivers, num_segments=n)[receivers]
    return nodes + jax.nn.tanh(mean), att


@program((floats(2, 2), floats(2)), floats(6, 2), grad=(0, 1))
def normalising_flow(jax: Any, params: Any, x: Any) -> Any:
    jnp = jax.numpy
    w, b = params

    def flow(z):
        h = jnp.tanh(w @ z + b)
        return jnp.array([z[0] * jnp.exp(0.3 * h[1]) + h[0], z[1] + 0.5 * jnp.sin(z[0])])

    def log_prob(z):
        J = jax.jacfwd(flow)(z)
        det = J[0, 0] * J[1, 1] - J[0, 1] * J[1, 0]
        y = flow(z)
        return -0.5 * jnp.sum(y**2) - jnp.log(2 * jnp.pi) + jnp.log(jnp.abs(det))

    return jnp.mean(jax.vmap(log_prob)(x)), jax.vmap(jax.jacrev(flow))(x)


@program({"w": floats(1, 8), "v": floats(8, 1, seed=1)}, floats(4, 5, 1), grad=(0,), tol=1e-3)
def maml(jax: Any, params: Any, xs: Any) -> Any:
    jnp = jax.numpy

    def model(p, x):
        return jnp.tanh(x @ p["w"]) @ p["v"]

    def loss(p, x, y):
        return jnp.mean((model(p, x) - y) ** 2)

    def adapted(x):
        y = jnp.sin(x)
        g = jax.grad(loss)(params, x, y)
        fast = jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, g)
        return loss(fast, x + 0.1, jnp.sin(x + 0.1))

    return jnp.mean(jax.vmap(adapted)(xs))


@program(floats(4, 8), floats(8, 3, seed=1), grad=(0,))
def quantised_matmul(jax: Any, x: Any, w: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax

    def quantise(x, axis):
        scale = jnp.max(jnp.abs(x), axis=axis, keepdims=True) / 127.0
        return jnp.clip(jnp.round(x / scale), -127, 127).astype(jnp.int8), scale

    qx, sx = quantise(x, 1)
    qw, sw = quantise(w, 0)
    acc = lax.dot_general(qx, qw, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
    out = acc.astype(jnp.float32) * sx * sw
    ste = x + lax.stop_gradient(qx * sx - x)
    half = jnp.matmul(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16), preferred_element_type=jnp.float32)
    i4 = jnp.clip(jnp.round(w * 3), -8, 7).astype(jnp.int4)
    return out, ste @ w, half, (i4.astype(jnp.int8) + jnp.int8(1)), x.astype(jnp.float8_e4m3fn).astype(jnp.float32)
