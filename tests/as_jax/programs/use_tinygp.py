"""A Gaussian process and the gradient of its likelihood."""

import jax
import jax.numpy as jnp
import tinygp

x = jnp.linspace(0, 3, 20)
y = jnp.sin(x)


def loss(log_scale):
    kernel = tinygp.kernels.ExpSquared(scale=jnp.exp(log_scale))
    return -tinygp.GaussianProcess(kernel, x, diag=1e-2).log_probability(y)


value, grad = jax.jit(jax.value_and_grad(loss))(0.0)
assert jnp.isfinite(value) and jnp.isfinite(grad)
conditioned = tinygp.GaussianProcess(tinygp.kernels.Matern32(1.0), x, diag=1e-2).condition(y, x).gp
assert jnp.abs(conditioned.mean - y).max() < 0.1
