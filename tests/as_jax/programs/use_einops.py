"""Rearrange, reduce and repeat."""

import jax
import jax.numpy as jnp
from einops import einsum, rearrange, reduce, repeat

x = jnp.arange(24.0).reshape(2, 3, 4)
assert jax.jit(lambda x: rearrange(x, "a b c -> (a b) c"))(x).shape == (6, 4)
assert reduce(x, "a b c -> a", "mean").shape == (2,) and repeat(x, "a b c -> a b c d", d=2).shape == (2, 3, 4, 2)
assert einsum(x, x, "a b c, a d c -> a b d").shape == (2, 3, 3)
