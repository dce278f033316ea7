"""`jax._src.compiler`."""

from corejax_as_jax.absent import absent_class as _absent_class

CompileOptions = _absent_class("CompileOptions")
