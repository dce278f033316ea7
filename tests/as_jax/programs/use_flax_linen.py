"""Train a small convolutional network with batch norm and dropout."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state


class Network(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.relu(nn.Conv(8, (3, 3))(x))
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.Dropout(0.1, deterministic=not train)(x.mean((1, 2)))
        return nn.Dense(3)(x)


class State(train_state.TrainState):
    batch_stats: dict


x = jax.random.normal(jax.random.key(0), (16, 8, 8, 1))
y = jnp.arange(16) % 3
network = Network()
variables = network.init(jax.random.key(1), x, train=False)
state = State.create(
    apply_fn=network.apply, params=variables["params"], batch_stats=variables["batch_stats"], tx=optax.adam(1e-2)
)


@jax.jit
def step(state, key):
    def loss(params):
        variables = {"params": params, "batch_stats": state.batch_stats}
        logits, updates = state.apply_fn(variables, x, True, rngs={"dropout": key}, mutable=["batch_stats"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), updates

    (value, updates), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads, batch_stats=updates["batch_stats"]), value


first = step(state, jax.random.key(2))[1]
for i in range(20):
    state, value = step(state, jax.random.key(i))
assert value < first


class Recurrent(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.RNN(nn.LSTMCell(4))(x)


recurrent = Recurrent()
sequence = jnp.ones((2, 5, 3))
assert recurrent.apply(recurrent.init(jax.random.key(0), sequence), sequence).shape == (2, 5, 4)
attention = nn.MultiHeadDotProductAttention(num_heads=2)
assert attention.apply(attention.init(jax.random.key(0), sequence[..., :2]), sequence[..., :2]).shape == (2, 5, 2)
