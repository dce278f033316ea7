"""Conditionals: `cond` and `switch`.

`cond.py` traces the branches to jaxprs of one type. `cond_rules.py` has the primitive `cond` with all rules except
partial evaluation, which is in `cond_partial_eval.py`. `if_taken.py` guards the operands of branches that all run
under `vmap` of the predicate. Read them in this order.
"""
