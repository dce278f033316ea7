"""Rotations and their derivatives."""

import jax
import jax.numpy as jnp
import jaxlie

rotation = jaxlie.SO3.exp(jnp.array([0.1, 0.2, 0.3]))
assert jnp.allclose(rotation.log(), jnp.array([0.1, 0.2, 0.3]), atol=1e-5)
assert jax.jacobian(lambda x: jaxlie.SE3.exp(x).as_matrix())(jnp.ones(6)).shape == (4, 4, 6)
pose = jaxlie.SE3.exp(jnp.arange(6.0) / 10)
value, grad = jaxlie.manifold.value_and_grad(lambda pose: (pose.translation() ** 2).sum())(pose)
assert jnp.allclose(value, (pose.translation() ** 2).sum()) and grad.shape == (6,)
