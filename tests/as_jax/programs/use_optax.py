"""Fit a line by Adam with a schedule and clipping."""

import jax
import jax.numpy as jnp
import optax

x = jnp.linspace(-1.0, 1.0, 32)
y = 3.0 * x - 0.5


def loss(params):
    return optax.l2_loss(params["w"] * x + params["b"], y).mean()


optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(0.2, 200)))
params = {"w": jnp.zeros(()), "b": jnp.zeros(())}
state = optimizer.init(params)


@jax.jit
def step(params, state):
    value, grads = jax.value_and_grad(loss)(params)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value


for _ in range(200):
    params, state, value = step(params, state)
assert value < 1e-4, value
