"""`jax._src.state.types`."""

from corejax_as_jax.absent import absent_class as _absent_class

AbstractRef = _absent_class("AbstractRef")
