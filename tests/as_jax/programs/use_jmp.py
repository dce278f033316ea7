"""Mixed precision with loss scaling."""

import jax
import jax.numpy as jnp
import jmp

policy = jmp.get_policy("params=float32,compute=bfloat16,output=float32")
scale = jmp.DynamicLossScale(jnp.float32(2**10))
grads = jax.grad(lambda w: scale.scale(policy.cast_to_output(policy.cast_to_compute(w).sum())))(jnp.ones(3))
assert scale.unscale(grads).tolist() == [1.0, 1.0, 1.0] and jmp.all_finite(grads)
