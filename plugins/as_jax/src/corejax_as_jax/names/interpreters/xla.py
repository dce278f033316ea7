"""`jax.interpreters.xla`."""

from corejax_as_jax.absent import OpenTable as _OpenTable
from corejax_as_jax.primitives import apply_primitive

canonicalize_dtype_handlers = _OpenTable()
pytype_aval_mappings = _OpenTable()
