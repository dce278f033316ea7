"""Roll out an environment."""

import jax
from brax import envs

environment = envs.get_environment("inverted_pendulum", backend="spring")
state = jax.jit(environment.reset)(jax.random.PRNGKey(0))
step = jax.jit(environment.step)
for _ in range(3):
    state = step(state, jax.numpy.zeros(environment.action_size))
assert state.obs.shape == (4,)
