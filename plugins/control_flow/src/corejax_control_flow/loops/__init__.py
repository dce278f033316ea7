"""Loops: `scan`, `while_loop`, `fori_loop`, `map`, and progress bars.

`scan.py` makes the body a program. `scan_rules.py` is the primitive `scan` with its types and the rules of
evaluation, jvp, vmap and dead code; then come `scan_partial_eval.py` and `scan_transpose.py`. Read them in this
order, and the files of `while` in the same way. `fori_loop.py` and `map.py` are made of the two loops; `_carries.py`
is what all loops share.
"""
