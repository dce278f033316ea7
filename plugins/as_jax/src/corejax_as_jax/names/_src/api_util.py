"""`jax._src.api_util`."""

from corejax.extend.types import shaped_abstractify
from corejax_as_jax.absent import no_op as debug_info
from corejax_as_jax.linear_util import (
    argnums_partial,
    flatten_fun,
    flatten_fun_nokwargs,
    infer_argnums_and_argnames,
    safe_map,
)
