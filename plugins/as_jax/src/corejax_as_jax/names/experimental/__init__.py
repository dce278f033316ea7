"""`jax.experimental`."""

from corejax_as_jax.absent import absent_function as _absent_function
from corejax_as_jax.callbacks import io_callback
from corejax_as_jax.core import primal_dtype_to_tangent_dtype as primal_tangent_dtype

cur_qdd = _absent_function("cur_qdd")
