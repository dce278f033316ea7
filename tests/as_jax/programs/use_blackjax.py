"""Sample a normal distribution by NUTS with window adaptation."""

import blackjax
import jax
import jax.numpy as jnp


def log_density(x):
    return -0.5 * jnp.sum((x["a"] - 1.0) ** 2)


start = {"a": jnp.zeros(2)}
warmup = blackjax.window_adaptation(blackjax.nuts, log_density)
(state, parameters), _ = warmup.run(jax.random.key(0), start, num_steps=100)
kernel = jax.jit(blackjax.nuts(log_density, **parameters).step)
_, positions = jax.lax.scan(
    lambda s, k: (lambda new: (new, new.position["a"]))(kernel(k, s)[0]),
    state,
    jax.random.split(jax.random.key(1), 200),
)
assert jnp.abs(positions.mean(0) - 1.0).max() < 0.5
