"""Conditionals: `cond` and `switch`.

`cond.py` makes the branches programs of one type. `cond_rules.py` is the primitive `cond` with all rules but partial
evaluation, which is in `cond_partial_eval.py`. `if_taken.py` is what
operands are where all branches run, for a batch. Read them in this order.
"""
