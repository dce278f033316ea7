"""Representations of rotations."""

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp

x = e3nn.normal("2x0e + 1x1o", jax.random.key(0), (4,))
product = e3nn.tensor_product(x, x)
assert product.array.shape[0] == 4
rotated = e3nn.spherical_harmonics("0e + 1o + 2e", jnp.array([1.0, 2.0, 3.0]), True)
assert rotated.array.shape == (9,) and jnp.all(jnp.isfinite(rotated.array))
