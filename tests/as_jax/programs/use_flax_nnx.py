"""Train an NNX model."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Model(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(2, 16, rngs=rngs)
        self.norm = nnx.BatchNorm(16, rngs=rngs)
        self.last = nnx.Linear(16, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(nnx.relu(self.norm(self.first(x))))


model = Model(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
x = jax.random.normal(jax.random.key(1), (64, 2))
y = x.sum(1, keepdims=True)


@nnx.jit
def step(model, optimizer):
    def loss(model):
        return jnp.mean((model(x) - y) ** 2)

    value, grads = nnx.value_and_grad(loss)(model)
    optimizer.update(model, grads)
    return value


first = step(model, optimizer)
for _ in range(50):
    value = step(model, optimizer)
assert value < first
graph, state = nnx.split(model)
assert nnx.merge(graph, state)(x).shape == (64, 1)

# Variables that hold references: a function that is jitted by `jax.jit` updates the model in place.
with nnx.var_defaults(hijax=False, ref=True):
    model = Model(nnx.Rngs(0))
graph, state = nnx.split(model)
assert all(isinstance(leaf, jax.Ref) for leaf in jax.tree.leaves(state))
before = model.norm.mean[...]
jax.jit(lambda state, x: nnx.merge(graph, state)(x))(state, x)
assert (model.norm.mean[...] != before).any()
