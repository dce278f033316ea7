"""Returns and losses of reinforcement learning."""

import jax
import jax.numpy as jnp
import rlax

td = rlax.q_learning(jnp.array([1.0, 2.0]), 1, 0.5, 0.9, jnp.array([0.0, 3.0]))
assert abs(td - (0.5 + 0.9 * 3.0 - 2.0)) < 1e-5
returns = rlax.lambda_returns(jnp.ones(4), jnp.full(4, 0.9), jnp.zeros(4), 0.8)
assert returns.shape == (4,)
batched = jax.vmap(rlax.policy_gradient_loss, (0, 0, 0, 0))
assert batched(jnp.zeros((2, 3, 4)), jnp.zeros((2, 3), int), jnp.ones((2, 3)), jnp.ones((2, 3))).shape == (2,)
