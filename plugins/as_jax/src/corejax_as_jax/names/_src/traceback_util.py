"""`jax._src.traceback_util`."""

from corejax_as_jax.source_lines import api_boundary, exclude_paths as _exclude_paths, include_frame, register_exclusion
