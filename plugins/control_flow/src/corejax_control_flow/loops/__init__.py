"""Loops: `scan`, `while_loop`, `fori_loop`, `map`, and progress bars.

`scan.py` traces the body to a jaxpr. `scan_rules.py` has the primitive `scan` with its types and the rules of
evaluation, jvp, vmap and dead code; then come `scan_partial_eval.py` and `scan_transpose.py`. Read them in this
order, and the files of `while` in the same way. `fori_loop.py` and `map.py` are built on these two loops.
`_carries.py` has what all loops share.
"""
