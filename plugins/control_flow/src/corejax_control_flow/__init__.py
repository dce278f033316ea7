"""Structured control flow, functions with custom rules, and checkpointing for corejax.

    plugin                                   hook implementations: the exported names
    namespaces   translations   examples     modules that users import; StableHLO; inputs for checks of rules
    solvers                                  solvers of equations: `custom_linear_solve`, `custom_root`
    loops   branches   custom   checkpoint   `scan`, `while`; `cond`; `custom_jvp`, `custom_vjp` and so on; `remat2`
    markers                                  identities: `name`, `optimization_barrier`; named scopes
    programs                                 tracing of users' functions, and transformations of jaxprs

A package imports only from lines below its own. In a package, `scan.py` defines the function that users call and
`scan_rules.py` defines the primitive behind it. A primitive's rules stand beside it; only its translation is in
`translations`. A module with an underscore is imported only inside its package.
"""
