"""`jax._src.earray`."""

from corejax_as_jax.absent import absent_class as _absent_class

EArray = _absent_class("EArray")
