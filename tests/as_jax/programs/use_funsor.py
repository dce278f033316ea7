"""Sum out a variable."""

import os

os.environ["FUNSOR_BACKEND"] = "jax"

import funsor
import jax.numpy as jnp

funsor.set_backend("jax")
x = funsor.Tensor(jnp.arange(6.0).reshape(2, 3))["i"]
assert x.reduce(funsor.ops.add, "i").data.tolist() == [3.0, 5.0, 7.0]
