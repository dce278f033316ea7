"""Distributions and bijectors."""

import distrax
import jax
import jax.numpy as jnp

normal = distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2))
samples, logs = normal.sample_and_log_prob(seed=jax.random.PRNGKey(0), sample_shape=(5,))
assert samples.shape == (5, 2) and logs.shape == (5,)
flow = distrax.Transformed(distrax.Normal(0.0, 1.0), distrax.Lambda(jnp.exp))
assert jnp.isfinite(flow.log_prob(2.0))
assert abs(distrax.Categorical(logits=jnp.zeros(4)).entropy() - jnp.log(4.0)) < 1e-5
mixture = distrax.MixtureSameFamily(
    distrax.Categorical(logits=jnp.zeros(2)), distrax.Normal(jnp.array([-1.0, 1.0]), jnp.ones(2))
)
assert jnp.isfinite(jax.jit(jax.grad(mixture.log_prob))(0.3))
