"""A tree search."""

import jax
import jax.numpy as jnp
import mctx

root = mctx.RootFnOutput(prior_logits=jnp.zeros((2, 3)), value=jnp.zeros(2), embedding=jnp.zeros(2))


def recurrent(params, key, action, embedding):
    reward = (action == 1).astype(jnp.float32)
    out = mctx.RecurrentFnOutput(
        reward=reward, discount=jnp.full(2, 0.5), prior_logits=jnp.zeros((2, 3)), value=jnp.zeros(2)
    )
    return out, embedding


search = jax.jit(
    lambda key: mctx.gumbel_muzero_policy((), key, root, recurrent, num_simulations=16, max_num_considered_actions=3)
)
assert search(jax.random.PRNGKey(0)).action_weights.argmax(-1).tolist() == [1, 1]
