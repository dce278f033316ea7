"""`jax.experimental.array_serialization.serialization`: named by checkpoint libraries; see corejax.experimental."""

from corejax_as_jax.absent import absent_class as _absent_class
from corejax_as_jax.absent import absent_function as _absent_function

GlobalAsyncCheckpointManager = _absent_class("GlobalAsyncCheckpointManager")
GlobalAsyncCheckpointManagerBase = _absent_class("GlobalAsyncCheckpointManagerBase")
get_tensorstore_spec = _absent_function("get_tensorstore_spec")
