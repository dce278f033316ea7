"""Structured control flow, functions with rules of their own, and checkpointing for corejax.

    plugin                                   what the plugin contributes, under which names
    namespaces   translations   examples     modules that users import; StableHLO; inputs for checks of rules
    solvers                                  equations: `custom_linear_solve`, `custom_root`
    loops   branches   custom   checkpoint   `scan`, `while`; `cond`; `custom_jvp` and its like; `remat2`
    markers                                  values passed on as they are: `name`, `optimization_barrier`; named scopes
    programs                                 a user's function as a program, and programs made of programs

A package imports only from lines below its own. In a package `scan.py` is the function that users call and
`scan_rules.py` the primitive behind it; a primitive's rules lie beside it, and only its translation lies in
`translations`. A module with an underscore is imported only inside its package.
"""
