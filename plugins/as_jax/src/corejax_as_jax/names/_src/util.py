"""`jax._src.util`."""

from corejax_as_jax.linear_util import safe_map, safe_zip
