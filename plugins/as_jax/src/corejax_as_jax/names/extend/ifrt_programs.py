"""`jax.extend.ifrt_programs`."""

from corejax_as_jax.absent import absent_class as _absent_class

ifrt_programs = _absent_class("ifrt_programs")
