"""Dataclasses, assertions and variants of tests."""

import chex
import jax
import jax.numpy as jnp


@chex.dataclass
class State:
    x: chex.Array
    n: int


state = jax.tree.map(lambda a: a * 2, State(x=jnp.ones(3), n=4))
chex.assert_trees_all_close(state.x, 2 * jnp.ones(3))
chex.assert_shape(state.x, (3,))
chex.assert_tree_all_finite(state)


@jax.jit
@chex.assert_max_traces(n=1)
def f(x):
    return x + 1


f(1.0)
f(2.0)
checked = chex.chexify(jax.jit(lambda x: (chex.assert_trees_all_equal(x, x), x)[1]), async_check=False)
assert checked(jnp.float32(1.0)) == 1.0
