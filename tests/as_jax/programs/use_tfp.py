"""Distributions of TensorFlow Probability's JAX substrate."""

import jax
import jax.numpy as jnp
from tensorflow_probability.substrates import jax as tfp

normal = tfp.distributions.Normal(0.0, 1.0)
assert normal.sample(3, seed=jax.random.PRNGKey(0)).shape == (3,)
assert jnp.isfinite(jax.jit(jax.grad(tfp.distributions.Gamma(2.0, 1.0).log_prob))(0.7))
states = tfp.mcmc.sample_chain(
    50,
    jnp.zeros(()),
    kernel=tfp.mcmc.HamiltonianMonteCarlo(normal.log_prob, 0.5, 3),
    trace_fn=None,
    seed=jax.random.PRNGKey(1),
)
assert states.shape == (50,)
