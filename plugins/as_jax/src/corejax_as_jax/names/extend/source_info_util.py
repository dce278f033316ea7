"""`jax.extend.source_info_util`."""

from corejax_as_jax.source_lines import register_exclusion
