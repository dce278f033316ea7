"""Structured control flow for corejax: `cond`, `switch`, `scan`, `while_loop`, `fori_loop`, `map`.

Also functions with rules of their own (`custom_jvp`, `custom_vjp`, `custom_gradient`, `custom_vmap`, `closure_convert`,
`linear_call`, `custom_linear_solve`, `custom_root`), `checkpoint` with its policies, named scopes, barriers.

The names are found through the kernel: `corejax.lax`, `corejax`, and the namespaces that `plugin.py` lists.
"""
