"""`jax.Ref`: corejax has no mutable arrays, so no value is an instance."""

from corejax_as_jax.absent import absent_class, absent_function

Ref = absent_class("Ref")
new_ref = absent_function("new_ref")
empty_ref = absent_function("empty_ref")
free_ref = absent_function("free_ref")
freeze = absent_function("freeze")
