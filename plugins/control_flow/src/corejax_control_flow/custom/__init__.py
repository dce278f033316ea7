"""Functions with rules of their own: `custom_jvp`, `custom_vjp`, `custom_gradient`, `custom_vmap`, `linear_call`."""
