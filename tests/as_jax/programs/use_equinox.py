"""Train a multilayer perceptron with filtered transformations."""

import equinox as eqx
import jax
import jax.numpy as jnp

model = eqx.nn.MLP(2, 1, 16, 2, key=jax.random.key(0))
x = jax.random.normal(jax.random.key(1), (64, 2))
y = x[:, :1] * x[:, 1:]


@eqx.filter_value_and_grad
def loss(model):
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


@eqx.filter_jit
def step(model):
    value, grads = loss(model)
    return eqx.apply_updates(model, jax.tree.map(lambda g: -0.05 * g, grads)), value


first = step(model)[1]
for _ in range(100):
    model, value = step(model)
assert value < first
assert eqx.filter_make_jaxpr(lambda m: m(x[0]))(model)[0].eqns
checked = eqx.filter_jit(lambda x: eqx.error_if(x, x < 0, "negative"))
assert checked(jnp.float32(2.0)) == 2.0
