"""Adam with tree.map over a nested dictionary, in a training loop under jit with donated buffers."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

import corejax
import corejax.numpy as jnp
from corejax import Array, lax, tree
from corejax.typing import ArrayLike

Params: TypeAlias = dict[str, dict[str, Array]]


class AdamState(NamedTuple):
    steps: Array
    mu: Params
    nu: Params


class Optimiser(NamedTuple):
    init: Callable[[Params], AdamState]
    update: Callable[[Params, AdamState], tuple[Params, AdamState]]


def adam(rate: float | Callable[[Array], Array], b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Optimiser:
    def init(params: Params) -> AdamState:
        return AdamState(jnp.zeros((), jnp.int32), tree.map(jnp.zeros_like, params), tree.map(jnp.zeros_like, params))

    def update(grads: Params, state: AdamState) -> tuple[Params, AdamState]:
        count = state.steps + 1
        mu = tree.map(lambda m, g: b1 * m + (1 - b1) * g, state.mu, grads)
        nu = tree.map(lambda v, g: b2 * v + (1 - b2) * jnp.square(g), state.nu, grads)
        step = rate(count) if callable(rate) else rate
        scale = step * jnp.sqrt(1 - b2**count) / (1 - b1**count)
        updates = tree.map(lambda m, v: -scale * m / (jnp.sqrt(v) + eps), mu, nu)
        return updates, AdamState(count, mu, nu)

    return Optimiser(init, update)


def global_norm(updates: Any) -> Array:
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree.leaves(updates)))


def schedule(count: Array) -> Array:
    return 0.1 * jnp.minimum(1.0, count / 10)


def loss(params: Params, x: ArrayLike, y: ArrayLike) -> Array:
    hidden = jnp.tanh(x @ params["first"]["w"] + params["first"]["b"])
    return jnp.mean((hidden @ params["second"]["w"] - y) ** 2)


optimiser = adam(schedule)


@functools.partial(corejax.jit, donate_argnums=(0, 1), static_argnames=("clip",))
def step(
    params: Params, state: AdamState, x: ArrayLike, y: ArrayLike, *, clip: float = 1.0
) -> tuple[Params, AdamState, Array]:
    value, grads = corejax.value_and_grad(loss)(params, x, y)
    norm = global_norm(grads)
    grads = tree.map(lambda g: g * jnp.minimum(1.0, clip / (norm + 1e-6)), grads)
    updates, state = optimiser.update(grads, state)
    return tree.map(jnp.add, params, updates), state, value


rng = np.random.default_rng(0)
params: Params = {
    "first": {"w": jnp.asarray(rng.normal(size=(3, 8)), jnp.float32), "b": jnp.zeros(8)},
    "second": {"w": jnp.asarray(rng.normal(size=(8, 1)), jnp.float32)},
}
state = optimiser.init(params)
x = rng.normal(size=(32, 3)).astype(np.float32)
y = x.sum(axis=1, keepdims=True)
value = loss(params, x, y)
for _ in range(5):
    params, state, value = step(params, state, x, y, clip=0.5)
average = tree.map(lambda p: lax.stop_gradient(p).mean().item(), params)
leaves, structure = tree.flatten(params)
paths = [corejax.tree_util.keystr(path) for path, _ in corejax.tree_util.tree_leaves_with_path(params)]
print(float(value), average, structure.num_leaves, len(leaves), paths, int(state.steps))
print(step.lower(params, state, x, y).compile().as_text()[:9])
