"""Evolve towards a minimum."""

import jax
import jax.numpy as jnp
from evosax.algorithms import CMA_ES

strategy = CMA_ES(population_size=16, solution=jnp.zeros(2))
params = strategy.default_params
state = strategy.init(jax.random.key(0), jnp.zeros(2), params)
for i in range(30):
    population, state = strategy.ask(jax.random.key(i), state, params)
    state, _ = strategy.tell(jax.random.key(i), population, jnp.sum((population - 1.0) ** 2, -1), state, params)
assert jnp.abs(state.mean - 1.0).max() < 0.3
