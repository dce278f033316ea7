"""`jax._src.dispatch`."""

from corejax import effects_barrier as wait_for_tokens
from corejax_as_jax.primitives import apply_primitive
