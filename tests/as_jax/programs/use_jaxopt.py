"""Minimise by L-BFGS, and differentiate through a ridge regression."""

import jax
import jax.numpy as jnp
import jaxopt

x = jax.random.normal(jax.random.key(0), (20, 3))
y = x @ jnp.array([1.0, -2.0, 0.5])


def ridge(w, strength):
    return jnp.mean((x @ w - y) ** 2) + strength * jnp.sum(w**2)


def fit(strength):
    return jaxopt.LBFGS(ridge, maxiter=50).run(jnp.zeros(3), strength).params


assert jnp.allclose(fit(1e-6), jnp.array([1.0, -2.0, 0.5]), atol=1e-2)
assert jax.jacobian(fit)(0.1).shape == (3,)
