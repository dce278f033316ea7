"""Transform modules with parameters and state."""

import haiku as hk
import jax
import jax.numpy as jnp


def forward(x, training):
    x = hk.nets.MLP([8, 8])(x)
    x = hk.BatchNorm(True, True, 0.9)(x, training)
    core = hk.LSTM(4)
    out, _ = hk.dynamic_unroll(core, x[:, None], core.initial_state(1))
    return out.sum()


network = hk.transform_with_state(forward)
x = jnp.ones((5, 3))
params, state = network.init(jax.random.PRNGKey(0), x, True)


@jax.jit
def loss(params, state):
    return network.apply(params, state, None, x, True)


(value, state), grads = jax.value_and_grad(loss, has_aux=True)(params, state)
assert jnp.isfinite(value) and jax.tree.structure(grads) == jax.tree.structure(params)
assert "graph" in hk.experimental.to_dot(jax.jit(lambda x: jnp.sin(x) + 1))(x)
layers = hk.transform(lambda x: hk.nets.MLP([8, 8])(x))
assert "mlp" in hk.experimental.tabulate(layers)(x)
