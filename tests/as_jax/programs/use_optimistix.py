"""Find a root, a least-squares fit and a minimum, and differentiate the root."""

import jax
import jax.numpy as jnp
import optimistix as optx

solver = optx.Newton(rtol=1e-6, atol=1e-6)


def root(a):
    return optx.root_find(lambda y, args: y**2 - args, solver, jnp.float32(1.0), a).value


value, grad = jax.value_and_grad(root)(jnp.float32(2.0))
assert abs(value - 2**0.5) < 1e-4 and abs(grad - 0.5 / 2**0.5) < 1e-4
fit = optx.least_squares(
    lambda y, args: y - jnp.arange(3.0), optx.LevenbergMarquardt(rtol=1e-5, atol=1e-5), jnp.zeros(3)
)
assert jnp.allclose(fit.value, jnp.arange(3.0), atol=1e-3)
least = optx.minimise(lambda y, args: jnp.sum((y - 1.0) ** 2), optx.BFGS(rtol=1e-5, atol=1e-5), jnp.zeros(2))
assert jnp.allclose(least.value, 1.0, atol=1e-2)
