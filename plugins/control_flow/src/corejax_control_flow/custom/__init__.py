"""Functions with custom rules: `custom_jvp`, `custom_vjp`, `custom_gradient`, `custom_vmap`, `linear_call`.

Read `open_calls.py` first, which dispatches a call to the interpreter that needs its rule. Then, for each decorator,
`custom_jvp.py` (the decorator, and one call of the function; `_user_call.py` has the common base classes) and
`custom_jvp_rules.py` (the primitive and its rules). `_arguments.py`, `symbolic_zeros.py` and `closed_over.py` check
the arguments, results and closed-over values of users' functions.
"""
