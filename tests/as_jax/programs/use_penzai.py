"""Named axes and a model."""

import jax.numpy as jnp
import penzai.pz as pz

x = pz.nx.wrap(jnp.ones((2, 3))).tag("a", "b")
assert (x + x).named_shape == {"a": 2, "b": 3}
assert pz.nx.nmap(jnp.sum)(x.untag("b")).named_shape == {"a": 2}
