"""`jax._src.state.types`."""

from corejax.ref import AbstractRef as AbstractRef
