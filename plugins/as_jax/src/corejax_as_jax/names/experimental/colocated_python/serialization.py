"""`jax.experimental.colocated_python.serialization`."""

from corejax_as_jax.absent import absent_class as _absent_class

DeviceList = _absent_class("DeviceList")
