"""Functions with rules of their own: `custom_jvp`, `custom_vjp`, `custom_gradient`, `custom_vmap`, `linear_call`.

Read `open_calls.py` first: how a call finds the interpreter that needs its rule. Then, for each decorator,
`custom_jvp.py` (the decorator, and one call of the function; `_user_call.py` is what both kinds share) and
`custom_jvp_rules.py` (the primitive and its rules). `_arguments.py`, `symbolic_zeros.py` and
`closed_over.py` check what users' functions take, return and close over.
"""
